import {
  type AnyActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  type AnyStateMachine,
  createActor,
} from 'xstate'
import { canonicalForms } from '../../guards/lib/canonical-json.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { isRecord } from '../../guards/lib/stored.js'
import { maxTimerMs, readElapsed, systemClock, toWholeClock, wait } from '../core/base/clock.js'
import { limitTime } from '../core/base/abort.js'
import { createId } from '../core/base/platform.js'
import {
  ConfigError,
  describeError,
  StatewrightError,
  UsageError,
  optionError,
  inputError,
} from '../core/base/errors.js'
import { type ArgumentRule, expectArgument, objectRule } from '../core/base/values.js'
import { callbackRule, checkOptions, countRule, keyRule, methodRule } from '../core/config/check-options.js'
import { listSessions } from '../core/run/delete-sessions.js'
import { createAlarmWaker, getTimers } from '../core/sessions/alarm-waker.js'
import { deleteSession } from '../core/sessions/delete-session.js'
import { notifyOwner } from '../core/sessions/inbox/inbox-owners.js'
import {
  createMachineLabel,
  type MachineEvent,
  type MachineRecord,
  type StoredMachineState,
} from '../core/sessions/log/machine-record.js'
import { leaseMs } from '../core/sessions/log/lease.js'
import { acquireSessionLog } from '../core/sessions/open-session.js'
import { checkStore, limitStoreTime } from '../core/sessions/store/checked-store.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { StoreError, unknownSessionError } from '../core/sessions/store/store-error.js'
import { type AgentInternals, internalsByAgent, internalsByMachine } from '../core/agent/agent-internals.js'
import type { AnyAgent } from '../core/drive/define-agents.js'
import { sendInOrder, sendToStoredSession } from '../core/run/send-to-stored-session.js'
import type { SessionMessage } from '../core/sessions/inbox/session-message.js'
import { keepUnchanged, writeFork } from '../core/sessions/fork-session.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import { readSessionAt } from '../core/sessions/replay-session.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { cancelChild, getChildId, startAgentActor } from './running-agent.js'
import {
  type ActorOutcome,
  type AgentMessage,
  type DurableMachine,
  type DurableOptions,
  type DurableWorker,
  type ForkOptions,
  isAgentMessage,
  type MachineSnapshot,
  type PendingAgentCall,
  type SettledState,
  type WorkerOptions,
} from './durable-options.js'
import { DurableChart, checkChart, type StartedActor } from './chart.js'
import { emptyLogEnd, formatStateValue, MachineLog, readLogEnd } from './machine-log.js'
import {
  type ActorReport,
  createDoneEvent,
  createErrorEvent,
  type HoldParts,
  MachineHold,
  type ReleasedSession,
  type RunningActor,
  warn,
} from './machine-hold.js'
import { copyJson } from './plain-json.js'

const keysByActor = new WeakMap<object, string>()

/**
 * Returns the idempotency key of a promise actor, such as `claim-17:pay.12`. The key stays the same when the actor runs
 * again. Pass the key to a service that must not act twice.
 * @example
 * const transfer = fromPromise(async ({ self }) => `The bank was called with the key ${idempotencyKey(self)}.`)
 * @throws {UsageError} `no_key` for an actor that no durable machine runs
 */
export function idempotencyKey(self: AnyActorRef): string {
  const key = keysByActor.get(self)
  if (key !== undefined) return key
  throw new UsageError('no_key', 'idempotencyKey(self): no durable machine runs this actor.', 'self')
}

const findAgent = (logic: unknown): AgentInternals | undefined =>
  typeof logic === 'object' && logic !== null ? internalsByMachine.get(logic) : undefined

interface LocalSession {
  hold: MachineHold
  done: Promise<ReleasedSession & { isUnread: boolean }>
}

/** Poll interval for a session that another process holds, in milliseconds. */
const lookMs = 250

