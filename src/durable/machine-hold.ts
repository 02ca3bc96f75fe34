import type { AnyEventObject } from 'xstate'
import { createNap } from '../core/base/abort.js'
import { type Clock, readElapsed } from '../core/base/clock.js'
import { describeError, type StatewrightError } from '../core/base/errors.js'
import { parseJsonOr } from '../core/base/json.js'
import { getPlatform } from '../core/base/platform.js'
import { asObject } from '../core/base/values.js'
import {
  type MachineEvent,
  type MachineRecord,
  type StoredMachineState,
  createMachineLabel,
  draftMachineRecord,
  formatStateValue,
  openMachineRecord,
} from '../core/sessions/log/machine-record.js'
import { maxKeys } from '../core/sessions/inbox/queued-message.js'
import { leaseMs, getAcquiredAt } from '../core/sessions/log/lease.js'
import type { DurableChart, StartedActor, Step } from './chart.js'
import { copyJson, toPlainFailure } from './plain-json.js'
import { isRecord } from '../../guards/lib/stored.js'
import { setAlarm } from '../core/sessions/alarm.js'
import { type LogEnd, WriteAheadLog, type WriteAheadLogParts } from '../core/sessions/log/write-ahead-log.js'
import type { InboxMessage } from '../core/sessions/store/inbox.js'
import type { SessionStore } from '../core/sessions/store/store.js'

export interface RunningActor {
  /** Ends the actor's work. `isLeft` means that the chart has exited the actor's state. Otherwise, this process is stopping. */
  stop(isLeft: boolean): Promise<void> | void
  /** Whether the session may be released while the actor waits. Only agents wait, for people or for a time. */
  readonly isResting: boolean
  /** When an idle agent wakes, in milliseconds since the epoch. */
  readonly wakeAt?: number | undefined
  readonly keys?: readonly string[]
  /** Polls for messages to an idle agent. */
  wake?(): void
  send?(event: AnyEventObject): void
}

export interface ActorReport {
  done(output: unknown): void
  failed(error: unknown): void
  changed(): void
}

interface HoldParts {
  chart: DurableChart
  log: MachineLog
  clock: Clock
  /** Whether the actor must not run again after a crash. */
  isOnce: (src: string) => boolean
  run: (actor: StartedActor, report: ActorReport) => RunningActor
  /** Sends an event that a function of the chart has sent to `self` after the session was released. */
  sendLate: (event: MachineEvent) => void
  onError: (error: unknown) => void
}

export interface ReleasedSession {
  record: MachineRecord
  head: number
  /** Whether the machine waits for an event or a time, or has ended. A stop may release the session earlier. */
  hasSettled: boolean
  lastMessage: number
  /** Milliseconds until the session continues without an event. */
  sleepMs: number | undefined
}

interface Incoming {
  event: MachineEvent
  message?: { number: number; key?: string | undefined }
  outcomeOf?: { id: string; key: string }
  delay?: string
  isHeld?: true
}

/** The maximum number of events per write. More events would delay their effects. */
const mostPerWrite = 100

export type MachineHold = ReturnType<typeof createMachineHold>

