import { registerControls } from '../live/release-run.js'
import type { Observable } from 'rxjs'
import type { Actor } from 'xstate'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import {
  type AgentState,
  type AnyTools,
  type PendingCall,
  type RunResult,
  isRestState,
} from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { isNearBudget } from '../../../machines/agent/budget-totals.js'
import { type UsageError, describeError } from '../base/errors.js'
import { whenAborted } from '../base/abort.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import {
  type AnswerOptions,
  type CallReference,
  type EditOf,
  type ResumeTime,
  checkMessageFits,
  checkVote,
  getAwaitedCall,
  parseAnswerTarget,
  parseEditedArguments,
  toResumeEvent,
  toToolOutputEvent,
} from './answer-events.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { EventHub } from './event-hub.js'
import { publishSession } from './live-sessions.js'
import type { Clock } from '../base/clock.js'
import { freezeOnce } from '../base/values.js'
import { type AgentSnapshot, RunActor } from './run-actor.js'
import {
  RestPromise,
  type RunOrigin,
  type RunParts,
  createRefusalEvent,
  toUnsavedResult,
  warnOfRefusal,
  wrongStateError,
} from './run-parts.js'
import {
  checkApprovalGrants,
  type GrantOptions,
  outlivesRun,
  readGrant,
  toGrantEvent,
  toRevokeEvent,
  withToolDigest,
} from '../sessions/grant-input.js'
import { type UserInput, toMessages } from '../sessions/user-input.js'
import { getPlatform } from '../base/platform.js'
import type { DeepPartial } from '../structured/partial-objects.js'
import type { Session } from '../sessions/session.js'
import { readSender, type SentBy } from '../sessions/principal.js'
import type { Principal } from '../../../machines/agent/principal.js'

type ApproveEvent = Extract<ControlEvent, { type: 'APPROVE' }>

const doNothing = (): void => undefined

/**
 * A handle on one run of an agent. Iterate over it for its events, or await `result`. Both end when the run
 * settles.
 *
 * @example
 * for await (const event of run) if (event.type === 'stream_chunk') process.stdout.write(event.text)
 * const { state, output } = await run.result
 */
export class Run<Output = unknown, Tools = AnyTools> implements AsyncIterable<AgentEvent<Tools>> {
  /** Unique to this run. A resumed run keeps it. */
  readonly id: string
  /** The session of the run. Pass it to `run` or `resume` to continue. */
  readonly sessionId: string
  readonly #session: Session
  readonly #tools: RunParts['tools']
  readonly #rest = new RestPromise<RunResult>()
  readonly #withObject: RunParts['withObject']
  readonly #hub = new EventHub(this.#rest)
  #unfollow: (() => void) | undefined
  readonly #clock: Clock
  readonly #started = new RestPromise<void>()
  #isRefused = false
  /** Whether the app has read a promise or a stream of the run. If so, it will notice a refusal. */
  #isWatched: boolean
  readonly #actor = new RunActor(this.#hub)
  #log: SessionLog | undefined

