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
import { createAlarmWaker, getTimers, reportError } from '../core/sessions/alarm-waker.js'
import { deleteSession } from '../core/sessions/delete-session.js'
import { listUnread, putMessage } from '../core/sessions/inbox/inbox-owners.js'
import {
  createMachineLabel,
  formatStateValue,
  type MachineRecord,
  type StoredMachineState,
} from '../core/sessions/log/machine-record.js'
import { leaseMs } from '../core/sessions/log/lease.js'
import { acquireSessionLog } from '../core/sessions/open-session.js'
import { checkStore, limitStoreTime } from '../core/sessions/store/checked-store.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'
import { isHeldElsewhere, StoreError, unknownSessionError } from '../core/sessions/store/store-error.js'
import { type AgentInternals, internalsByAgent, internalsByMachine } from '../core/agent/agent-internals.js'
import type { AnyAgent } from '../core/drive/define-agents.js'
import { sendInOrder, sendToStoredSession } from '../core/run/send-to-stored-session.js'
import { messageTypes, type SessionMessage } from '../core/sessions/inbox/session-message.js'
import { forkSession } from '../core/sessions/fork-session.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import { readSessionAt } from '../core/sessions/replay-session.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { cancelChild, getChildId, startAgentActor } from './running-agent.js'
import {
  type ActorOutcome,
  type AgentMessage,
  type DurableMachine,
  type DurableOptions,
  type MachineSnapshot,
  type PendingAgentCall,
  type SettledState,
} from './durable-options.js'
import { DurableChart, checkChart, type StartedActor } from './chart.js'
import {
  type ActorReport,
  createDoneEvent,
  createErrorEvent,
  createMachineHold,
  emptyLogEnd,
  type MachineHold,
  MachineLog,
  readLogEnd,
  type ReleasedSession,
  type RunningActor,
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

const toAgent = (logic: unknown): AgentInternals | undefined =>
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
  const checked = checkOptions<DurableOptions<Machine>>('durable(machine, options)', options, {
    store: null,
    actors: objectRule([], 'an object that maps names to actors'),
    once: { is: Array.isArray, phrase: 'a list of actor names' },
    clock: methodRule(['now', 'setTimeout', 'clearTimeout'], 'a clock'),
    migrate: callbackRule,
    onError: callbackRule,
  })
  const { store, actors = {}, once = [] } = checked
  // A missing store is refused too.
  checkStore((store as unknown) ?? null)
  if (!store.inbox)
    throw new ConfigError(
      'no_inbox',
      'This store has no inbox, so its sessions cannot receive events. Use memoryStore(), fileStore() or postgresStore().',
      'store',
    )
  const logics = Object.entries(actors).map(([name, actor]) => [
    name,
    // Agents can be passed instead of their machines.
    internalsByAgent.has(actor as AnyAgent) ? (actor as AnyAgent).machine : actor,
  ])
  const whole = machine.provide({ actors: Object.fromEntries(logics) as never }) as Machine
  checkChart(whole, Object.keys(actors), once, (logic) => toAgent(logic) !== undefined)
  return createSessions(whole, checked)
}

const storeTimeoutMs = 60_000