/** Drives one session while this process holds it. `stored` is the last record, perhaps migrated. */
export function createMachineHold(
  stored: MachineRecord | undefined,
  { chart, log, clock, isOnce, run, sendLate, onError }: HoldParts,
) {
  let last = stored as MachineRecord
  const waiting: Incoming[] = []
  const running = new Map<string, { key: string; actor: RunningActor }>()
  const nap = createNap(clock)
  let isListedAsWorking = false
  let isStopping = false
  let isOver = false
  let source = 2

  /** Takes an event, or starts the machine, and adds the record. */
  const apply = (before: StoredMachineState | null, event: MachineEvent, message?: Incoming['message']) => {
    const sendToSelf = (sent: AnyEventObject): void => {
      try {
        const own = copyJson(sent, 'event') as MachineEvent
        if (isOver) sendLate(own)
        else add({ event: own })
      } catch (error) {
        onError(error)
      }
    }
    const step = chart.take(before, event, { now: log.now(), seq: log.head + 1, sendToSelf })
    const inputs = step.starts.map(({ id, src, input }): [string, { src: string; input: unknown }] => [
      id,
      { src, input: copyJson(input, `the input of '${src}'`) },
    ])
    const starts = inputs.length > 0 && { starts: Object.fromEntries(inputs) }
    writeRecord({ event, state: step.state, ...starts }, message)
    return step
  }

  const receive = (number: number, message: { event: MachineEvent | null; key?: string } | null): void => {
    if (message?.event) return add({ event: message.event, message: { number, key: message.key } })
    log.inbox.refuse(number)
    // A message for a running agent has arrived.
    if (message) for (const { actor } of running.values()) actor.wake?.()
  }

  const add = (incoming: Incoming): void => {
    waiting.push(incoming)
    nap.wake()
  }

  /** Events that the machine sent to itself, a due timer, or events from outside. */
  const takeBatch = (): Incoming[] => {
    if (last.state.status !== 'active') return waiting.splice(0)
    if (isStopping) {
      // Another process cannot repeat the actors in `once`, so their outcomes are stored before the stop.
      const at = waiting.findIndex(({ outcomeOf }) => outcomeOf && isOnceInFlight(outcomeOf.key))
      return at < 0 ? [] : waiting.splice(at, 1)
    }
    const now = log.now()
    const due = last.state.delays.filter(({ at }) => at <= now).toSorted((a, b) => a.at - b.at)
    const sources = [
      last.state.queue.slice(0, mostPerWrite).map((event) => ({ event })),
      due.slice(0, 1).map(({ event, id }) => ({ event, delay: id })),
      waiting,
    ]
    // The sources take turns, because a machine may send itself events endlessly.
    const next = [1, 2, 3].map((i) => (source + i) % 3).find((i) => sources[i]?.length)
    if (next === undefined) return []
    source = next
    return sources[next]?.splice(0, mostPerWrite) ?? []
  }

  /** Processes one event. Returns the step, or nothing if the event had no effect. */
  const take = (incoming: Incoming): Step[] => {
    const { event, message, outcomeOf, isHeld } = incoming
    if (last.state.status !== 'active') {
      if (message) log.inbox.refuse(message.number)
      return []
    }
    if (outcomeOf && last.state.actors[outcomeOf.id]?.key !== outcomeOf.key) return []
    if (isHeld && !last.state.held.some((one) => one.event === event)) return []
    const own = last.state.queue[0] === event
    const before = withoutTaken(incoming, own)
    try {
      return [apply(before, event, message)]
    } catch (error) {
      if (isHeld) return []
      const { code, message: text, subject } = error as StatewrightError
      const refused = { code, message: text, ...(subject !== undefined && { subject }) }
      const state = outcomeOf ? { ...before, held: [...before.held, { event, refused }] } : before
      writeRecord({ event, state, refused }, message)
      onError(error)
      return []
    }
  }

  const withoutTaken = ({ event, outcomeOf, delay, isHeld }: Incoming, isOwn: boolean) => {
    const { actors, delays, queue, held } = last.state
    return {
      ...last.state,
      ...(outcomeOf && {
        actors: Object.fromEntries(Object.entries(actors).filter(([id]) => id !== outcomeOf.id)),
      }),
      ...(delay !== undefined && { delays: delays.filter(({ id }) => id !== delay) }),
      ...(isOwn && { queue: queue.slice(1) }),
      ...(isHeld && { held: held.filter((one) => one.event !== event) }),
    }
  }

  const writeRecord = (
    { state, ...record }: Omit<MachineRecord, 'machine' | 'chart'>,
    message: Incoming['message'],
  ): void => {
    const { id: machine, version } = chart.machine
    // A batch may write several records. Actors are stopped after the last one.
    const left = listLeft(state).flatMap(([, { actor }]) => actor.keys ?? [])
    const keys = [...new Set([...state.keys, ...left, message?.key ?? []].flat())].slice(-maxKeys)
    const whole = { ...state, inbox: Math.max(state.inbox, message?.number ?? 0), keys }
    last = { machine, ...(version !== undefined && { chart: version }), ...record, state: whole }
    log.write(last, message)
  }

  /** Makes the records of these steps durable, then starts their actors. */
  const write = async (steps: readonly Step[]): Promise<void> => {
    const hasWork = Object.keys(last.state.actors).length > 0 || last.state.queue.length > 0
    const left = listLeft(last.state)
    const hasEffects = left.length > 0 || steps.some(({ effects, sent }) => effects.length + sent.length > 0)
    if (!hasWork && !hasEffects && waiting.length === 0) await rest()
    else {
      // A worker continues the session if this process dies.
      log.list(last.state, isListedAsWorking ? undefined : log.now() + leaseMs)
      isListedAsWorking = true
      await log.flush()
      // The process may have been suspended during the write.
      await log.checkHeld()
    }
    for (const [id] of left) running.delete(id)
    const stops = left.map(async ([, { actor }]) => actor.stop(true))
    for (const { starts, sent, effects } of steps) {
      for (const actor of starts) if (last.state.actors[actor.id]?.key === actor.key) startActor(actor)
      for (const { to, event } of sent) running.get(to)?.actor.send?.(event)
      for (const effect of effects) void (async () => effect())().catch(onError)
    }
    await Promise.all(stops.map((stop) => stop.catch(onError)))
  }

  const listLeft = ({ actors }: StoredMachineState) =>
    [...running].filter(([id, { key }]) => actors[id]?.key !== key)

  const startActor = (actor: StartedActor): void => {
    const { id, key } = actor
    const end = (event: MachineEvent): void => add({ event, outcomeOf: { id, key } })
    const report = {
      done: (output: unknown) => {
        try {
          end(createDoneEvent(id, copyJson(output, `the output of '${actor.src}'`)))
        } catch (error) {
          if (isOnce(actor.src)) end(createDoubt(actor, error))
          else report.failed(error)
        }
      },
      failed: (error: unknown) => end(createErrorEvent(id, error)),
      changed: nap.wake,
    }
    try {
      running.set(id, { key, actor: run(actor, report) })
    } catch (error) {
      report.failed(error)
    }
  }

  /** The error event for an actor in `once` whose effect is unknown. */
  const createDoubt = ({ id, key, src }: StartedActor, cause?: unknown): MachineEvent => {
    const why =
      cause === undefined
        ? 'was running when its process ended'
        : `has an output that cannot be stored (${describeError(cause)})`
    const message = `'${src}' ${why}, and must not run again (once). Find out whether it took effect, by its key '${log.sessionId}:${key}'.`
    const error = Object.assign(new Error(message), {
      code: 'in_doubt',
      ...(cause !== undefined && { cause: toPlainFailure(cause) }),
    })
    return createErrorEvent(id, error)
  }

  const isWorking = (): boolean => [...running.values()].some(({ actor }) => !actor.isResting)

  const mayRest = (): boolean => {
    if (log.hasFailed) return true
    if (isStopping) return ![...running.values()].some(({ key }) => isOnceInFlight(key))
    return last.state.queue.length === 0 && !isWorking() && !log.inbox.hasOpenMessages
  }

  const isOnceInFlight = (key: string): boolean =>
    Object.values(last.state.actors).some((actor) => actor.key === key && isOnce(actor.src))

  const waitForWork = async (): Promise<void> => {
    const next = isStopping ? Infinity : Math.min(...last.state.delays.map(({ at }) => at))
    // A message may be on its way from the store.
    if (log.inbox.hasOpenMessages) getPlatform().runNextTurn(nap.wake)
    await nap.sleep(Math.max(1, next - log.now()))
  }

  const rest = async (): Promise<ReleasedSession> => {
    const sleeping = [...running.values()].flatMap(({ actor }) => actor.wakeAt ?? [])
    const isWorkLeft =
      isStopping && (isWorking() || waiting.length + last.state.queue.length > 0 || log.inbox.hasOpenMessages)
    const times = [...last.state.delays.map(({ at }) => at), ...sleeping, ...(isWorkLeft ? [log.now()] : [])]
    const wakeAt = last.state.status === 'active' && times.length > 0 ? Math.min(...times) : undefined
    isListedAsWorking = false
    await log.rest(last.state, wakeAt)
    return {
      record: last,
      head: log.head,
      hasSettled: !isWorkLeft,
      lastMessage: log.inbox.lastDelivered,
      sleepMs: wakeAt === undefined ? undefined : Math.max(0, wakeAt - log.now()),
    }
  }

  /** Stops all actors, because this process no longer holds the session or is about to release it. */
  const stopActors = async (): Promise<void> => {
    const left = [...running.values()]
    running.clear()
    nap.wake()
    await Promise.allSettled(left.map(async ({ actor }) => actor.stop(false)))
  }

  log.onFailure(() => void stopActors())
  log.inbox.onMessage(receive)

  return {
    get state(): StoredMachineState {
      return last.state
    },

    /** Writes the first record. @throws if the chart cannot start */
    begin: async (input: unknown): Promise<void> => write([apply(null, { type: 'xstate.init', input })]),

    /** Continues a stored session. Running actors start again, with the inputs in their records. */
    resume(actors: readonly StartedActor[]): void {
      for (const actor of actors) {
        const { id, key, src } = actor
        if (isOnce(src)) add({ event: createDoubt(actor), outcomeOf: { id, key } })
        else startActor(actor)
      }
      for (const { event } of last.state.held) waiting.push({ event, isHeld: true })
    },

    async drive(): Promise<ReleasedSession> {
      try {
        await log.inbox.readFirst()
        for (;;) {
          const batch = takeBatch()
          if (batch.length > 0) {
            await write(batch.flatMap((incoming) => take(incoming)))
            // A chart whose actors settle at once must not block the process.
            await new Promise<void>((resolve) => getPlatform().runNextTurn(resolve))
          } else if (!mayRest()) await waitForWork()
          else {
            const wasStopping = isStopping
            const released = await rest()
            if (wasStopping || waiting.length === 0) return released
          }
        }
      } finally {
        isOver = true
        log.inbox.close()
        await stopActors()
        await log.close()?.catch(() => undefined)
      }
    },

    /** Stops as soon as every actor that must not run again has ended, so that another process can continue. */
    stop(): void {
      isStopping = true
      nap.wake()
    },
  }
}