/**
 * Runs the sessions of an XState machine in a store. Each event is stored with the resulting state before it has
 * effects, so that any process can continue a session after a crash.
 * @example
 * const claims = durable(claimMachine, { store: memoryStore(), actors: { pay }, once: ['pay'] })
 * await claims.start('claim-17', { input: { amount: 900 } })
 * await claims.send('claim-17', { type: 'APPROVE', by: 'ann' })
 * const { value, context } = await claims.settled('claim-17')
 * @throws {ConfigError} `invalid_machine`, `missing_actor`, `unsupported_actor`, `no_inbox`, `no_timers`, `invalid_config`
 */
export function durable<Machine extends AnyStateMachine>(
  machine: Machine,
  options: DurableOptions<Machine>,
): DurableMachine<Machine> {
  expectArgument('durable(machine)', machine, objectRule(['provide', 'transition'], 'an XState machine'))
  const {
    store,
    actors,
    once = [],
  } = checkOptions<DurableOptions<Machine>>('durable(machine, options)', options, {
    store: null,
    actors: objectRule([], 'an object that maps names to actors'),
    once: { is: Array.isArray, phrase: 'a list of actor names' },
    clock: methodRule(['now', 'setTimeout', 'clearTimeout'], 'a clock'),
    migrate: callbackRule,
    onError: callbackRule,
  })
  // A missing store is refused too.
  checkStore((store as unknown) ?? null)
  if (!store.inbox)
    throw new ConfigError(
      'no_inbox',
      'This store has no inbox, so its sessions cannot receive events. Use memoryStore(), fileStore() or postgresStore().',
      'store',
    )
  const logics = Object.entries(actors ?? {}).map(([name, actor]) => [
    name,
    // Agents can be passed instead of their machines.
    internalsByAgent.has(actor as AnyAgent) ? (actor as AnyAgent).machine : actor,
  ])
  const whole = machine.provide({ actors: Object.fromEntries(logics) as never }) as Machine
  checkChart(whole, Object.keys(actors ?? {}), once, (logic) => findAgent(logic) !== undefined)
  return new MachineSessions(whole, options)
}

const storeTimeoutMs = 60_000

class MachineSessions<Machine extends AnyStateMachine> implements DurableMachine<Machine> {
  readonly machine: Machine
  readonly #chart: DurableChart
  readonly #options: DurableOptions<Machine>
  readonly #store: SessionStore
  readonly #clock: typeof systemClock
  readonly #label: string
  readonly #once: ReadonlySet<string>
  readonly #local = new Map<string, Promise<LocalSession | null>>()
  /** Until when the worker ignores a session's unread messages. Infinity for sessions of others. */
  readonly #skipped = new Map<string, number>()
  #isDraining = false