  constructor(parts: RunParts) {
    this.#clock = parts.clock
    // A sub-agent's run is watched by the parent run.
    this.#isWatched = parts.above !== undefined
    const { tools, withObject, runId, session, origin, signal, ready, above } = parts
    this.#withObject = withObject
    this.#tools = tools
    this.id = runId
    this.sessionId = session.id
    this.#session = session
    if (signal) this.#unfollow = whenAborted(signal, (why) => this.cancel(why))
    if (above) this.#hub.events$.subscribe(above.onEvent)
    registerControls(this, {
      release: () => this.#actor.release(this.#log),
      expire: (at) => (this.#actor.isExpired(at) ? this.#send({ type: 'APPROVAL_EXPIRED' }) : undefined),
    })
    const refuse = (error: unknown): void => this.#refuseRun(error)
    if (origin instanceof Promise) {
      origin.then((read) => {
        const actor = this.#createActor(parts, read)
        return this.#startRun(actor, read)
      }, refuse)
      return
    }
    const actor = this.#createActor(parts, origin)
    // Asynchronous, so that code that subscribes right after `run()` or `resume()` receives all events.
    if (origin.snapshot) this.#resumeRun()
    else Promise.resolve(ready).then(() => this.#startRun(actor, origin), refuse)
  }

  /**
   * All events. Completes at a final state. Errors only if the run is refused before it starts.
   * @example run.events$.subscribe((event) => console.log(event.seq, event.type))
   */
  get events$(): Observable<AgentEvent<Tools>> {
    this.#isWatched = true
    return this.#hub.events$ as Observable<AgentEvent<Tools>>
  }

  /** The streamed text. @example run.text$.subscribe((text) => process.stdout.write(text)) */
  get text$(): Observable<string> {
    this.#isWatched = true
    return this.#hub.text$
  }

  /**
   * The partial object of the answer while it streams, if the agent has an `output` schema. Partial objects are not
   * validated. Each one replaces the previous one.
   *
   * @example run.object$.subscribe((plan) => console.log(plan))
   */
  get object$(): Observable<DeepPartial<Output>> {
    this.#isWatched = true
    return this.#hub.object$ as Observable<DeepPartial<Output>>
  }

  /** The current state, followed by every change. @example run.state$.subscribe((state) => console.log(state)) */
  get state$(): Observable<AgentState> {
    this.#isWatched = true
    return this.#hub.state$
  }

  /**
   * ERROR for a run that was refused.
   * @example console.log(run.state)
   */
  get state(): AgentState {
    return this.#isRefused ? 'ERROR' : (this.#context?.state ?? 'RUNNING')
  }

  /**
   * Resolves when the run holds its session and its start is stored. Rejects if the run is refused, because the session
   * is busy (`session_busy`) or has an unfinished run (`unfinished_run`), the store cannot be read, or a price is
   * unknown. A refused run emits a `warning` and never causes an unhandled rejection.
   *
   * @example
   * const run = agent.run(message, { session })
   * await run.started // a server answers 409 here, before it answers 200 and streams
   */
  get started(): Promise<void> {
    this.#isWatched = true
    return this.#started.promise
  }

  /**
   * The result when the run next ends, or rests in PAUSED or WAITING_FOR_INPUT. Failures of the agent do not reject it.
   * (`orThrow(result)` throws them.) Rejects with a ConfigError if the run is refused before its start.
   *
   * @example const { state, reason, output } = await run.result // COMPLETED end_turn …
   */
  get result(): Promise<RunResult<Output, Tools>> {
    this.#isWatched = true
    return this.#rest.promise as Promise<RunResult<Output, Tools>>
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent<Tools>, undefined> {
    this.#isWatched = true
    return this.#hub.iterate() as AsyncIterator<AgentEvent<Tools>, undefined>
  }

  /**
   * Ends the run in CANCELLED and aborts in-flight calls. Has no effect after a final state.
   *
   * @example run.cancel('The user has closed the page.')
   */
  cancel(why?: string, options: SentBy = {}): void {
    this.#send({ type: 'CANCEL', ...(why !== undefined && { why }), ...readSender(options, 'cancel()') })
  }

  /**
   * Pauses the run at the next safe point. A natural end takes precedence.
   * @example agent.run('Read the whole archive.').pause()
   * @throws {UsageError} `wrong_state` after a final state
   */
  pause(options: SentBy = {}): void {
    this.#checkActive('pause')
    this.#send({ type: 'PAUSE', ...readSender(options, 'pause()') })
  }

  /**
   * Continues a paused run. `result` becomes the promise of the next rest. Withdraws a `pause()` that has not taken
   * effect. With `at` (a Date or milliseconds since the epoch) the run sleeps until then. See `sleepUntil`.
   *
   * @example if ((await run.result).state === 'PAUSED') run.resume()
   * @throws {UsageError} `wrong_state` if the run is not PAUSED and has no pending pause, `invalid_input`
   */
  resume(options: ResumeTime = {}): void {
    if (!this.#actor.canResume) this.#failWrongState('resume', 'it is not PAUSED, and no pause was requested')
    this.#send(toResumeEvent(options))
  }

  /**
   * Sends the model a message at the next safe point, without resetting any counter. A paused run continues.
   * @example agent.run('Read the whole archive.').steer('Begin with the newest.')
   * @throws {UsageError} `wrong_state` after a final state, `invalid_input` for an empty text
   */
  steer(text: string, options: SentBy = {}): void {
    this.#checkActive('steer')
    const [message] = toMessages(text)
    if (typeof message?.content !== 'string')
      this.#failWrongState('steer', 'steering must be a single string')
    this.#send({ type: 'STEER', text: message.content, ...readSender(options, 'steer()') })
  }

  /**
   * The next user message of an interactive run.
   * @example if (result.state === 'WAITING_FOR_INPUT' && result.reason === 'message') run.reply('And in June?')
   * @throws {UsageError} `wrong_state` if it does not wait for a message, `invalid_input`
   */
  reply(input: UserInput, options: SentBy = {}): void {
    if (!this.#actor.forecast?.matches({ WAITING_FOR_INPUT: 'message' }))
      this.#failWrongState('reply', 'it is not waiting for a message')
    this.#send({ type: 'REPLY', messages: toMessages(input), ...readSender(options, 'reply()') })
  }

  /**
   * Approves a call. `editedInput` replaces its arguments. `call` is its id, or the call from `pending` or
   * `approval_requested`. Pass the call to reject late answers for another call with the same id, and to type
   * `editedInput` by its `name`. If an edit does not match the tool's schema, it is rejected and the call keeps
   * waiting. With an asynchronous schema, the rejection is a `warning` (`answer_refused`).
   *
   * @example for (const call of result.pending ?? []) if (call.needs === 'approval') run.approve(call)
   * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`, `invalid_input`, `not_an_approver`
   */
  approve<Call extends CallReference>(
    call: Call,
    editedInput?: EditOf<Tools, Call>,
    options?: AnswerOptions,
  ): void {
    const { awaited, ...sent } = this.#getAwaitedCall(call, 'approval', options)
    const { callId, fingerprint } = awaited
    const why = options?.why === undefined ? {} : { why: options.why }
    const given = options?.grant
    const grant = given === undefined ? {} : { grant: readGrant(given, 'approve()', this.#actor.now) }
    const event: ApproveEvent = { type: 'APPROVE', callId, fingerprint, ...why, ...grant, ...sent }
    const vote = editedInput === undefined ? event : { ...event, arguments: '' }
    checkVote(this.#actor.forecast?.context, awaited, vote, this.#actor.now)
    if (this.#actor.forecast) checkApprovalGrants(this.#actor.forecast.context, vote)
    if (editedInput === undefined) return this.#send(event)
    const { text, problem } = parseEditedArguments(editedInput, awaited, this.#tools(this.#context?.speaker))
    const edit = { ...event, arguments: text }
    if (problem) this.#actor.sendLater(this.#approveLater(awaited, edit, problem))
    else this.#send(edit)
  }

  /**
   * Rejects a call. The model reads the reason. See `approve` for parameters and errors.
   * @example for (const call of result.pending ?? []) run.reject(call, 'Not before Monday.')
   */
  reject(call: CallReference, why = '', options?: AnswerOptions): void {
    const { awaited, ...sent } = this.#getAwaitedCall(call, 'approval', options)
    const { callId, fingerprint } = awaited
    const event = { type: 'REJECT' as const, callId, why, fingerprint, ...sent }
    checkVote(this.#actor.forecast?.context, awaited, event, this.#actor.now)
    this.#send(event)
  }

  /**
   * Approves later calls of a tool, in this run and in later runs of the session. `when: {}` allows any arguments.
   * @example run.grant({ tool: 'transfer', when: { to: 'acme', amount: { max: 500 } }, uses: 10 }, { by: 'bob' })
   * @throws {UsageError} `wrong_state` after a final state, `invalid_input`
   */
  grant(grant: { tool: string } & GrantOptions, options: SentBy = {}): void {
    this.#checkActive('grant')
    this.#send({ ...toGrantEvent(grant, 'grant()', this.#actor.now), ...readSender(options, 'grant()') })
  }

  /**
   * Ends a grant, or takes back the sender's approval of a call that has not started.
   * @example run.revoke({ grant: id }, { by: 'bob' })
   * @throws {UsageError} `wrong_state` after a final state, `unknown_grant`, `unknown_call`
   */
  revoke(target: { grant: string } | CallReference, options: SentBy = {}): void {
    this.#checkActive('revoke')
    const of =
      typeof target === 'object' && 'grant' in target ? { grant: target.grant } : parseAnswerTarget(target)
    const event: ControlEvent = { ...toRevokeEvent(of), ...readSender(options, 'revoke()') }
    const { forecast } = this.#actor
    if (forecast) checkMessageFits(event, forecast, this.sessionId, this.#actor.now)
    this.#send(event)
  }

  /**
   * Sends the result of a client call. An Error becomes an error result. Throws the same errors as `approve`.
   * @example for (const call of result.pending ?? []) if (call.needs === 'client') run.addToolOutput(call, { opened:
   * true })
   */
  addToolOutput(call: CallReference, value: unknown, options?: AnswerOptions): void {
    const { awaited, ...sent } = this.#getAwaitedCall(call, 'client', options)
    const maxChars = this.#context?.config.toolCalls.maxResultChars ?? Infinity
    this.#send({ ...toToolOutputEvent(awaited, value, { maxChars }), ...sent })
  }

  /**
   * Whether the budget is nearly used up (`guardrails.reserveTokens`, `reserveCostFraction`).
   * @example if (run.isNearBudget()) run.steer('Come to an end.')
   */
  isNearBudget(): boolean {
    return this.#context !== undefined && isNearBudget(this.#context)
  }

  /**
   * The run's state as plain JSON, suitable for storage.
   * @example const snapshot = run.snapshot() // for createActor(agent.machine, { snapshot })
   */
  snapshot(): unknown {
    if (!this.#actor.snapshot) this.#failWrongState('snapshot', 'its session is still loading')
    return this.#actor.persisted
  }

  /** The call that waits for this answer, and the answer's sender. */
  #getAwaitedCall(
    call: CallReference,
    needs: PendingCall['needs'],
    options?: AnswerOptions,
  ): { awaited: PendingCall; by?: Principal } {
    const { callId, by, ...target } = parseAnswerTarget(call, options)
    const awaited = getAwaitedCall(this.#actor.forecast?.context, callId, needs, target)
    return { awaited, ...(by && { by }) }
  }

  get #context(): AgentContext | undefined {
    return this.#actor.snapshot?.context
  }

  #createActor({ machine, above, inspect }: RunParts, from: RunOrigin): Actor<AgentMachine> {
    this.#log = from.log
    const actor = this.#actor.create(
      machine,
      from,
      { above, inspect },
      {
        onSnapshot: (snapshot) => this.#settle(snapshot),
        onBroken: (error) => this.#refuseRun(error),
      },
    )
    if (from.log) {
      publishSession(from.log, { runId: this.id, actor: this.#actor, hub: this.#hub })
      this.#readInbox(from.log)
    }
    return actor
  }

  /**
   * Reads the session's inbox in order. A message that no longer applies is removed with a `warning`, for example if
   * two pages answered the same question.
   */
  #readInbox({ inbox, sessionId }: SessionLog): void {
    inbox.onQueued(({ messageId }) => this.#actor.emit({ type: 'message_queued', messageId }))
    inbox.onMessage((message, event) => {
      try {
        const { forecast } = this.#actor
        if (event === null || forecast === undefined) {
          inbox.refuse(message)
          return
        }
        if (forecast.status !== 'active' && outlivesRun(event)) {
          inbox.leave(message)
          return
        }
        checkMessageFits(event, forecast, sessionId, this.#actor.now)
        this.#send({ ...event, inbox: message })
      } catch (error) {
        if (inbox.refuse(message)) this.#actor.warn('message_refused', describeError(error))
      }
    })
  }

  #startRun(actor: Actor<AgentMachine>, { queuedId }: RunOrigin): void {
    if (!this.#actor.isReleased) actor.start()
    if (queuedId !== undefined) this.#actor.emit({ type: 'message_dequeued', messageId: queuedId })
    const reach = (): void => this.#started.reach(doNothing)
    const durable = this.#log?.flush()
    // If the store fails, it ends the run itself.
    if (durable) durable.then(reach, reach)
    else reach()
  }

  #resumeRun(): void {
    this.#started.reach(doNothing)
    this.#actor.resume((snapshot) => {
      this.#settle(snapshot)
    })
  }

  async #releaseLog(): Promise<void> {
    try {
      await this.#log?.close()
    } catch {
      // The run has already reported its refusal.
    }
  }

  #refuseRun(error: unknown): void {
    this.#isRefused = true
    this.#session.release(this.id)
    void this.#releaseLog()
    this.#unfollow?.()
    this.#started.refuse(error)
    this.#rest.refuse(error)
    this.#hub.fail(error, createRefusalEvent(this.id, error, this.#clock.now()))
    // The caller has just received the run and may still read one of its promises.
    getPlatform().runSoon(() => (this.#isWatched ? undefined : warnOfRefusal(error)))
  }

  #send(event: ControlEvent): void {
    if (this.#isRefused || this.#actor.isReleased) return
    if (this.#actor.snapshot && this.#actor.snapshot.status !== 'active') return
    this.#rest.leave()
    this.#actor.send(this.#withDigest(event))
  }

  /** A grant holds for its tool as it is now. */
  #withDigest(event: ControlEvent): ControlEvent {
    if (event.type !== 'GRANT' && event.type !== 'APPROVE') return event
    const { calls = [], speaker } = this.#context ?? {}
    const name =
      event.type === 'GRANT' ? event.tool : (calls.find(({ id }) => id === event.callId)?.name ?? '')
    return withToolDigest(event, this.#tools(speaker).get(name))
  }

  /** Leaves the rest while the edit is validated, and returns to it if the edit is invalid. */
  async #approveLater(
    { callId, fingerprint, messageId }: PendingCall,
    edit: ApproveEvent,
    problem: Promise<UsageError | null>,
  ): Promise<void> {
    this.#rest.leave()
    try {
      const refusal = await problem
      if (refusal) throw refusal
      // Another answer may have arrived in the meantime.
      getAwaitedCall(this.#actor.forecast?.context, callId, 'approval', { fingerprint, messageId })
      this.#send(edit)
    } catch (error) {
      this.#actor.warn('answer_refused', describeError(error))
      if (this.#actor.snapshot) this.#settle(this.#actor.snapshot)
    }
  }

  #settle({ context, status }: AgentSnapshot): void {
    const atFinal = status !== 'active'
    const atRest = isRestState(context.state)
    if (!atFinal && !atRest) {
      this.#rest.leave()
      this.#log?.markRunning(context)
      return
    }
    freezeOnce([context.messages, context.usage, context.error])
    this.#session.update(context)
    if (atFinal) {
      this.#unfollow?.()
      this.#session.release(this.id)
      // The store may have ended the run, in which case the previous rest is no longer the result.
      this.#rest.leave()
    }
    const written = this.#log?.rest(context)
    const ended = atFinal ? this.#withObject(this.#toEndResult(context)) : null
    if (written || ended instanceof Promise)
      void this.#rest.reachLater(written, () => ended ?? toRunResult(context), toUnsavedResult)
    else this.#rest.reach(() => ended ?? toRunResult(context))
  }

  /** A run that ended because its log could not be written can be resumed. */
  #toEndResult(context: AgentContext): RunResult {
    const result = toRunResult(context)
    const isResumable = result.reason === 'store_error' && this.#log?.isResumable === true
    return isResumable ? ({ ...result, resumable: true } as RunResult) : result
  }

  #checkActive(method: string): void {
    const ahead = this.#actor.forecast
    if (this.#isRefused || (ahead && ahead.status !== 'active')) this.#failWrongState(method, 'it has ended')
  }

  #failWrongState(method: string, why: string): never {
    throw wrongStateError(method, this.state, why)
  }
}