export const createDoneEvent = (id: string, output: unknown): MachineEvent => ({
  type: `xstate.done.actor.${id}`,
  output,
  actorId: id,
})

export const createErrorEvent = (id: string, error: unknown): MachineEvent => ({
  type: `xstate.error.actor.${id}`,
  error: toPlainFailure(error),
  actorId: id,
})

/** A message in the inbox of a machine's session. A message without an event only wakes the session. */
interface MachineMessage {
  event: MachineEvent | null
  key?: string
}

function parseMessage({ text }: InboxMessage): MachineMessage | null {
  const { event, key } = asObject(parseJsonOr(text, null)) ?? {}
  const isEvent = isRecord(event) && typeof event['type'] === 'string'
  if (event !== null && !isEvent) return null
  return { event: event as MachineEvent | null, ...(typeof key === 'string' && { key }) }
}

const inboxFormat = { parse: parseMessage, isQueued: () => false }

/** The end of a machine's log. `record` is null if the log is empty. */
interface MachineLogEnd extends LogEnd {
  record: MachineRecord | null
}

export const emptyLogEnd: MachineLogEnd = { head: 0, check: '', at: 0, record: null }

/** @throws {StoreError} `corrupt_log`, `newer_log`; the log of an agent has a `head` but no `record` */
export async function readLogEnd(store: SessionStore, id: string, to?: number): Promise<MachineLogEnd> {
  const records = await store.read(id, { from: 'snapshot', ...(to !== undefined && { to }) })
  const last = records.at(-1)
  if (!last) return emptyLogEnd
  return { head: last.seq, check: last.check, at: last.at, record: openMachineRecord(last, id) }
}