  constructor(machine: Machine, options: DurableOptions<Machine>) {
    this.machine = machine
    this.#options = options
    this.#clock = toWholeClock(options.clock ?? systemClock)
    this.#store = limitStoreTime(options.store, storeTimeoutMs, this.#clock, '. Check that it is reachable.')
    this.#chart = new DurableChart(machine)
    this.#label = createMachineLabel(machine.id)
    this.#once = new Set(options.once)
    // Throws for a store without timers.
    getTimers(this.#store, this.#clock)
  }

  async start(sessionId: string, options: { input?: unknown } = {}): Promise<void> {
    const id = checkSessionId(sessionId)
    checkOptions('start(id, options)', options, { input: null })
    const input = copyJson(options.input, 'input')
    /* oxlint-disable no-await-in-loop -- one poll at a time */
    for (;;) {
      await this.#take(id, { input })
      const { head, record } = await readLogEnd(this.#store, id, 1)
      if (head > 0) {
        this.#checkOwner(id, record)
        if (toCanonical(record.event['input']) === toCanonical(input)) return
        throw new UsageError(
          'already_started',
          `Session '${id}' was started with a different input. Choose another id, or send the session an event.`,
          id,
        )
      }
      await wait(this.#clock, lookMs)
    }
    /* oxlint-enable no-await-in-loop */
  }

  async send(sessionId: string, event: AnyEventObject, options: { key?: string } = {}): Promise<void> {
    const id = checkSessionId(sessionId)
    checkOptions('send(id, event, options)', options, { key: keyRule })
    const { key } = options
    const isAnswer = isAgentMessage(event) && !this.#takesItself(event.type)
    const checked = isAnswer ? event : this.#checkEvent(event)
    await sendInOrder(this.#store, id, async () => {
      const { state } = (await this.#readEnd(id)).record
      // The event itself may have ended the session.
      if (key !== undefined && state.keys.includes(key)) return
      if (isAnswer) return this.#answer(id, state, event, key)
      if (state.status !== 'active') throw endedError(id)
      await this.#deliver(id, checked, key)
    })
  }

  async settled(sessionId: string, options: { timeoutMs?: number } = {}): Promise<SettledState<Machine>> {
    const id = checkSessionId(sessionId)
    checkOptions('settled(id, options)', options, { timeoutMs: createTimeRule(0, Infinity) })
    const { timeoutMs: ms = Infinity } = options
    let isOver = false
    /** The latest known state, for the timeout error. */
    let readState = (): StoredMachineState | undefined => undefined
    const settle = async (): Promise<SettledState<Machine>> => {
      /* oxlint-disable no-await-in-loop -- one poll at a time */
      for (;;) {
        const { record, head } = await this.#readEnd(id)
        readState = () => record.state
        // After the time limit, no caller receives this result.
        if (record.state.status !== 'active' || isOver) return this.#toSettled(id, record, head)
        const local = await this.#take(id)
        if (local) readState = () => local.hold.state
        const done = (await local?.done.catch(nullIfTakenOver)) ?? null
        // Another process may have written between the read above and the acquisition.
        if (done?.hasSettled && !done.isUnread) return this.#toSettled(id, done.record, done.head)
        if (done) this.#refuseDraining()
        else await wait(this.#clock, lookMs)
      }
      /* oxlint-enable no-await-in-loop */
    }
    if (ms === Infinity) return settle()
    const late = (): UsageError => notSettledError(id, ms, readState())
    return limitTime({ ms, clock: this.#clock, late }, settle()).finally(() => (isOver = true))
  }

  worker(options: WorkerOptions = {}): DurableWorker {
    checkOptions('worker(options)', options, {
      pollMs: createTimeRule(1, maxTimerMs),
      concurrency: countRule,
    })
    this.#refuseDraining()
    const { pollMs = 1000, concurrency = 50 } = options
    const waker = createAlarmWaker({
      timers: getTimers(this.#store, this.#clock),
      clock: this.#clock,
      pollMs,
      concurrency,
      mayWake: ({ agent }) => agent === this.#label,
      run: (session) => this.#continue(session),
      listWaiting: () => this.#listUnread(),
      drain: () => this.#drain(),
      onError: this.#options.onError,
    })
    waker.start()
    return {
      get active() {
        return waker.active
      },
      drain: () => waker.stop(),
    }
  }

  async replay(sessionId: string, record?: number): Promise<MachineSnapshot<Machine>> {
    const id = checkSessionId(sessionId)
    const { event, refused, state, at } = await this.#readAt(id, record, 'record')
    const snapshot = { record: at, event, ...(refused && { refused }), ...toPublicState(state) }
    return snapshot as MachineSnapshot<Machine>
  }

  async fork(sessionId: string, options: ForkOptions<Machine> = {}): Promise<string> {
    const from = checkSessionId(sessionId)
    checkOptions('fork(id, options)', options, { at: null, with: changeRule })
    const { state, at, machine, chart, isLast } = await this.#readAt(from, options.at, 'at')
    const change = options.with
    const outcome = change && !('type' in change) ? this.#findOutcome(state, change) : undefined
    const event = change && !outcome ? this.#checkEvent(change as AnyEventObject) : undefined
    if (event && state.status !== 'active') throw endedError(from)
    const actors = await this.#readActors(from, state)
    const running = actors.filter(({ id }) => id !== outcome?.actorId)
    const id = createId()
    // The fork could reuse a key from the source.
    const moved = running.map((actor, i) => ({
      ...actor,
      source: getChildId(from, actor.key),
      key: `${actor.src}.1.${i + 1}`,
    }))
    const store = this.#store
    const by = { clock: this.#clock, holder: 'a fork' }
    const agents = moved
      .filter(({ src }) => this.#findAgent(src))
      .map(({ source, key }) => ({ source, id: getChildId(id, key) }))
    if (agents.length > 0 && !isLast) throw agentRunsError(from, at)
    /** The functions that write the copies. An agent without records starts in the fork. */
    const copies = await Promise.all(
      agents.map(async ({ source, id: copy }) => {
        const folded = await this.#readAgent(source)
        if (!folded?.run) return undefined
        const origin = { sessionId: source, folded, beginning: keepUnchanged(folded), parent: id }
        return () => writeFork({ store, clock: this.#clock }, copy, origin)
      }),
    )
    // The agents, and the machine with them, may have continued since the record was read.
    if (agents.length > 0 && (await this.#readEnd(from)).head !== at) return this.fork(sessionId, options)
    await acquireSessionLog(store, id, by, async (lease) => {
      // oxlint-disable-next-line no-await-in-loop -- rarely more than one
      for (const copy of copies) await copy?.()
      const log = new MachineLog({ ...by, store, lease }, emptyLogEnd, machine)
      const notDelivered = { code: 'forked', message: 'Not delivered yet.' }
      const forked: StoredMachineState = {
        ...state,
        actors: Object.fromEntries(moved.map(({ id: name, src, key }) => [name, { src, at: 1, key }])),
        held: [...state.held, ...(outcome ? [{ event: outcome, refused: notDelivered }] : [])],
        inbox: 0,
        keys: [],
      }
      log.write({
        machine,
        ...(chart !== undefined && { chart }),
        event: { type: 'xstate.fork' },
        forkedFrom: { sessionId: from, seq: at },
        starts: Object.fromEntries(moved.map(({ id: name, src, input }) => [name, { src, input }])),
        state: forked,
      })
      log.list(forked, undefined)
      await log.close()
    }).catch(async (error: unknown) => {
      // The caller never gets the id of this fork.
      const left = agents.map((agent) => deleteSession(store, this.#clock, agent.id).catch(() => 0))
      await Promise.all(left)
      throw error
    })
    if (event) await this.#deliver(id, event)
    return id
  }

  #findOutcome({ actors }: StoredMachineState, { actor, output, error }: ActorOutcome): MachineEvent {
    const [id] = Object.entries(actors).find(([name, { src }]) => name === actor || src === actor) ?? []
    if (id === undefined)
      throw new UsageError(
        'unknown_actor',
        `fork({ with }): the actor '${actor}' is not running at that record.`,
        actor,
      )
    return error === undefined
      ? createDoneEvent(id, copyJson(output ?? null, 'output'))
      : createErrorEvent(id, error)
  }

  async #readAt(
    id: string,
    to: number | undefined,
    option: 'at' | 'record',
  ): Promise<MachineRecord & { at: number; isLast: boolean }> {
    const { record: last, head } = await this.#readEnd(id)
    if (to === undefined || to === head) return { ...last, at: head, isLast: true }
    if (!Number.isSafeInteger(to) || to < 1 || to > head)
      throw optionError(`Session '${id}' has records 1 to ${head}. There is no record ${String(to)}.`, option)
    const { record } = await readLogEnd(this.#store, id, to)
    return { ...(record as MachineRecord), at: to, isLast: false }
  }

  list(): AsyncGenerator<ListedSession> {
    return listSessions(this.#store, { agent: this.#label })
  }

  async delete(sessionId: string): Promise<boolean> {
    const id = checkSessionId(sessionId)
    const { head, record } = await readLogEnd(this.#store, id)
    if (head > 0) this.#checkOwner(id, record)
    return (await deleteSession(this.#store, this.#clock, id)) > 0
  }

  #refuseDraining(): void {
    if (!this.#isDraining) return
    throw new UsageError(
      'draining',
      'The worker in this process was drained, so it runs no more sessions. Call this in another process.',
      'drain',
    )
  }

  /** Whether messages of this type are for the machine. If the machine has agents, a wildcard does not match their messages. */
  #takesItself(type: string): boolean {
    return this.machine.events.includes(type) || (!this.#hasAgents && this.#chart.knows(type))
  }

  get #hasAgents(): boolean {
    return Object.values(this.machine.implementations.actors).some(findAgent)
  }

  #checkEvent(event: AnyEventObject): AnyEventObject {
    const type: unknown = (event as AnyEventObject | null | undefined)?.type
    if (typeof type !== 'string')
      throw inputError("An event is an object with a type: { type: 'APPROVE' }.", 'event')
    if (type.startsWith('xstate.') || !this.#chart.knows(type)) {
      const known = this.machine.events.filter((one: string) => !one.startsWith('xstate.'))
      throw new UsageError(
        'unknown_event',
        `The machine '${this.machine.id}' has no event '${type}'. Its events are ${known.join(', ')}.`,
        type,
      )
    }
    return copyJson(event, 'event')
  }

  /** Sends an event that an actor raised after its session was released. As in XState, an ended machine ignores it. */
  #sendLate(id: string, event: AnyEventObject): Promise<void> {
    return sendInOrder(this.#store, id, async () => {
      const { record } = await this.#readEnd(id)
      if (record.state.status === 'active') await this.#deliver(id, event)
    })
  }

  async #deliver(id: string, event: AnyEventObject | null, key?: string): Promise<void> {
    const delivery = await this.#store.inbox?.put(id, JSON.stringify({ event, key }))
    if (delivery) notifyOwner(this.#store, id, delivery.message)
    if (!delivery?.holder || this.#local.has(id)) this.#driveLater(id)
  }

  async #answer(
    id: string,
    state: StoredMachineState,
    { session: named, ...message }: AgentMessage,
    key: string | undefined,
  ): Promise<void> {
    const agents = await this.#readAgents(id, state)
    // The call may no longer be pending. Only the key then leads to its agent.
    if (key !== undefined && agents.some(({ keys }) => keys.includes(key))) return
    const { callId: called } = message as { callId?: string }
    const child =
      agents.find(({ session, calls }) =>
        named === undefined ? calls.some(({ callId }) => callId === called) : session === named,
      ) ?? (named === undefined && agents.length === 1 ? agents[0] : undefined)
    if (!child)
      throw new UsageError(
        'unknown_call',
        `Session '${id}' has no agent for '${message.type}'. Send it with the call: { type: '${message.type}', ...call }, with ` +
          'the call from pending in the result of settled().',
        id,
      )
    const parts = { store: this.#store, clock: this.#clock, tools: child.agent.parts.tools }
    await sendToStoredSession(parts, child.session, message as SessionMessage, { key, isParent: true })
    await this.#deliver(id, null)
  }

  #listAgents(id: string, { actors }: StoredMachineState): { session: string; agent: AgentInternals }[] {
    return Object.values(actors).flatMap(({ src, key }) => {
      const agent = this.#findAgent(src)
      return agent ? [{ session: getChildId(id, key), agent }] : []
    })
  }

  #readAgents(id: string, state: StoredMachineState) {
    return Promise.all(
      this.#listAgents(id, state).map(async ({ session, agent }) => {
        const folded = await this.#readAgent(session)
        const found = folded?.run ? listAnswerableCalls(folded.run.context) : []
        const calls = found.map((call): PendingAgentCall => ({ ...call, session }))
        return { session, agent, calls, keys: folded?.keys ?? [] }
      }),
    )
  }

  #findAgent(src: string): AgentInternals | undefined {
    return findAgent(this.machine.implementations.actors[src])
  }

  /** The session of an agent. Null if it has no records yet. */
  async #readAgent(session: string): Promise<FoldedSession | null> {
    return (await this.#store.get(session)) === null ? null : readSessionAt(this.#store, session)
  }

  /** Cancels agents whose states were exited by a process that died before cancelling them. */
  async #cancelLeft(id: string, state: StoredMachineState): Promise<void> {
    if (!this.#hasAgents) return
    const inFlight = new Set(this.#listAgents(id, state).map(({ session }) => session))
    for await (const child of listSessions(this.#store, { parent: id }))
      if (!inFlight.has(child.id))
        await cancelChild(this.#store, this.#clock, child.id).catch(this.#reportDamage(id))
  }

  /** Returns a handler for `catch`, because the damaged log of an agent must not block the machine. */
  #reportDamage(id: string): (error: unknown) => undefined {
    return (error) => {
      if (error instanceof StatewrightError && error.retryable) throw error
      this.#report(error, id)
    }
  }

  /** The last record. @throws {StoreError} `unknown_session` */
  async #readEnd(id: string): Promise<{ record: MachineRecord; head: number }> {
    const { record, head } = await readLogEnd(this.#store, id)
    if (head === 0) throw unknownSessionError(id)
    this.#checkOwner(id, record)
    return { record, head }
  }

  #checkOwner(id: string, record: MachineRecord | null): asserts record is MachineRecord {
    if (record?.machine === this.machine.id) return
    const owner = record ? `the machine '${record.machine}'` : 'an agent'
    throw new UsageError(
      'other_session',
      `Session '${id}' belongs to ${owner}, not to the machine '${this.machine.id}'. Choose another id.`,
      id,
    )
  }

  /** Drives a session in the background, if no other process holds it. */
  #driveLater(id: string): void {
    if (this.#isDraining) return
    this.#take(id).then(
      (local) => local?.done.catch(() => undefined),
      (error: unknown) => this.#report(error, id),
    )
  }

  #report(error: unknown, session: string): void {
    if (error instanceof StatewrightError && error.retryable) return
    try {
      ;(this.#options.onError ?? warn)(error, { session })
    } catch {
      // A failing listener must not stop the session.
    }
  }

  /** Acquires a session and drives it until it settles. Returns null if another process holds it. */
  #take(id: string, start?: { input: unknown }): Promise<LocalSession | null> {
    const known = this.#local.get(id)
    // A start by another call may fail because of that call's input.
    if (known) return start ? known.catch(() => null) : known
    this.#refuseDraining()
    const opening = this.#open(id, start).then(
      (hold) => {
        const done = this.#drive(id, hold)
        // `settled` may have returned by then.
        done.catch((error: unknown) => this.#report(error, id))
        return { hold, done }
      },
      (error: unknown) => {
        this.#local.delete(id)
        if (error instanceof UsageError && !start) this.#skipped.set(id, readElapsed(this.#clock) + leaseMs)
        return nullIfTakenOver(error)
      },
    )
    this.#local.set(id, opening)
    return opening
  }

  async #drive(id: string, hold: MachineHold): LocalSession['done'] {
    const released = await hold.drive().finally(() => this.#local.delete(id))
    // A message may have arrived between the last poll and the release.
    const found = await (async () => this.#store.inbox?.read(id))().catch((error: unknown) => {
      this.#report(error, id)
    })
    const isUnread = (found ?? []).some(({ message }) => message > released.lastMessage)
    if (isUnread) this.#driveLater(id)
    return { ...released, isUnread }
  }

  async #open(id: string, start?: { input: unknown }): Promise<MachineHold> {
    const clock = this.#clock
    const holder = this.#label
    const since = readElapsed(clock)
    return acquireSessionLog(this.#store, id, { clock, holder }, async (lease) => {
      // No other process can write from here on, so a head of 0 still means an empty log.
      const end = lease.head === 0 ? emptyLogEnd : await readLogEnd(this.#store, id)
      if (end.head === 0 && !start) throw unknownSessionError(id)
      let record: MachineRecord | undefined
      if (end.head > 0) {
        this.#checkOwner(id, end.record)
        record = { ...end.record, state: await this.#fit(id, end.record) }
        await this.#cancelLeft(id, record.state)
      }
      const actors = record ? await this.#readActors(id, record.state) : []
      // Another process may have acquired the session during slow reads.
      if (readElapsed(clock) - since > leaseMs / 2) await this.#store.renew(lease, leaseMs)
      const log = new MachineLog({ store: this.#store, lease, clock, holder }, end, this.machine.id)
      const onError = (error: unknown): void => this.#report(error, id)
      const parts: HoldParts = {
        chart: this.#chart,
        log,
        clock,
        isOnce: (src) => this.#once.has(src),
        run: (actor, report) => this.#runActor(id, actor, report),
        sendLate: (event) => void this.#sendLate(id, event).catch(onError),
        onError,
      }
      const hold = new MachineHold(parts, record)
      try {
        if (record) hold.resume(actors)
        else await hold.begin(start?.input)
      } catch (error) {
        await log.close()?.catch(() => undefined)
        throw error
      }
      return hold
    })
  }

  /**
   * The stored state, migrated if necessary.
   * @throws {UsageError} `chart_changed` if the chart lacks a part of the state
   */
  async #fit(id: string, { state, chart: from }: MachineRecord): Promise<StoredMachineState> {
    const { migrate } = this.#options
    const hasChanged = from !== this.machine.version || this.#chart.findMisfits(state).length > 0
    const fitted = { ...state }
    if (migrate && hasChanged) {
      const { value, context, status, historyValue } = state
      const given = { value, context, status, historyValue }
      const migrated: unknown = await (async () => migrate(given, { from }))().catch((cause: unknown) => {
        throw chartChangedError(`migrate failed for session '${id}': ${describeError(cause)}`, id, cause)
      })
      if (!isRecord(migrated))
        throw chartChangedError(
          `migrate did not return an object for session '${id}'. Return { value, context }, or one of the two.`,
          id,
        )
      const copied = copyJson(migrated, 'the state that migrate returned')
      if (copied['value'] !== undefined) fitted.value = copied['value']
      if (copied['context'] !== undefined) fitted.context = copied['context']
    }
    const misfits = this.#chart.findMisfits(fitted, state.value)
    if (misfits.length === 0) return fitted
    throw chartChangedError(
      `Session '${id}' does not fit the machine '${this.machine.id}': ${misfits.join(', and ')}. ` +
        `${migrate ? 'Return another state from migrate' : 'Pass migrate to durable(…)'}, or change the chart. ` +
        "'statewright diff' compares two versions of a machine.",
      id,
    )
  }

  /** The running actors with their inputs, which are in the records that started them. */
  async #readActors(id: string, { actors }: StoredMachineState): Promise<StartedActor[]> {
    return Promise.all(
      Object.entries(actors).map(async ([actorId, actor]) => {
        const { record } = await readLogEnd(this.#store, id, actor.at)
        const agent = this.#findAgent(actor.src)
          ? await this.#readAgent(getChildId(id, actor.key)).catch(this.#reportDamage(id))
          : null
        const keys = agent?.keys ?? []
        return { ...actor, id: actorId, input: record?.starts?.[actorId]?.input, keys }
      }),
    )
  }

  #runActor(
    session: string,
    { id, src, key, input, keys = [] }: StartedActor,
    report: ActorReport,
  ): RunningActor {
    const agent = this.#findAgent(src)
    if (agent) {
      const child = { session: getChildId(session, key), parent: session, src }
      return startAgentActor({ agent, store: this.#store, clock: this.#clock, child, input, keys, report })
    }
    // The copy is what the actor would receive after a restart.
    const logic = this.machine.implementations.actors[src] as AnyActorLogic
    const actor = createActor(logic, { id, input: copyJson(input, 'input') })
    keysByActor.set(actor, `${session}:${key}`)
    actor.subscribe({
      complete: () => report.done((actor.getSnapshot() as { output?: unknown }).output),
      error: (error) => report.failed(error),
    })
    actor.start()
    return { isResting: false, stop: () => void actor.stop() }
  }

  /** Continues a session for the worker. @returns the remaining sleep in milliseconds */
  async #continue(id: string): Promise<number | undefined> {
    const local = await this.#take(id)
    if (!local) throw new StoreError('session_busy', `Session '${id}' is in use by another process.`, id)
    return (await local.done).sleepMs
  }

  async #listUnread(): Promise<string[]> {
    const { inbox } = this.#store
    const own: string[] = []
    if (!inbox?.listUnread) for await (const { id } of this.list()) own.push(id)
    const found = (await (inbox?.listUnread?.() ?? inbox?.findUnread?.(own))) ?? []
    const unread: string[] = []
    const now = readElapsed(this.#clock)
    for (const { sessionId } of found) {
      if ((this.#skipped.get(sessionId) ?? 0) > now || this.#local.has(sessionId)) continue
      // oxlint-disable-next-line no-await-in-loop -- rarely more than a few
      const listed = await this.#store.get(sessionId)
      // A deleted session may be started again.
      if (listed === null) continue
      if (listed.summary?.agent !== this.#label) this.#skipped.set(sessionId, Infinity)
      else if (listed.holder === null) unread.push(sessionId)
    }
    return unread
  }

  async #drain(): Promise<void> {
    this.#isDraining = true
    const local = await Promise.allSettled(this.#local.values())
    const sessions = local.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []))
    for (const { hold } of sessions) hold.stop()
    await Promise.allSettled(sessions.map(({ done }) => done))
  }

  /** @throws {UsageError} if the last event had no effect, or an outcome waits for another chart */
  async #toSettled(
    id: string,
    { state, refused = state.held[0]?.refused }: MachineRecord,
    head: number,
  ): Promise<SettledState<Machine>> {
    if (refused) throw new UsageError(refused.code, refused.message, refused.subject)
    const pending = (await this.#readAgents(id, state)).flatMap(({ calls }) => calls)
    return { ...toPublicState(state), pending, head } as SettledState<Machine>
  }
}

function toPublicState({ status, value, context, output, error }: StoredMachineState): object {
  return { status, value, context, ...omitUndefined({ output, error }) }
}

const createTimeRule = (least: number, most: number): ArgumentRule => ({
  is: (value) => typeof value === 'number' && value >= least && (value <= maxTimerMs || value === most),
  phrase: `a number of milliseconds from ${least} to ${maxTimerMs}${most === Infinity ? ', or Infinity' : ''}`,
})

const changeRule: ArgumentRule = {
  is: (value) => {
    if (!isRecord(value)) return false
    const { actor, output, error, ...others } = value
    if ('type' in value) return typeof value['type'] === 'string'
    const isWhole = typeof actor === 'string' && (output === undefined || error === undefined)
    return isWhole && Object.keys(others).length === 0
  },
  phrase: "an event, or an actor's outcome: { actor: 'pay', output } or { actor: 'pay', error }",
}

function toCanonical(value: unknown): string {
  const text = JSON.stringify(value ?? null)
  return canonicalForms(text)?.exact ?? text
}

/** Handles errors in `catch`. Returns null if another process holds the session or has taken it over. */
function nullIfTakenOver(error: unknown): null {
  if (error instanceof StoreError && ['session_busy', 'lease_lost', 'out_of_order'].includes(error.code))
    return null
  throw error
}

const chartChangedError = (message: string, id: string, cause?: unknown): UsageError =>
  new UsageError('chart_changed', message, id, { cause })

function endedError(id: string): UsageError {
  const message = `Session '${id}' has ended and accepts no more events. Start another session.`
  return new UsageError('session_ended', message, id)
}

function agentRunsError(id: string, record: number): UsageError {
  return new UsageError(
    'unsupported_fork',
    `An agent is running at record ${record} of session '${id}', and only its current state can be copied. Fork at ` +
      'the last record, or at a record where no agent runs.',
    'at',
  )
}

function notSettledError(id: string, ms: number, state: StoredMachineState | undefined): UsageError {
  const running = Object.values(state?.actors ?? {}).map(({ src }) => src)
  const work = running.length > 0 ? `, where ${running.join(', ')} runs` : ''
  const found = state
    ? `Its state is ${formatStateValue(state.value)}${work}`
    : 'The store did not return its state'
  return new UsageError('not_settled', `Session '${id}' did not settle within ${ms} ms. ${found}.`, id)
}
