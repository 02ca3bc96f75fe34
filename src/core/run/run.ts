import type { Observable } from 'rxjs'
import { type Actor, type AnyActorRef, createActor, type SnapshotFrom, transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { PublicEvent } from '../../../machines/agent/events.js'
import type { AgentState, AnyTools, PendingCall, RunResult } from '../../../machines/agent/outcome.js'
import { resultOf } from '../../../machines/agent/result-of.js'
import { isNearBudget } from '../../../machines/agent/totals.js'
import { UsageError } from '../base/errors.js'
import { onAbort } from '../base/abort.js'
import type { MachineState } from '../sessions/log/record-content.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { ToolSet } from '../tools/tool-set.js'
import { formatValue } from '../base/format-value.js'
import { type AnswerOptions, answerTo, type CallReference, awaitedCall, type EditOf } from './awaited-call.js'
import { editedArguments } from './edited-arguments.js'
import { EventHub } from './event-hub.js'
import { Foresight } from './foresight.js'
import type { Clock } from '../base/clock.js'
import { frozen } from '../base/freeze.js'
import { Gate } from './gate.js'
import { safeInspector, type Inspector } from './safe-inspector.js'
import { toMessages, type UserInput } from '../sessions/input.js'
import type { AgentMachine } from '../live/journaled.js'
import { liveOf } from '../live/live.js'
import { describeError } from '../base/describe-error.js'
import { refusalEvent, warnPlatform } from './refusal.js'
import { Rest } from './rest.js'
import type { Session } from '../sessions/session.js'
import { storeFailed } from '../sessions/journal.js'

/** What a run begins from: its input, or the state in which it was left. */
export interface Origin {
  /** The machine's input, bound to this run. */
  input?: object
  /** The machine's state, as plain JSON. */
  snapshot?: MachineState
  /** Where the run is written ahead, when its session is kept in a store. */
  log?: SessionLog
}

export interface RunParts {
  machine: AgentMachine
  clock: Clock
  tools: ToolSet
  /** The result with its output as an object, where the agent has a schema for it. Never throws or rejects. */
  withObject: (result: RunResult) => RunResult | Promise<RunResult>
  runId: string
  session: Session
  /** A promise where the session has to be read first; its rejection refuses the run. */
  origin: Origin | Promise<Origin>
  signal: AbortSignal | undefined
  /** Settles when the run may start; a rejection refuses it. */
  ready?: Promise<void> | undefined
  inspect: Inspector | undefined
  /** Of a sub-agent's run. */
  above?: Above
}

/** Where a run stands that is another one's sub-agent. */
export interface Above {
  /** The actor that it is a child of, and its id there. */
  parent: AnyActorRef
  id: string
  /** Told everything that the run comes to, right when it happens. */
  watch: (context: AgentContext) => void
  /** Told its events, from the first on. */
  hear: (event: AgentEvent) => void
}

/**
 * One run of an agent: a handle on its actor, and nothing else. Iterate it for its events, or await `result`: both end
 * where the run rests.
 *
 * @example
 * for await (const event of run) if (event.type === 'stream_chunk') process.stdout.write(event.text)
 * const { state, output } = await run.result
 */
export class Run<Output = unknown, Tools = AnyTools> implements AsyncIterable<AgentEvent<Tools>> {
  /** Of this run alone; a run that is resumed keeps it. */
  readonly id: string
  /** Of the session that it belongs to: pass it to `run` or `resume` to go on. */
  readonly sessionId: string
  readonly #session: Session
  readonly #tools: ToolSet
  readonly #rest = new Rest<RunResult>()
  readonly #withObject: RunParts['withObject']
  readonly #hub = new EventHub(this.#rest)
  readonly #gate = new Gate()
  readonly #unfollow: () => void
  readonly #above: Above | undefined
  readonly #foresight = new Foresight<SnapshotFrom<AgentMachine>, PublicEvent>()
  readonly #clock: Clock
  readonly #started: Promise<void>
  #start = (): void => undefined
  #refuseStart = (_error: unknown): void => undefined
  #isRefused = false
  /** Whether anybody could hear that the run was refused. */
  #isWatched: boolean
  #actor: Actor<AgentMachine> | undefined
  #log: SessionLog | undefined

  constructor(parts: RunParts) {
    this.#clock = parts.clock
    // Whoever runs a sub-agent hears of it.
    this.#isWatched = parts.above !== undefined
    this.#started = new Promise((resolve, reject) => {
      this.#start = resolve
      this.#refuseStart = reject
    })
    this.#started.catch(() => undefined)
    const { machine, tools, withObject, runId, session, origin, signal, ready, inspect, above } = parts
    this.#above = above
    this.#withObject = withObject
    this.#tools = tools
    this.id = runId
    this.sessionId = session.id
    this.#session = session
    this.#unfollow = signal ? this.#follow(signal) : () => undefined
    if (above) this.#hub.events$.subscribe(above.hear)
    if (origin instanceof Promise) {
      origin.then((read) => this.#begin(this.#enter(machine, read, inspect)), this.#refuseRun)
      return
    }
    const actor = this.#enter(machine, origin, inspect)
    // Later, so that whoever subscribes right after run() or resume() misses nothing.
    if (origin.snapshot) this.#goOn(actor)
    else (ready ?? Promise.resolve()).then(() => this.#begin(actor), this.#refuseRun)
  }

  /** Every event. Completes at a final state; errors only when the run is refused before it starts. */
  get events$(): Observable<AgentEvent<Tools>> {
    this.#isWatched = true
    return this.#hub.events$ as Observable<AgentEvent<Tools>>
  }

  /** The streamed text, piece by piece. */
  get text$(): Observable<string> {
    this.#isWatched = true
    return this.#hub.text$
  }

  /** The present state, then every change of it. */
  get state$(): Observable<AgentState> {
    this.#isWatched = true
    return this.#hub.state$
  }

  /** ERROR for a run that was refused. */
  get state(): AgentState {
    return this.#isRefused ? 'ERROR' : (this.#context?.state ?? 'RUNNING')
  }

  /**
   * Settles when the run holds its session and begins; rejects when it is refused: the session is busy or has a run that
   * waits (`session_busy`, `unfinished_run`), the store cannot be read, a price is not known. The same with a store and
   * without one. A refused run is a `warning` to whoever listens to it, and to nobody an unhandled rejection.
   *
   * @example
   * const run = agent.run(message, { session })
   * await run.started // a server answers 409 here, before it answers 200 and streams
   */
  get started(): Promise<void> {
    this.#isWatched = true
    return this.#started
  }

  /**
   * How the run stands at its next rest: a final state, PAUSED or WAITING_FOR_INPUT (interactive runs rest only at
   * finals). Never rejects for what an agent does; `orThrow(result)` if you like exceptions. Rejects with a
   * ConfigError when the run is refused before it starts.
   */
  get result(): Promise<RunResult<Output, Tools>> {
    this.#isWatched = true
    return this.#rest.promise as Promise<RunResult<Output, Tools>>
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent<Tools>, undefined> {
    this.#isWatched = true
    return this.#hub.iterate() as AsyncIterator<AgentEvent<Tools>, undefined>
  }

  /** Ends the run in CANCELLED, whatever it is doing: in-flight calls are aborted. After a final state this does nothing. */
  cancel(why?: string): void {
    this.#send({ type: 'CANCEL', ...(why !== undefined && { why }) })
  }

  /**
   * Rests in PAUSED at the next safe point; a natural end comes first.
   * @throws {UsageError} `wrong_state` after a final state
   */
  pause(): void {
    this.#mustBeActive('pause')
    this.#send({ type: 'PAUSE' })
  }

  /**
   * Goes on from PAUSED; `result` is then the promise of the next rest.
   * @throws {UsageError} `wrong_state` in every other state
   */
  resume(): void {
    this.#mustBe('PAUSED', 'resume')
    this.#send({ type: 'RESUME' })
  }

  /**
   * Tells the model something at the next safe point, without resetting any counter. A paused run goes on.
   * @throws {UsageError} `wrong_state` after a final state, `invalid_input` for an empty text
   */
  steer(text: string): void {
    this.#mustBeActive('steer')
    const [message] = toMessages(text)
    if (typeof message?.content !== 'string') this.#refuse('steer', 'steering is one text')
    this.#send({ type: 'STEER', text: message.content })
  }

  /**
   * The next user message of an interactive run.
   * @throws {UsageError} `wrong_state` while it waits for none, `invalid_input`
   */
  reply(input: UserInput): void {
    if (!this.#ahead?.matches({ WAITING_FOR_INPUT: 'message' }))
      this.#refuse('reply', 'it waits for no message')
    this.#send({ type: 'REPLY', messages: toMessages(input) })
  }

  /**
   * Lets a call run; `editedInput` replaces the arguments that the model gave. `call` is its id, or the call as
   * `pending` and `approval_requested` tell of it: then an answer that comes late is refused for any other call of the
   * same id, as with its `fingerprint`, and comparing its `name` types what `editedInput` may be. An edit that does not
   * fit the tool's schema is refused, and the call waits on; a schema that checks asynchronously refuses it with a
   * `warning` (`answer_refused`).
   *
   * @example
   * for (const call of result.pending ?? []) {
   *   if (call.name === 'transfer') run.approve(call, { to: 'Ann', amount: 5 })
   *   else run.reject(call, 'Not this one.')
   * }
   * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`, `invalid_input`
   */
  approve<Call extends CallReference>(
    call: Call,
    editedInput?: EditOf<Tools, Call>,
    options?: AnswerOptions,
  ): void {
    const asked = this.#awaited(call, 'approval', options)
    const { callId, fingerprint } = asked
    if (editedInput === undefined) {
      this.#send({ type: 'APPROVE', callId, fingerprint })
      return
    }
    const { text, problem } = editedArguments(editedInput, asked, this.#tools)
    if (problem) void this.#approveLater(callId, text, fingerprint, problem)
    else this.#send({ type: 'APPROVE', callId, fingerprint, arguments: text })
  }

  /** Refuses a call; the model reads why. Takes and throws what `approve` does. */
  reject(call: CallReference, why = '', options?: AnswerOptions): void {
    const { callId, fingerprint } = this.#awaited(call, 'approval', options)
    this.#send({ type: 'REJECT', callId, why, fingerprint })
  }

  /** The result of a call that the client carries out. An Error becomes an error result. Throws as `approve` does. */
  toolOutput(call: CallReference, value: unknown, options?: AnswerOptions): void {
    const { callId, fingerprint } = this.#awaited(call, 'client', options)
    const maxResultChars = this.#context?.config.toolCalls.maxResultChars ?? Infinity
    const isError = value instanceof Error
    const { content } = formatValue(isError ? value.message : value, maxResultChars)
    this.#send({ type: 'TOOL_OUTPUT', callId, content, fingerprint, ...(isError && { isError }) })
  }

  /** Whether the budget is nearly used up (`guardrails.reserveTokens`, `reserveCostFraction`). */
  nearBudget(): boolean {
    return this.#context !== undefined && isNearBudget(this.#context)
  }

  /** The run's state as plain JSON, fit to be stored. */
  snapshot(): unknown {
    if (!this.#actor) this.#refuse('snapshot', 'its session is still being read')
    return this.#actor.getPersistedSnapshot()
  }

  #awaited(call: CallReference, needs: PendingCall['needs'], options?: AnswerOptions): PendingCall {
    const { callId, fingerprint } = answerTo(call, options)
    return awaitedCall(this.#ahead?.context, callId, needs, { fingerprint })
  }

  get #snapshot(): SnapshotFrom<AgentMachine> | undefined {
    return this.#actor?.getSnapshot()
  }

  get #context(): AgentContext | undefined {
    return this.#snapshot?.context
  }

  /** The run as it stands once it has heard what it was told: a second answer is one, however slow the store. */
  get #ahead(): SnapshotFrom<AgentMachine> | undefined {
    const actor = this.#actor
    if (!actor) return undefined
    const now = liveOf(actor)?.clock.now() ?? 0
    return this.#foresight.after(actor.getSnapshot(), this.#gate.ahead, (ahead, event) =>
      ahead.status === 'active' ? transition(agentMachine, ahead, { now, ...event })[0] : ahead,
    )
  }

  /** Makes the actor, and listens to it. */
  #enter(machine: AgentMachine, { input, snapshot, log }: Origin, inspect: Inspector | undefined) {
    const actor = createActor(machine, {
      ...(input && { input: input as never }),
      ...(snapshot && { snapshot: snapshot as never }),
      ...(this.#above && { parent: this.#above.parent, id: this.#above.id }),
      ...(inspect && {
        inspect: safeInspector(inspect, (thrown) => {
          this.#warnOfInspector(thrown)
        }),
      }),
    } as never)
    this.#actor = actor
    this.#log = log
    this.#hub.follow(actor)
    log?.onFailure((failure) => {
      queueMicrotask(() => {
        this.#gate.fail(failure)
      })
    })
    actor.subscribe({
      next: (reached) => {
        this.#settle(reached)
        this.#above?.watch(reached.context)
      },
      complete: () => {
        this.#unfollow()
        this.#hub.complete()
      },
      // Only what the machine itself does wrong ends here: an agent that fails has a final state for it.
      error: this.#refuseRun,
    })
    this.#gate.open(actor, log)
    return actor
  }

  #begin(actor: Actor<AgentMachine>): Actor<AgentMachine> {
    actor.start()
    this.#start()
    return actor
  }

  /** A run that was interrupted in its work takes it up again; one that rests, or has ended, tells how it stands. */
  #goOn(actor: Actor<AgentMachine>): void {
    const { status, context } = actor.getSnapshot()
    const isInterrupted = context.state === 'RUNNING' || context.state === 'WAITING_FOR_TOOL'
    this.#start()
    if (status !== 'active' || !isInterrupted) {
      actor.start()
      // XState tells nobody of a start that is an end.
      if (status !== 'active') {
        liveOf(actor)?.tellFound(context)
        this.#settle(actor.getSnapshot())
      }
      return
    }
    setTimeout(() => {
      actor.start()
      const { traits } = this.#tools
      const isKnown = JSON.stringify(traits) === JSON.stringify(context.tools)
      actor.send({ type: 'RESUMED', ...(!isKnown && { tools: traits }) })
    })
  }

  async #giveBack(): Promise<void> {
    try {
      await this.#log?.close()
    } catch {
      // The run is refused for a reason of its own.
    }
  }

  readonly #refuseRun = (error: unknown): void => {
    this.#isRefused = true
    this.#session.release(this.id)
    void this.#giveBack()
    this.#unfollow()
    this.#refuseStart(error)
    this.#rest.refuse(error)
    this.#hub.fail(error, refusalEvent(this.id, error, this.#clock.now()))
    // Whoever has just been given the run may still ask for it.
    setTimeout(() => {
      if (!this.#isWatched) warnPlatform(error)
    })
  }

  /** Cancels when the signal aborts; returns how to stop listening. */
  #follow(signal: AbortSignal): () => void {
    const cancel = (): void => {
      this.cancel(signal.reason instanceof Error ? signal.reason.message : undefined)
    }
    if (!signal.aborted) return onAbort(signal, cancel)
    cancel()
    return () => undefined
  }

  #send(event: PublicEvent): void {
    if (this.#isRefused) return
    if (this.#snapshot && this.#snapshot.status !== 'active') return
    this.#rest.leave()
    this.#gate.send(event)
  }

  /** Until it is known whether the edit fits, the rest is left; it is reached again where it does not. */
  async #approveLater(
    callId: string,
    text: string,
    fingerprint: string,
    problem: Promise<UsageError | null>,
  ): Promise<void> {
    this.#rest.leave()
    try {
      const refusal = await problem
      if (refusal) throw refusal
      // Somebody may have answered meanwhile.
      awaitedCall(this.#ahead?.context, callId, 'approval', { fingerprint })
      this.#send({ type: 'APPROVE', callId, fingerprint, arguments: text })
    } catch (error) {
      this.#warn('answer_refused', describeError(error))
      if (this.#snapshot) this.#settle(this.#snapshot)
    }
  }

  #warn(code: string, message: string): void {
    if (this.#actor) liveOf(this.#actor)?.emit({ type: 'warning', code, message })
  }

  /** A moment later: the inspector was called in the middle of a transition. */
  #warnOfInspector(thrown: unknown): void {
    queueMicrotask(() => {
      const message = `The inspector threw, and is not called again: ${describeError(thrown)}`
      this.#warn('subscriber_error', message)
    })
  }

  #settle({ context, status }: SnapshotFrom<AgentMachine>): void {
    const atFinal = status !== 'active'
    const atRest = context.state === 'PAUSED' || context.state === 'WAITING_FOR_INPUT'
    if (!atFinal && !atRest) {
      this.#rest.leave()
      this.#log?.begun(context)
      return
    }
    frozen([context.messages, context.usage, context.error])
    this.#session.update(context)
    if (atFinal) {
      this.#session.release(this.id)
      // Whoever hears of the end does not get the rest before it: the store may have ended the run.
      this.#rest.leave()
    }
    const kept = this.#log?.rest(context)
    if (!atFinal && context.config.interactive) {
      // What could not be written ends the run by itself.
      kept?.catch(() => undefined)
      this.#rest.leave()
      return
    }
    const ended = atFinal ? this.#withObject(resultOf(context)) : null
    if (kept || ended instanceof Promise) void this.#reachLater(kept, () => ended ?? resultOf(context))
    else this.#rest.reach(() => ended ?? resultOf(context))
  }

  /** The result is told once it is durable. What could not be written is told with it: the answer is paid for. */
  async #reachLater(
    kept: Promise<void> | undefined,
    make: () => RunResult | Promise<RunResult>,
  ): Promise<void> {
    const { isLatest } = this.#rest.approach()
    const failure = await (kept ?? Promise.resolve()).then(
      () => null,
      (error: unknown) => storeFailed(error).failure,
    )
    // Somebody may have answered meanwhile: then this is a rest no more.
    if (!isLatest()) return
    const result = await make()
    if (!isLatest()) return
    if (failure === null) this.#rest.reach(() => result)
    else if (!result.resumable)
      this.#rest.reach(() => ({ error: { ...failure, recoverable: true }, ...result }))
  }

  #mustBeActive(method: string): void {
    const ahead = this.#ahead
    if (this.#isRefused || (ahead && ahead.status !== 'active')) this.#refuse(method, 'it has ended')
  }

  #mustBe(state: AgentState, method: string): void {
    if (this.#ahead?.context.state !== state) this.#refuse(method, `it is not ${state}`)
  }

  #refuse(method: string, why: string): never {
    throw new UsageError(
      'wrong_state',
      `${method}(): the run is ${this.state} and ${why}. Await run.result, or watch run.state$, before you call it.`,
      method,
    )
  }
}