export class MachineLog extends WriteAheadLog<MachineMessage> {
  readonly #machine: string
  readonly #foundHead: number
  /** The store's time minus the elapsed time of this process. */
  #offset: number

  constructor(parts: WriteAheadLogParts, end: MachineLogEnd, machine: string) {
    const { inbox = 0, keys = [] } = end.record?.state ?? {}
    super(parts, { ...end, inbox, queued: 0, keys }, inboxFormat)
    this.#machine = machine
    this.#foundHead = end.head
    this.#offset = getAcquiredAt(parts.lease) - readElapsed(parts.clock)
  }

  /** Milliseconds since the epoch, by the store's clock. */
  now(): number {
    return Math.max(this.lastTime, Math.floor(this.#offset + readElapsed(this.clock)))
  }

  write(record: MachineRecord, message?: { number: number; key?: string | undefined }): void {
    this.addRecord((seq) => draftMachineRecord(seq, this.now(), record))
    if (message) this.inbox.markApplied(message.number, message.key)
  }

  /** Sets the list entry. The next record also sets the alarm that wakes the session. */
  list({ status, value }: StoredMachineState, wakeAt: number | undefined): void {
    this.summary = {
      title: this.sessionId,
      state: status === 'done' ? 'COMPLETED' : status === 'error' ? 'ERROR' : null,
      reason: null,
      value: formatStateValue(value),
      ...(wakeAt !== undefined && { wakeAt }),
      agent: createMachineLabel(this.#machine),
      runs: 1,
      messages: 0,
      totalTokens: 0,
      cost: null,
    }
  }

  /** Writes all pending records, then releases the session. Sets the alarm if the session waits for a time. */
  async rest(state: StoredMachineState, wakeAt: number | undefined): Promise<void> {
    if (this.failure) throw this.failure
    if (this.isResting && !this.hasPending) return
    if (wakeAt !== undefined && !this.hasPending)
      await setAlarm(this.store, this.sessionId, wakeAt, { name: createMachineLabel(this.#machine) })
    if (this.head === this.#foundHead) {
      await this.close()
      return
    }
    this.list(state, wakeAt)
    await this.writeRest()
  }
}
