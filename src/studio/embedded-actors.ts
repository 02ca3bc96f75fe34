import type { AnyActorRef, Observer } from 'xstate'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { AgentState } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'
import { type ActorFollower, type AgentRuntime, findRuntime } from '../core/live/runtime.js'
import { checkMessageFits, createAnswerEvent } from '../core/run/answer-events.js'
import type { Run } from '../core/run/run.js'
import { type FoldedRun, toMachineState } from '../core/sessions/fold-session.js'
import type { JournalEntry } from '../core/sessions/journal.js'
import { createOpening, createSnapshot, toStartInput } from '../core/sessions/log/create-records.js'
import { type RecordContent, sealRecord } from '../core/sessions/log/log-record.js'
import { getInnerStore } from '../core/sessions/store/checked-store.js'
import { type DigestTable, openDigests } from '../core/sessions/store/log-digests.js'
import { memoryStore } from '../core/sessions/store/memory-store.js'
import type { Lease, SessionStore } from '../core/sessions/store/store.js'
import { isAnswer, type SessionMessage, toPublicEvent } from '../core/sessions/inbox/session-message.js'
import { createToolSet } from '../core/tools/tool-set.js'

export interface ReadableStore extends Pick<SessionStore, 'list' | 'get' | 'read'> {
  /** Opens the table of saved log digests. Null if there is none. */
  openDigests?: () => Promise<DigestTable | null>
}

const maxEnded = 100

export const embeddedNote =
  'This embedded actor is not stored. It can be answered while it is attached, but it cannot be forked.'

/** Each actor has an in-memory log, from its start or from its state at the time when it was attached. */
export class EmbeddedActors {
  readonly #logs = memoryStore()
  readonly #runs = new Map<string, EmbeddedRun>()
  readonly #ended = new Set<string>()

  has(id: string): boolean {
    return this.#runs.has(id)
  }

  isOf(id: string, machine: unknown): boolean {
    return machine !== undefined && this.#runs.get(id)?.machine === machine
  }

  /**
   * Returns the same run for the same actor.
   * @throws {UsageError} `invalid_input` for an actor of another machine
   */
  attach(actor: AnyActorRef): EmbeddedRun {
    const runtime = findRuntime(actor)
    if (runtime === undefined)
      throw new UsageError(
        'invalid_input',
        'attach() takes a run or an actor of agent.machine. If another machine invokes the agent, attach the child: ' +
          'actor.getSnapshot().children.NAME.',
        'run',
      )
    const id = getContext(actor).runId
    const known = this.#runs.get(id)
    if (known?.actor === actor) return known
    known?.stop()
    this.#ended.delete(id)
    const run = new EmbeddedRun(actor, runtime, this.#logs)
    this.#runs.set(id, run)
    const end = (): void => {
      run.stop()
      if (this.#runs.get(id) === run) this.#markEnded(id)
    }
    actor.subscribe({ complete: end, error: end })
    return run
  }

  addTo(store: SessionStore): ReadableStore {
    return {
      list: async (options) => [...(await store.list(options)), ...this.#logs.list(options)],
      get: (id) => (this.has(id) ? this.#logs.get(id) : store.get(id)),
      read: (id, range) => (this.has(id) ? this.#logs.read(id, range) : store.read(id, range)),
      openDigests: () => openDigests(getInnerStore(store)),
    }
  }

  close(): void {
    for (const run of this.#runs.values()) run.stop()
  }

  #markEnded(id: string): void {
    this.#ended.add(id)
    if (this.#ended.size <= maxEnded) return
    const [oldest = id] = this.#ended
    this.#ended.delete(oldest)
    this.#runs.delete(oldest)
    this.#logs.delete(oldest)
  }
}

/** The agent's own tools are unknown here, so it reports arguments that do not fit to the model. */
const noTools = createToolSet([])

const getContext = (actor: AnyActorRef): AgentContext => (actor.getSnapshot() as FoldedRun).context

/** Its session id is the run id, because a store may contain the real session. The log is written as the actor runs. */
export class EmbeddedRun implements ActorFollower {
  readonly actor: AnyActorRef
  readonly sessionId: string
  readonly started = Promise.resolve()
  readonly #logs: ReturnType<typeof memoryStore>
  readonly #lease: Lease
  readonly #unfollow: () => void
  readonly #now: () => number
  #head = 0

  constructor(actor: AnyActorRef, runtime: AgentRuntime, logs: ReturnType<typeof memoryStore>) {
    this.actor = actor
    this.sessionId = getContext(actor).runId
    this.#now = () => runtime.clock.now()
    this.#logs = logs
    logs.delete(this.sessionId)
    const owner = { holder: 'an actor in this program', ttlMs: Number.MAX_SAFE_INTEGER }
    this.#lease = logs.acquire(this.sessionId, owner)
    if (runtime.started || runtime.isRestored) this.#writeState(actor.getSnapshot() as FoldedRun)
    this.#unfollow = runtime.follow(this)
  }

  get machine(): unknown {
    return (this.actor as AnyActorRef & { logic?: unknown }).logic
  }

  get state(): AgentState {
    return getContext(this.actor).state ?? 'RUNNING'
  }

  get events$(): Run['events$'] {
    const subscribe = ({ next, complete, error }: Required<Observer<AgentEvent>>) => {
      const events = this.actor.on('*', (event) => next(event as AgentEvent))
      const end = this.actor.subscribe({ complete, error })
      return { unsubscribe: () => [events, end].forEach((one) => one.unsubscribe()) }
    }
    return { subscribe } as Run['events$']
  }

  stop(): void {
    this.#unfollow()
    this.#logs.release(this.#lease)
  }

  send(message: Exclude<SessionMessage, { type: 'message' }>): void {
    const scene = { now: this.#now(), tools: noTools, where: 'send()', isBound: true }
    const event = isAnswer(message)
      ? createAnswerEvent(message, getContext(this.actor), scene).event
      : toPublicEvent(message)
    if (event.type === 'REVOKE')
      checkMessageFits(event, this.actor.getSnapshot() as FoldedRun, this.sessionId, this.#now())
    this.actor.send(event)
  }

  onEntry(entry: JournalEntry): void {
    if (entry.type === 'event') return this.#write(entry, entry.event.now)
    const { messages, usage, guardrails, warnedOfBudget, fit = null, loaded, now } = entry.input
    const isNew = messages.length === 0 && usage.totalTokens === 0
    const state = { messages, usage, guardrails, warnedOfBudget, fit, ...(loaded && { loaded }) }
    this.#write(createOpening(identity, isNew ? undefined : state), now)
    this.#write({ type: 'start', input: toStartInput(entry.input) }, now)
  }

  onReached(reached: FoldedRun): void {
    // The actor was attached in the middle of a transition, so the written state is the previous one.
    if (this.#head === 1) this.#writeState(reached)
  }

  /** The log of an actor that had already started begins with a snapshot. */
  #writeState(reached: FoldedRun): void {
    this.#write(createSnapshot(toMachineState(reached), { ...identity, runs: 1, definition: null }))
  }

  #write(entry: RecordContent, at = this.#now()): void {
    this.#head += 1
    this.#logs.append(this.#lease, [sealRecord(this.#head, at, entry)])
  }
}

const identity = { name: undefined, tags: {}, parent: undefined }