function createSessions<Machine extends AnyStateMachine>(
  machine: Machine,
  own: DurableOptions<Machine>,
): DurableMachine<Machine> {
  const { migrate, onError: listener } = own
  const once: ReadonlySet<string> = new Set(own.once)
  const clock = toWholeClock(own.clock ?? systemClock)
  const store = limitStoreTime(own.store, storeTimeoutMs, clock, '. Check that it is reachable.')
  const timers = getTimers(store, clock)
  const chart = new DurableChart(machine)
  const label = createMachineLabel(machine.id)
  const hasAgents = Object.values(machine.implementations.actors).some(toAgent)
  const held = new Map<string, Promise<LocalSession | null>>()
  /** Until when the worker ignores a session's unread messages. Infinity for sessions of others. */
  const skipped = new Map<string, number>()
  let isDraining = false

  const findOutcome = ({ actors }: StoredMachineState, { actor, output, error }: ActorOutcome) => {
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

  const readAt = async (id: string, to: number | undefined, option: 'at' | 'record') => {
    if (to === undefined) {
      const { record, head } = await readEnd(id)
      return { ...record, at: head, isLast: true }
    }
    // Not read from the log, whose last record may be damaged.
    const head = (await store.get(id))?.head ?? 0
    if (head === 0) throw unknownSessionError(id)
    if (!Number.isSafeInteger(to) || to < 1 || to > head)
      throw optionError(`Session '${id}' has records 1 to ${head}. There is no record ${String(to)}.`, option)
    const { record } = await readLogEnd(store, id, to)
    checkOwner(id, record)
    return { ...record, at: to, isLast: to === head }
  }

  const refuseDraining = (): void => {
    if (!isDraining) return
    throw new UsageError(
      'draining',
      'The worker in this process was drained, so it runs no more sessions. Call this in another process.',
      'drain',
    )
  }

  /** Whether messages of this type are for the machine. If the machine has agents, a wildcard does not match their messages. */
  const takesItself = (type: string): boolean =>
    machine.events.includes(type) || (!hasAgents && chart.knows(type))

  const checkEvent = (event: AnyEventObject): AnyEventObject => {
    const type: unknown = (event as AnyEventObject | null | undefined)?.type
    if (typeof type !== 'string')
      throw inputError("An event is an object with a type: { type: 'APPROVE' }.", 'event')
    if (type.startsWith('xstate.') || !chart.knows(type)) {
      const known = machine.events.filter((one: string) => !one.startsWith('xstate.'))
      throw new UsageError(
        'unknown_event',
        `The machine '${machine.id}' has no event '${type}'. Its events: ${known.join(', ') || 'none'}.`,
        type,
      )
    }
    return copyJson(event, 'event')
  }

  /** Sends an event that an actor raised after its session was released. As in XState, an ended machine ignores it. */
  const sendLate = (id: string, event: AnyEventObject): Promise<void> =>
    sendInOrder(store, id, async () => {
      const { record } = await readEnd(id)
      if (record.state.status === 'active') await deliver(id, event)
    })

  const deliver = async (id: string, event: AnyEventObject | null, key?: string): Promise<void> => {
    const { holder } = await putMessage(store, id, JSON.stringify({ event, key }))
    if (!holder || held.has(id)) driveLater(id)
  }

  const answer = async (
    id: string,
    state: StoredMachineState,
    { session: named, ...message }: AgentMessage,
    key: string | undefined,
  ): Promise<void> => {
    const agents = await readAgents(id, state)
    // The call may no longer be pending. Only the key then leads to its agent.
    if (key !== undefined && agents.some(({ keys }) => keys.includes(key))) return
    const { callId: called } = message as { callId?: string }
    const child =
      agents.find(({ session, calls }) =>
        named === undefined ? calls.some(({ callId }) => callId === called) : session === named,
      ) ?? (named === undefined && agents.length === 1 ? agents[0] : undefined)
    if (!child) {
      const [what, keys] = called === undefined ? ["the agent's session", 'session'] : ['the call', '...call']
      throw new UsageError(
        'unknown_call',
        `Session '${id}' has no agent for '${message.type}'. Add ${what}: { type: '${message.type}', ${keys}, … }, from ` +
          'pending in the result of settled().',
        id,
      )
    }
    const parts = { store, clock, tools: child.agent.parts.tools }
    await sendToStoredSession(parts, child.session, message as SessionMessage, { key, isParent: true })
    await deliver(id, null)
  }

  const findAgent = (src: string): AgentInternals | undefined => toAgent(machine.implementations.actors[src])

  const listAgents = (id: string, { actors }: StoredMachineState) =>
    Object.values(actors).flatMap(({ src, key }) => {
      const agent = findAgent(src)
      return agent ? [{ session: getChildId(id, key), agent }] : []
    })

  const readAgents = (id: string, state: StoredMachineState) =>
    Promise.all(
      listAgents(id, state).map(async ({ session, agent }) => {
        const folded = await readAgent(session)
        const found = folded?.run ? listAnswerableCalls(folded.run.context) : []
        const calls = found.map((call): PendingAgentCall => ({ ...call, session }))
        return { session, agent, calls, keys: folded?.keys ?? [] }
      }),
    )

  /** Null without records. */
  const readAgent = async (session: string): Promise<FoldedSession | null> =>
    (await store.get(session)) === null ? null : readSessionAt(store, session)

  /** Cancels agents whose states were exited by a process that died before cancelling them. */
  const cancelLeft = async (id: string, state: StoredMachineState): Promise<void> => {
    if (!hasAgents) return
    const inFlight = new Set(listAgents(id, state).map(({ session }) => session))
    for await (const child of listSessions(store, { parent: id }))
      if (!inFlight.has(child.id)) await cancelChild(store, clock, child.id).catch(reportDamage(id))
  }

  /** A handler for `catch`, because the damaged log of an agent must not block the machine. */
  const reportDamage =
    (id: string) =>
    (error: unknown): undefined => {
      if (error instanceof StatewrightError && error.retryable) throw error
      report(error, id)
    }

  /** The last record. @throws {StoreError} `unknown_session` */
  const readEnd = async (id: string): Promise<{ record: MachineRecord; head: number }> => {
    const { record, head } = await readLogEnd(store, id)
    if (head === 0) throw unknownSessionError(id)
    checkOwner(id, record)
    return { record, head }
  }

  function checkOwner(id: string, record: MachineRecord | null): asserts record is MachineRecord {
    if (record?.machine === machine.id) return
    const owner = record ? `the machine '${record.machine}'` : 'an agent'
    throw new UsageError(
      'other_session',
      `Session '${id}' belongs to ${owner}, not to the machine '${machine.id}'. Choose another id.`,
      id,
    )
  }

  /** Drives a session in the background, if no other process holds it. */
  const driveLater = (id: string): void => {
    if (isDraining) return
    take(id).then(
      (local) => local?.done.catch(() => undefined),
      (error: unknown) => report(error, id),
    )
  }

  const report = (error: unknown, session: string): void => {
    if (!(error instanceof StatewrightError && error.retryable)) reportError(listener, error, { session })
  }

  /** Acquires a session and drives it until it settles. Returns null if another process holds it. */
  const take = (id: string, start?: { input: unknown }): Promise<LocalSession | null> => {
    const known = held.get(id)
    // A start by another call may fail because of that call's input.
    if (known) return start ? known.catch(() => null) : known
    refuseDraining()
    const opening = open(id, start).then(
      (hold) => {
        const done = drive(id, hold)
        // `settled` may have returned by then.
        done.catch((error: unknown) => report(error, id))
        return { hold, done }
      },
      (error: unknown) => {
        held.delete(id)
        if (error instanceof UsageError && !start) skipped.set(id, readElapsed(clock) + leaseMs)
        return nullIfTakenOver(error)
      },
    )
    held.set(id, opening)
    return opening
  }

  const drive = async (id: string, hold: MachineHold): LocalSession['done'] => {
    const released = await hold.drive().finally(() => held.delete(id))
    // A message may have arrived between the last poll and the release.
    const found = await (async () => store.inbox?.read(id))().catch((error: unknown) => {
      report(error, id)
    })
    const isUnread = (found ?? []).some(({ message }) => message > released.lastMessage)
    if (isUnread) driveLater(id)
    return { ...released, isUnread }
  }

  const open = async (id: string, start?: { input: unknown }): Promise<MachineHold> => {
    const since = readElapsed(clock)
    const by = { clock, holder: label }
    return acquireSessionLog(store, id, by, async (lease) => {
      // No other process can write from here on, so a head of 0 still means an empty log.
      const end = lease.head === 0 ? emptyLogEnd : await readLogEnd(store, id)
      if (end.head === 0 && !start) throw unknownSessionError(id)
      let record: MachineRecord | undefined
      if (end.head > 0) {
        checkOwner(id, end.record)
        record = { ...end.record, state: await fit(id, end.record) }
        await cancelLeft(id, record.state)
      }
      const actors = record ? await readActors(id, record.state) : []
      // Another process may have acquired the session during slow reads.
      if (readElapsed(clock) - since > leaseMs / 2) await store.renew(lease, leaseMs)
      const log = new MachineLog({ ...by, store, lease }, end, machine.id)
      const onError = (error: unknown): void => report(error, id)
      const hold = createMachineHold(record, {
        chart,
        log,
        clock,
        isOnce: (src) => once.has(src),
        run: (actor, actorReport) => runActor(id, actor, actorReport),
        sendLate: (event) => void sendLate(id, event).catch(onError),
        onError,
      })
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

  /** The stored state, migrated if necessary. @throws {UsageError} `chart_changed` if the chart lacks a part of it */
  const fit = async (id: string, { state, chart: from }: MachineRecord): Promise<StoredMachineState> => {
    const hasChanged = from !== machine.version || chart.findMisfits(state).length > 0
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
    const misfits = chart.findMisfits(fitted, state.value)
    if (misfits.length === 0) return fitted
    throw chartChangedError(
      `Session '${id}' does not fit the machine '${machine.id}': ${misfits.join(', and ')}. ` +
        `${migrate ? 'Return another state from migrate' : 'Pass migrate to durable(…)'}, or change the chart. ` +
        "'statewright diff' compares two versions of a machine.",
      id,
    )
  }

  /** The running actors with their inputs, which are in the records that started them. */
  const readActors = (id: string, { actors }: StoredMachineState): Promise<StartedActor[]> =>
    Promise.all(
      Object.entries(actors).map(async ([actorId, actor]) => {
        const { record } = await readLogEnd(store, id, actor.at)
        const agent = findAgent(actor.src)
          ? await readAgent(getChildId(id, actor.key)).catch(reportDamage(id))
          : null
        const keys = agent?.keys ?? []
        return { ...actor, id: actorId, input: record?.starts?.[actorId]?.input, keys }
      }),
    )

  const runActor = (
    session: string,
    { id, src, key, input, keys = [] }: StartedActor,
    actorReport: ActorReport,
  ): RunningActor => {
    const agent = findAgent(src)
    if (agent) {
      const child = { name: src, sessionId: getChildId(session, key), parentSessionId: session }
      return startAgentActor({ agent, store, clock, child, input, keys, report: actorReport })
    }
    // The copy is what the actor would receive after a restart.
    const logic = machine.implementations.actors[src] as AnyActorLogic
    const actor = createActor(logic, { id, input: copyJson(input, 'input') })
    keysByActor.set(actor, `${session}:${key}`)
    actor.subscribe({
      complete: () => actorReport.done((actor.getSnapshot() as { output?: unknown }).output),
      error: (error) => actorReport.failed(error),
    })
    actor.start()
    return { isResting: false, stop: () => void actor.stop() }
  }

  /** Continues a session for the worker. @returns the remaining sleep in milliseconds */
  const continueSession = async (id: string): Promise<number | undefined> => {
    const local = await take(id)
    if (!local) throw new StoreError('session_busy', `Session '${id}' is in use by another process.`, id)
    return (await local.done).sleepMs
  }

  const listWaiting = async (): Promise<string[]> => {
    const unread: string[] = []
    const now = readElapsed(clock)
    for (const { sessionId } of await listUnread(store, listSessions(store, { agent: label }))) {
      if ((skipped.get(sessionId) ?? 0) > now || held.has(sessionId)) continue
      const listed = await store.get(sessionId)
      // A deleted session may be started again.
      if (listed === null) continue
      if (listed.summary?.agent !== label) skipped.set(sessionId, Infinity)
      else if (listed.holder === null) unread.push(sessionId)
    }
    return unread
  }

  const drain = async (): Promise<void> => {
    isDraining = true
    const local = await Promise.allSettled(held.values())
    const sessions = local.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []))
    for (const { hold } of sessions) hold.stop()
    await Promise.allSettled(sessions.map(({ done }) => done))
  }

  /** @throws {UsageError} if the last event had no effect, or an outcome waits for another chart */
  const toSettled = async (
    id: string,
    { state, refused = state.held[0]?.refused }: MachineRecord,
    head: number,
  ): Promise<SettledState<Machine>> => {
    if (refused) throw new UsageError(refused.code, refused.message, refused.subject)
    const pending = (await readAgents(id, state)).flatMap(({ calls }) => calls)
    return { ...toPublicState(state), pending, head } as SettledState<Machine>
  }

  const fork: DurableMachine<Machine>['fork'] = async (sessionId, options = {}) => {
    const from = checkSessionId(sessionId)
    checkOptions('fork(id, options)', options, { at: null, with: changeRule })
    const { state, at, chart: version, isLast } = await readAt(from, options.at, 'at')
    const change = options.with
    const outcome = change && !('type' in change) ? findOutcome(state, change) : undefined
    const event = change && !outcome ? checkEvent(change as AnyEventObject) : undefined
    if (event && state.status !== 'active') throw endedError(from)
    const actors = await readActors(from, state)
    const running = actors.filter(({ id }) => id !== outcome?.actorId)
    const id = createId()
    // The fork could reuse a key from the source.
    const moved = running.map((actor, i) => ({
      ...actor,
      source: getChildId(from, actor.key),
      key: `${actor.src}.1.${i + 1}`,
    }))
    const by = { clock, holder: 'a fork' }
    const agents = moved
      .filter(({ src }) => findAgent(src))
      .map(({ source, key }) => ({ source, id: getChildId(id, key) }))
    if (agents.length > 0 && !isLast)
      throw new UsageError(
        'unsupported_fork',
        `An agent is running at record ${at} of session '${from}', and only its current state can be copied. Fork at ` +
          'the last record, or at a record where no agent runs.',
        'at',
      )
    /** The functions that write the copies. An agent without records starts in the fork. */
    const copies = await Promise.all(
      agents.map(async ({ source, id: copy }) => {
        const folded = await readAgent(source)
        if (!folded?.run) return undefined
        return () => forkSession({ store, clock }, { sessionId: source, folded, id: copy, parent: id })
      }),
    )
    // The agents, and the machine with them, may have continued since the record was read.
    if (agents.length > 0 && (await readEnd(from)).head !== at) return fork(sessionId, options)
    await acquireSessionLog(store, id, by, async (lease) => {
      for (const copy of copies) await copy?.()
      const log = new MachineLog({ ...by, store, lease }, emptyLogEnd, machine.id)
      const notDelivered = { code: 'forked', message: 'Not delivered yet.' }
      const forked: StoredMachineState = {
        ...state,
        actors: Object.fromEntries(moved.map(({ id: name, src, key }) => [name, { src, at: 1, key }])),
        held: [...state.held, ...(outcome ? [{ event: outcome, refused: notDelivered }] : [])],
        inbox: 0,
        keys: [],
      }
      log.write({
        machine: machine.id,
        ...(version !== undefined && { chart: version }),
        event: { type: 'xstate.fork' },
        forkedFrom: { sessionId: from, seq: at },
        starts: Object.fromEntries(moved.map(({ id: name, src, input }) => [name, { src, input }])),
        state: forked,
      })
      log.list(forked, undefined)
      await log.close()
    }).catch(async (error: unknown) => {
      // The caller never gets the id of this fork.
      const left = agents.map((agent) => deleteSession(store, clock, agent.id).catch(() => 0))
      await Promise.all(left)
      throw error
    })
    if (event) await deliver(id, event)
    return id
  }

  return {
    machine,

    async start(sessionId, options: { input?: unknown } = {}) {
      const id = checkSessionId(sessionId)
      checkOptions('start(id, options)', options, { input: null })
      const input = copyJson(options.input, 'input')
      for (;;) {
        await take(id, { input })
        const { head, record } = await readLogEnd(store, id, 1)
        if (head > 0) {
          checkOwner(id, record)
          if (toCanonical(record.event['input']) === toCanonical(input)) return
          throw new UsageError(
            'already_started',
            `Session '${id}' was started with a different input. Choose another id, or send the session an event.`,
            id,
          )
        }
        await wait(clock, lookMs)
      }
    },

    async send(sessionId, event: AnyEventObject, options = {}) {
      const id = checkSessionId(sessionId)
      checkOptions('send(id, event, options)', options, { key: keyRule })
      const { key } = options
      const isAnswer = isAgentMessage(event) && !takesItself(event.type)
      const checked = isAnswer ? event : checkEvent(event)
      await sendInOrder(store, id, async () => {
        const { state } = (await readEnd(id)).record
        // The event itself may have ended the session.
        if (key !== undefined && state.keys.includes(key)) return
        if (isAnswer) return answer(id, state, event, key)
        if (state.status !== 'active') throw endedError(id)
        await deliver(id, checked, key)
      })
    },

    async settled(sessionId, options = {}) {
      const id = checkSessionId(sessionId)
      checkOptions('settled(id, options)', options, { timeoutMs: createTimeRule(0, Infinity) })
      const { timeoutMs: ms = Infinity } = options
      let isOver = false
      /** The latest known state, for the timeout error. */
      let readState = (): StoredMachineState | undefined => undefined
      const settle = async (): Promise<SettledState<Machine>> => {
        for (;;) {
          const { record, head } = await readEnd(id)
          readState = () => record.state
          // After the time limit, no caller receives this result.
          if (record.state.status !== 'active' || isOver) return toSettled(id, record, head)
          const local = await take(id)
          if (local) readState = () => local.hold.state
          const done = (await local?.done.catch(nullIfTakenOver)) ?? null
          // Another process may have written between the read above and the acquisition.
          if (done?.hasSettled && !done.isUnread) return toSettled(id, done.record, done.head)
          if (done) refuseDraining()
          else await wait(clock, lookMs)
        }
      }
      if (ms === Infinity) return settle()
      const late = (): UsageError => notSettledError(id, ms, readState())
      return limitTime({ ms, clock, late }, settle()).finally(() => (isOver = true))
    },

    worker(options = {}) {
      checkOptions('worker(options)', options, {
        pollMs: createTimeRule(1, maxTimerMs),
        concurrency: countRule,
      })
      refuseDraining()
      const { pollMs = 1000, concurrency = 50 } = options
      const waker = createAlarmWaker({
        timers,
        clock,
        pollMs,
        concurrency,
        mayWake: ({ agent }) => agent === label,
        run: continueSession,
        listWaiting,
        drain,
        onError: listener,
      })
      waker.start()
      return {
        get active() {
          return waker.active
        },
        drain: () => waker.stop(),
      }
    },

    async replay(sessionId, record) {
      const id = checkSessionId(sessionId)
      const { event, refused, state, at } = await readAt(id, record, 'record')
      const snapshot = { record: at, event, ...(refused && { refused }), ...toPublicState(state) }
      return snapshot as MachineSnapshot<Machine>
    },

    fork,

    list: () => listSessions(store, { agent: label }),

    async delete(sessionId) {
      const id = checkSessionId(sessionId)
      // The log of a listed session may be damaged.
      if ((await store.get(id))?.summary?.agent !== label) {
        const { head, record } = await readLogEnd(store, id)
        if (head > 0) checkOwner(id, record)
      }
      return (await deleteSession(store, clock, id)) > 0
    },
  }
}

/** The machine starts and cancels its agents itself. */
const agentMessages: ReadonlySet<string> = new Set(
  messageTypes.filter((type) => type !== 'message' && type !== 'cancel'),
)

function isAgentMessage(event: unknown): event is AgentMessage {
  return agentMessages.has(String((event as { type?: unknown } | null | undefined)?.type))
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
  if (isHeldElsewhere(error)) return null
  throw error
}

const chartChangedError = (message: string, id: string, cause?: unknown): UsageError =>
  new UsageError('chart_changed', message, id, { cause })

function endedError(id: string): UsageError {
  const message = `Session '${id}' has ended and accepts no more events. Start another session.`
  return new UsageError('session_ended', message, id)
}

function notSettledError(id: string, ms: number, state: StoredMachineState | undefined): UsageError {
  const running = Object.values(state?.actors ?? {}).map(({ src }) => src)
  const work = running.length > 0 ? `, where ${running.join(', ')} runs` : ''
  const found = state
    ? `Its state is ${formatStateValue(state.value)}${work}`
    : 'The store did not return its state'
  return new UsageError('not_settled', `Session '${id}' did not settle within ${ms} ms. ${found}.`, id)
}
