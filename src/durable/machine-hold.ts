import type { AnyEventObject } from 'xstate'
import { type Clock, maxTimerMs } from '../core/base/clock.js'
import { describeError, type StatewrightError } from '../core/base/errors.js'
import { getPlatform, warnProcess } from '../core/base/platform.js'
import type { MachineEvent, MachineRecord, StoredMachineState } from '../core/sessions/log/machine-record.js'
import { maxKeys } from '../core/sessions/inbox/queued-message.js'
import { leaseMs } from '../core/sessions/log/lease.js'
import type { DurableChart, StartedActor, Step } from './chart.js'
import type { MachineLog } from './machine-log.js'
import { copyJson, toPlainFailure } from './plain-json.js'

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

export interface HoldParts {
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

/** One machine's session while this process holds it. Drives the machine until the machine settles. */
export class MachineHold {
  readonly #parts: HoldParts
  readonly #id: string
  /** The last record, with the state that a `migrate` function may have changed. */
  #record!: MachineRecord
  readonly #incoming: Incoming[] = []
  readonly #running = new Map<string, { key: string; actor: RunningActor }>()
  #wake: () => void = () => undefined
  #timer: unknown
  #isListedAsWorking = false
  #isStopping = false
  #isOver = false
  #source = 2

  constructor(parts: HoldParts, record: MachineRecord | undefined) {
    this.#parts = parts
    this.#id = parts.log.sessionId
    if (record) this.#record = record
    parts.log.onFailure(() => void this.#stopActors())
    parts.log.inbox.onMessage((number, message) => this.#receive(number, message))
  }

  get state(): StoredMachineState {
    return this.#record.state
  }

  /** Writes the first record. @throws if the chart cannot start */
  async begin(input: unknown): Promise<void> {
    await this.#write([this.#apply(null, { type: 'xstate.init', input })])
  }

  /** Continues a stored session. Running actors start again, with the inputs in their records. */
  resume(actors: readonly StartedActor[]): void {
    for (const actor of actors) {
      const { id, key, src } = actor
      if (this.#parts.isOnce(src)) this.#add({ event: this.#createDoubt(actor), outcomeOf: { id, key } })
      else this.#startActor(actor)
    }
    for (const { event } of this.state.held) this.#incoming.push({ event, isHeld: true })
  }

  async drive(): Promise<ReleasedSession> {
    const { log } = this.#parts
    try {
      await log.inbox.readFirst()
      /* oxlint-disable no-await-in-loop -- one write after the other */
      for (;;) {
        const batch = this.#takeBatch()
        if (batch.length > 0) {
          await this.#write(batch.flatMap((incoming) => this.#take(incoming)))
          // A chart whose actors settle at once must not block the process.
          await new Promise<void>((resolve) => getPlatform().runNextTurn(resolve))
        } else if (!this.#mayRest) await this.#waitForWork()
        else {
          const isStopping = this.#isStopping
          const released = await this.#rest()
          if (isStopping || this.#incoming.length === 0) return released
        }
      }
      /* oxlint-enable no-await-in-loop */
    } finally {
      this.#isOver = true
      this.#parts.clock.clearTimeout(this.#timer)
      log.inbox.close()
      await this.#stopActors()
      await log.close()?.catch(() => undefined)
    }
  }

  /** Stops as soon as every actor that must not run again has ended, so that another process can continue. */
  stop(): void {
    this.#isStopping = true
    this.#wake()
  }

  /** Takes an event, or starts the machine, and adds the record. */
  #apply(before: StoredMachineState | null, event: MachineEvent, message?: Incoming['message']): Step {
    const { chart, log, sendLate, onError } = this.#parts
    const sendToSelf = (sent: AnyEventObject): void => {
      try {
        const own = copyJson(sent, 'event') as MachineEvent
        if (this.#isOver) sendLate(own)
        else this.#add({ event: own })
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
    this.#writeRecord({ event, state: step.state, ...starts }, message)
    return step
  }

  #receive(number: number, message: { event: MachineEvent | null; key?: string } | null): void {
    if (message?.event) return this.#add({ event: message.event, message: { number, key: message.key } })
    this.#parts.log.inbox.refuse(number)
    // A message for a running agent has arrived.
    if (message) for (const { actor } of this.#running.values()) actor.wake?.()
  }

  #add(incoming: Incoming): void {
    this.#incoming.push(incoming)
    this.#wake()
  }

  /** Events that the machine sent to itself, a due timer, or events from outside. */
  #takeBatch(): Incoming[] {
    if (this.state.status !== 'active') return this.#incoming.splice(0)
    if (this.#isStopping) {
      // Another process cannot repeat the actors in `once`, so their outcomes are stored before the stop.
      const at = this.#incoming.findIndex(({ outcomeOf }) => outcomeOf && this.#isOnceInFlight(outcomeOf.key))
      return at < 0 ? [] : this.#incoming.splice(at, 1)
    }
    const now = this.#parts.log.now()
    const due = this.state.delays.filter(({ at }) => at <= now).toSorted((a, b) => a.at - b.at)
    const sources = [
      this.state.queue.slice(0, mostPerWrite).map((event) => ({ event })),
      due.slice(0, 1).map(({ event, id }) => ({ event, delay: id })),
      this.#incoming,
    ]
    // The sources take turns, because a machine may send itself events endlessly.
    const next = [1, 2, 3].map((i) => (this.#source + i) % 3).find((i) => sources[i]?.length)
    if (next === undefined) return []
    this.#source = next
    return sources[next]?.splice(0, mostPerWrite) ?? []
  }

  /** Processes one event. Returns the step, or nothing if the event had no effect. */
  #take(incoming: Incoming): Step[] {
    const { event, message, outcomeOf, isHeld } = incoming
    if (this.state.status !== 'active') {
      if (message) this.#parts.log.inbox.refuse(message.number)
      return []
    }
    if (outcomeOf && this.state.actors[outcomeOf.id]?.key !== outcomeOf.key) return []
    if (isHeld && !this.state.held.some((one) => one.event === event)) return []
    const own = this.state.queue[0] === event
    const before = this.#withoutTaken(incoming, own)
    try {
      return [this.#apply(before, event, message)]
    } catch (error) {
      if (isHeld) return []
      const { code, message: text, subject } = error as StatewrightError
      const refused = { code, message: text, ...(subject !== undefined && { subject }) }
      const state = outcomeOf ? { ...before, held: [...before.held, { event, refused }] } : before
      this.#writeRecord({ event, state, refused }, message)
      this.#parts.onError(error)
      return []
    }
  }

  #withoutTaken({ event, outcomeOf, delay, isHeld }: Incoming, isOwn: boolean): StoredMachineState {
    const { actors, delays, queue, held } = this.state
    return {
      ...this.state,
      ...(outcomeOf && {
        actors: Object.fromEntries(Object.entries(actors).filter(([id]) => id !== outcomeOf.id)),
      }),
      ...(delay !== undefined && { delays: delays.filter(({ id }) => id !== delay) }),
      ...(isOwn && { queue: queue.slice(1) }),
      ...(isHeld && { held: held.filter((one) => one.event !== event) }),
    }
  }

  #writeRecord(
    { state, ...record }: Omit<MachineRecord, 'machine' | 'chart'>,
    message: Incoming['message'],
  ): void {
    const { log, chart } = this.#parts
    const { id: machine, version } = chart.machine
    // A batch may write several records. Actors are stopped after the last one.
    const left = this.#listLeft(state).flatMap(([, { actor }]) => actor.keys ?? [])
    const keys = [...new Set([...state.keys, ...left, message?.key ?? []].flat())].slice(-maxKeys)
    const whole = { ...state, inbox: Math.max(state.inbox, message?.number ?? 0), keys }
    this.#record = { machine, ...(version !== undefined && { chart: version }), ...record, state: whole }
    log.write(this.#record, message)
  }

  /** Makes the records of these steps durable, then starts their actors. */
  async #write(steps: readonly Step[]): Promise<void> {
    const { log } = this.#parts
    const isWorking = Object.keys(this.state.actors).length > 0 || this.state.queue.length > 0
    const left = this.#listLeft(this.state)
    const hasEffects = left.length > 0 || steps.some(({ effects, sent }) => effects.length + sent.length > 0)
    if (!isWorking && !hasEffects && this.#incoming.length === 0) await this.#rest()
    else {
      // A worker continues the session if this process dies.
      log.list(this.state, this.#isListedAsWorking ? undefined : log.now() + leaseMs)
      this.#isListedAsWorking = true
      await log.flush()
      // The process may have been suspended during the write.
      await log.checkHeld()
    }
    for (const [id] of left) this.#running.delete(id)
    const stops = left.map(async ([, { actor }]) => actor.stop(true))
    for (const { starts, sent, effects } of steps) {
      for (const actor of starts) if (this.state.actors[actor.id]?.key === actor.key) this.#startActor(actor)
      for (const { to, event } of sent) this.#running.get(to)?.actor.send?.(event)
      for (const effect of effects)
        try {
          effect()
        } catch (error) {
          this.#parts.onError(error)
        }
    }
    await Promise.all(stops.map((stop) => stop.catch(this.#parts.onError)))
  }

  #listLeft({ actors }: StoredMachineState) {
    return [...this.#running].filter(([id, { key }]) => actors[id]?.key !== key)
  }

  #startActor(actor: StartedActor): void {
    const { id, key } = actor
    const end = (event: MachineEvent): void => this.#add({ event, outcomeOf: { id, key } })
    const report = {
      done: (output: unknown) => {
        try {
          end(createDoneEvent(id, copyJson(output, `the output of '${actor.src}'`)))
        } catch (error) {
          if (this.#parts.isOnce(actor.src)) end(this.#createDoubt(actor, error))
          else report.failed(error)
        }
      },
      failed: (error: unknown) => end(createErrorEvent(id, error)),
      changed: () => this.#wake(),
    }
    try {
      this.#running.set(id, { key, actor: this.#parts.run(actor, report) })
    } catch (error) {
      report.failed(error)
    }
  }

  /** The error event for an actor in `once` whose effect is unknown. */
  #createDoubt({ id, key, src }: StartedActor, cause?: unknown): MachineEvent {
    const why =
      cause === undefined
        ? 'was running when its process ended'
        : `has an output that cannot be stored (${describeError(cause)})`
    const message = `'${src}' ${why}, and must not run again (once). Find out whether it took effect, by its key '${this.#id}:${key}'.`
    const error = Object.assign(new Error(message), {
      code: 'in_doubt',
      ...(cause !== undefined && { cause: toPlainFailure(cause) }),
    })
    return createErrorEvent(id, error)
  }

  get #isWorking(): boolean {
    return [...this.#running.values()].some(({ actor }) => !actor.isResting)
  }

  get #mayRest(): boolean {
    if (this.#parts.log.hasFailed) return true
    if (this.#isStopping) return ![...this.#running.values()].some(({ key }) => this.#isOnceInFlight(key))
    return this.state.queue.length === 0 && !this.#isWorking && !this.#parts.log.inbox.hasOpenMessages
  }

  #isOnceInFlight(key: string): boolean {
    return Object.values(this.state.actors).some(
      (actor) => actor.key === key && this.#parts.isOnce(actor.src),
    )
  }

  async #waitForWork(): Promise<void> {
    const { clock, log } = this.#parts
    const next = Math.min(...this.state.delays.map(({ at }) => at))
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (Number.isFinite(next) && !this.#isStopping)
        this.#timer = clock.setTimeout(resolve, Math.min(Math.max(1, next - log.now()), maxTimerMs))
      // A message may be on its way from the store.
      if (log.inbox.hasOpenMessages) getPlatform().runNextTurn(resolve)
    })
    this.#wake = () => undefined
    clock.clearTimeout(this.#timer)
  }

  async #rest(): Promise<ReleasedSession> {
    const { log } = this.#parts
    const sleeping = [...this.#running.values()].flatMap(({ actor }) => actor.wakeAt ?? [])
    const isWorkLeft =
      this.#isStopping &&
      (this.#isWorking || this.#incoming.length + this.state.queue.length > 0 || log.inbox.hasOpenMessages)
    const times = [...this.state.delays.map(({ at }) => at), ...sleeping, ...(isWorkLeft ? [log.now()] : [])]
    const wakeAt = this.state.status === 'active' && times.length > 0 ? Math.min(...times) : undefined
    this.#isListedAsWorking = false
    await log.rest(this.state, wakeAt)
    return {
      record: this.#record,
      head: log.head,
      hasSettled: !isWorkLeft,
      lastMessage: log.inbox.lastDelivered,
      sleepMs: wakeAt === undefined ? undefined : Math.max(0, wakeAt - log.now()),
    }
  }

  /** Stops all actors, because this process no longer holds the session or is about to release it. */
  async #stopActors(): Promise<void> {
    const running = [...this.#running.values()]
    this.#running.clear()
    this.#wake()
    await Promise.allSettled(running.map(async ({ actor }) => actor.stop(false)))
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

export function warn(error: unknown, { session }: { session: string }): void {
  warnProcess(`session '${session}': ${describeError(error)}`)
}
