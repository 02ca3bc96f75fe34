import type { Observable } from 'rxjs'
import { type Actor, createActor } from 'xstate'
import { runControls } from '../live/run-controls.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext, ControlEvent } from '../../../machines/agent/context.js'
import { listLate } from '../../../machines/agent/due-times.js'
import {
  type AgentState,
  type AnyTools,
  type PendingCall,
  type RunResult,
  isRestState,
  isWorkState,
} from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { isNearBudget } from '../../../machines/agent/budget-totals.js'
import { isInDoubt } from '../../../machines/agent/call-state.js'
import { StatewrightError, UsageError, describeError } from '../base/errors.js'
import { whenAborted } from '../base/abort.js'
import { attempt } from '../base/maybe-promise.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import {
  type AnswerOptions,
  type CallReference,
  type EditOf,
  type ResumeTime,
  canResume,
  checkMessageFits,
  createAnswerEvent,
  getAwaitedCall,
  parseAnswerTarget,
  toResumeEvent,
} from './answer-events.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { type AgentRuntime, findRuntime } from '../live/runtime.js'
import { createStoreFailedEvent } from '../sessions/journal.js'
import { EventHub } from './event-hub.js'
import { publishSession } from './live-sessions.js'
import type { Clock } from '../base/clock.js'
import { freezeOnce, isObject } from '../base/values.js'
import { type AgentSnapshot, ownExpiry, RunMailbox } from './run-mailbox.js'
import { type ParentLink, RestPromise, type RunOrigin, type RunParts, toUnsavedResult } from './run-parts.js'
import {
  type GrantOptions,
  outlivesRun,
  toGrantEvent,
  toRevokeEvent,
  withToolDigest,
} from '../sessions/grant-input.js'
import { safeInspector } from './safe-listeners.js'
import { type UserInput, toMessages } from '../sessions/user-input.js'
import { getPlatform, warnProcess } from '../base/platform.js'
import type { DeepPartial } from '../structured/partial-objects.js'
import { addObject } from '../structured/read-output.js'
import type { Session } from '../sessions/session.js'
import { readSender, type SentBy } from '../sessions/principal.js'
import type { AnswerMessage } from '../sessions/inbox/session-message.js'

type AnswerContent = Pick<AnswerMessage, 'type'> & { editedInput?: unknown; why?: string; value?: unknown }

const doNothing = (): void => undefined

/**
 * A handle to one run of an agent. Iterate over it for its events, or await `result`. Both end when the run settles.
 * @example
 * for await (const event of run) if (event.type === 'stream_chunk') process.stdout.write(event.text)
 * const { state, output } = await run.result
 */
export class Run<Output = unknown, Tools = AnyTools> implements AsyncIterable<AgentEvent<Tools>> {
  /** The id of the run. A resumed run keeps its id. */
  readonly id: string
  /** The session of the run. Pass it to `run` or `resume` to continue. */
  readonly sessionId: string
  readonly #session: Session
  readonly #tools: RunParts['tools']
  readonly #rest = new RestPromise<RunResult>()
  readonly #output: RunParts['output']
  readonly #hub = new EventHub(this.#rest)
  #unfollow: (() => void) | undefined
  readonly #clock: Clock
  readonly #started = new RestPromise<void>()
  #isRefused = false
  /** Whether the app has read a promise or a stream of the run. If so, the app will notice a refusal. */
  #isWatched: boolean
  #log: SessionLog | undefined
  #actor: Actor<AgentMachine> | undefined
  #runtime: AgentRuntime | undefined
  #watch: ParentLink['watch'] | undefined
  readonly #mailbox = new RunMailbox()
  /** Whether another process may resume the run. */
  #isReleased = false
  /** Checks of events that are still in progress. `release` waits for them. */
  #checks: Promise<unknown> | undefined

  static {
    runControls.release = async (run) => (#release in run ? run.#release() : undefined)
    runControls.expire = (run, at) => {
      if (#release in run && run.#isExpired(at)) run.#send({ type: 'APPROVAL_EXPIRED' })
    }
    runControls.advance = (run, at) => {
      if (#release in run) run.#runtime?.time.advanceTo(at)
    }
  }

  constructor(parts: RunParts) {
    this.#clock = parts.clock
    this.#isWatched = parts.above !== undefined
    const { tools, output, runId, session, origin, signal, ready, above } = parts
    this.#output = output
    this.#tools = tools
    this.id = runId
    this.sessionId = session.id
    this.#session = session
    if (signal) this.#unfollow = whenAborted(signal, (why) => this.cancel(why))
    if (above) this.#hub.events$.subscribe(above.onEvent)
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
    if (origin.snapshot) this.#resumeRun(actor)
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
   * The current state. ERROR if the run was refused.
   * @example console.log(run.state)
   */
  get state(): AgentState {
    return this.#isRefused ? 'ERROR' : (this.#context?.state ?? 'RUNNING')
  }

  /**
   * Resolves when the run holds its session and its start is stored. Rejects if the run is refused, because the session
   * is busy (`session_busy`) or has an unfinished run (`unfinished_run`), the store cannot be read, or a price is
   * unknown. A refused run emits a `warning` and never causes an unhandled rejection.
   * @example
   * const run = agent.run(message, { session })
   * await run.started // a server answers 409 here, before it answers 200 and streams
   */
  get started(): Promise<void> {
    this.#isWatched = true
    return this.#started.promise
  }

  /**
   * The result when the run next ends, or rests in PAUSED or WAITING_FOR_INPUT. Agent failures do not reject it.
   * (`orThrow(result)` throws them.) Rejects with a ConfigError if the run is refused before its start.
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
   * Continues a paused run. `result` becomes the promise for the next rest. Withdraws a `pause()` that has not taken
   * effect. With `at` (a Date or milliseconds since the epoch) the run sleeps until then. See `sleepUntil`.
   * @example if ((await run.result).state === 'PAUSED') run.resume()
   * @throws {UsageError} `wrong_state` if the run is not PAUSED and has no pending pause, `invalid_input`
   */
  resume(options: ResumeTime = {}): void {
    if (!this.#canResume) this.#failWrongState('resume', 'it is not PAUSED, and no pause was requested')
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
   * @throws {UsageError} `wrong_state` if the run does not wait for a message, `invalid_input`
   */
  reply(input: UserInput, options: SentBy = {}): void {
    if (!this.#forecast?.matches({ WAITING_FOR_INPUT: 'message' }))
      this.#failWrongState('reply', 'it is not waiting for a message')
    this.#send({ type: 'REPLY', messages: toMessages(input), ...readSender(options, 'reply()') })
  }

  /**
   * Approves a call. `editedInput` replaces the call's arguments. `call` is the call's id, or the call from `pending`
   * or `approval_requested`. Pass the call to reject late answers for another call with the same id, and to type
   * `editedInput` by its `name`. If an edit does not match the tool's schema, the edit is rejected and the call keeps
   * waiting. With an asynchronous schema, the rejection is a `warning` (`answer_refused`).
   * @example for (const call of result.pending ?? []) if (call.needs === 'approval') run.approve(call)
   * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`, `invalid_input`, `not_an_approver`
   */
  approve<Call extends CallReference>(
    call: Call,
    editedInput?: EditOf<Tools, Call>,
    options?: AnswerOptions,
  ): void {
    this.#answer({ type: 'approve', editedInput }, call, options)
  }

  /**
   * Rejects a call. The model reads the reason. See `approve` for parameters and errors.
   * @example for (const call of result.pending ?? []) run.reject(call, 'Not before Monday.')
   */
  reject(call: CallReference, why = '', options?: AnswerOptions): void {
    this.#answer({ type: 'reject', why }, call, options)
  }

  /**
   * Approves later calls to a tool, in this run and in later runs of the session. `when: {}` allows any arguments.
   * @example for (const { name } of result.pending ?? []) run.grant({ tool: name, when: {}, uses: 10 }, { by: 'bob' })
   * @throws {UsageError} `wrong_state` after a final state, `invalid_input`
   */
  grant(grant: { tool: string } & GrantOptions, options: SentBy = {}): void {
    this.#checkActive('grant')
    this.#send({ ...toGrantEvent(grant, 'grant()', this.#now), ...readSender(options, 'grant()') })
  }

  /**
   * Ends a grant, or withdraws the sender's approval of a call that has not started.
   * @example for (const call of result.pending ?? []) run.revoke(call, { by: 'bob' })
   * @throws {UsageError} `wrong_state` after a final state, `unknown_grant`, `unknown_call`
   */
  revoke(target: { grant: string } | CallReference, options: SentBy = {}): void {
    this.#checkActive('revoke')
    const of = isObject(target) && 'grant' in target ? { grant: target.grant } : parseAnswerTarget(target)
    const event: ControlEvent = { ...toRevokeEvent(of), ...readSender(options, 'revoke()') }
    const forecast = this.#forecast
    if (forecast) checkMessageFits(event, forecast, this.sessionId, this.#now)
    this.#send(event)
  }

  /**
   * Sends the result of a client call. An Error becomes an error result. Throws the same errors as `approve`.
   * @example for (const call of result.pending ?? []) if (call.needs === 'client') run.addToolOutput(call, { opened:
   * true })
   */
  addToolOutput(call: CallReference, value: unknown, options?: AnswerOptions): void {
    this.#answer({ type: 'toolOutput', value }, call, options)
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
    if (!this.#actor) this.#failWrongState('snapshot', 'its session is still loading')
    return this.#actor.getPersistedSnapshot()
  }

  #answer(content: AnswerContent, reference: CallReference, options: AnswerOptions | undefined): void {
    const target = parseAnswerTarget(reference, options)
    const { why, grant } = options ?? {}
    const answer = { ...target, why, grant, ...content } as AnswerMessage
    const context = this.#forecast?.context
    const scene = { now: this.#now, tools: this.#tools(context?.speaker), where: 'approve()' }
    const { event, call, problem } = createAnswerEvent(answer, context, scene)
    if (!problem) return this.#send(event)
    const check = this.#answerLater(call, event, problem)
    this.#checks = this.#checks ? Promise.all([this.#checks, check]) : check
  }

  /** Undefined until the session is read. */
  get #snapshot(): AgentSnapshot | undefined {
    return this.#actor?.getSnapshot()
  }

  get #context(): AgentContext | undefined {
    return this.#snapshot?.context
  }

  get #now(): number {
    const context = this.#context
    return (context && this.#runtime?.readTime(context)) ?? 0
  }

  /** `at` is a time that has been reached on another clock. */
  #isExpired(at = 0): boolean {
    this.#runtime?.time.advanceTo(at)
    const forecast = this.#forecast
    return forecast?.status === 'active' && listLate(forecast.context, this.#now).length > 0
  }

  /** After all pending events, to reject a second answer immediately even if the store is slow. */
  get #forecast(): AgentSnapshot | undefined {
    return this.#mailbox.forecast(this.#now)
  }

  get #canResume(): boolean {
    const forecast = this.#forecast
    if (forecast) return canResume(forecast)
    return (
      this.#mailbox.events.findLast(({ type }) => type === 'PAUSE' || type === 'RESUME')?.type === 'PAUSE'
    )
  }

  #createActor(
    { machine, above, inspect }: RunParts,
    { input, snapshot, log }: RunOrigin,
  ): Actor<AgentMachine> {
    // After the transition, because XState calls the inspector during a transition.
    const warnOfInspector = (thrown: unknown): void => {
      const message = `The inspector threw an error and is not called again: ${describeError(thrown)}`
      queueMicrotask(() => this.#warn('subscriber_error', message))
    }
    const actor = createActor(machine, {
      ...(input && { input: input as never }),
      ...(snapshot && { snapshot: snapshot as never }),
      ...(above && { parent: above.parent, id: above.id }),
      ...(inspect && { inspect: safeInspector(inspect, warnOfInspector) }),
    } as never)
    this.#actor = actor
    this.#log = log
    this.#hub.attachActor(actor)
    log?.onFailure((failure) => {
      queueMicrotask(() => {
        // An event that waits for the log reports the failure itself, so that a CANCEL comes first.
        if (!this.#mailbox.sending) actor.send(createStoreFailedEvent(failure))
      })
    })
    this.#watch = above?.watch
    actor.subscribe({
      next: (next) => {
        this.#mailbox.leavesRest &&= this.#mailbox.events.length > 0
        if (this.#mailbox.leavesRest && next.status === 'active' && isRestState(next.context.state)) return
        this.#settle(next)
        this.#watch?.(next.context, next.output)
      },
      // Called only for bugs in the machine. An agent that fails reaches a final state instead.
      error: (error) => this.#refuseRun(error),
      complete: () => this.#hub.complete(),
    })
    this.#runtime = findRuntime(actor)
    const listener: AgentRuntime['listener'] = {
      onMachineEvent: (event) => this.#mailbox.take(event),
      onExpired: () => {
        if (this.#isExpired()) this.#send(ownExpiry)
      },
    }
    if (this.#runtime) this.#runtime.listener = listener
    this.#mailbox.open(actor, log)
    if (log) {
      publishSession(log, { runId: this.id, actor, hub: this.#hub })
      this.#readInbox(log)
    }
    return actor
  }

  /** In order. A message that no longer applies, such as a second answer, is removed with a `warning`. */
  #readInbox({ inbox, sessionId }: SessionLog): void {
    inbox.onQueued(({ messageId }) => this.#runtime?.emit({ type: 'message_queued', messageId }))
    inbox.onMessage((message, event) => {
      try {
        const received = event && { ...event, inbox: message }
        // A revocation precedes the event that ends the rest, which came later and can start the call.
        const ending = received?.type === 'REVOKE' ? this.#mailbox.ending : undefined
        const forecast = received && this.#mailbox.forecast(this.#now, ending)
        if (!received || !forecast) {
          inbox.refuse(message)
          return
        }
        if (forecast.status !== 'active' && outlivesRun(received)) {
          inbox.leave(message)
          return
        }
        checkMessageFits(received, forecast, sessionId, this.#now)
        this.#send(received, ending)
      } catch (error) {
        if (inbox.refuse(message)) this.#warn('message_refused', describeError(error))
      }
    })
  }

  #startRun(actor: Actor<AgentMachine>, { queuedId }: RunOrigin): void {
    if (!this.#isReleased) actor.start()
    if (queuedId !== undefined) this.#runtime?.emit({ type: 'message_dequeued', messageId: queuedId })
    const reach = (): void => this.#started.reach(doNothing)
    const durable = this.#log?.flush()
    // If the store fails, it ends the run itself.
    if (durable) durable.then(reach, reach)
    else reach()
  }

  /**
   * Resumes a run that was interrupted or has pending messages. The run starts asynchronously, so that code that
   * subscribes right after `resume()` receives all events. A resting run emits its state.
   */
  #resumeRun(actor: Actor<AgentMachine>): void {
    this.#started.reach(doNothing)
    const { status, context } = actor.getSnapshot()
    const isAtRest = status === 'active' && !isWorkState(context.state)
    // The session stays held, so that messages are applied before another process can take it.
    this.#mailbox.leavesRest = isAtRest && this.#mailbox.events.length > 0
    if (status !== 'active' || (isAtRest && !this.#mailbox.leavesRest)) {
      actor.start()
      // XState does not notify subscribers of an actor that starts in a final state.
      if (status !== 'active') {
        this.#runtime?.emitRestoredState(context)
        this.#settle(actor.getSnapshot())
      }
      return
    }
    getPlatform().runSoon(() => {
      if (!this.#isReleased) actor.start()
    })
  }

  #refuseRun(error: unknown): void {
    this.#isRefused = true
    this.#session.release(this.id)
    // The run reports its refusal, so an error of the log is dropped.
    void attempt(() => this.#log?.close(), doNothing, doNothing)
    this.#unfollow?.()
    this.#started.refuse(error)
    this.#rest.refuse(error)
    const message = describeError(error)
    const code = error instanceof StatewrightError ? error.code : 'run_refused'
    const [runId, at] = [this.id, this.#clock.now()]
    this.#hub.fail(error, freezeOnce({ type: 'warning', code, message, id: `${runId}:1`, runId, seq: 1, at }))
    // The caller has just received the run and may still read one of its promises.
    getPlatform().runSoon(() => {
      if (!this.#isWatched) warnProcess(`A run was refused, but nothing awaits its result: ${message}`, code)
    })
  }

  /** The only way to send control events to the actor. */
  #send(event: ControlEvent, before?: ControlEvent): void {
    if (this.#isRefused || this.#isReleased) return
    if (this.#snapshot && this.#snapshot.status !== 'active') return
    // An expired question that another process ends leaves the run at its rest.
    if (event !== ownExpiry) this.#rest.leave()
    this.#mailbox.post(this.#withDigest(event), before)
  }

  /** A grant applies only to the tool's current version, which its digest identifies. */
  #withDigest(event: ControlEvent): ControlEvent {
    if ((event.type !== 'GRANT' && event.type !== 'APPROVE') || !event.grant) return event
    const { calls = [], speaker } = this.#context ?? {}
    const name =
      event.type === 'GRANT' ? event.tool : (calls.find(({ id }) => id === event.callId)?.name ?? '')
    return { ...event, grant: withToolDigest(event.grant, this.#tools(speaker).get(name)) } as typeof event
  }

  /** Stops at a point where another process can resume, and releases the session. */
  async #release(): Promise<void> {
    const actor = this.#actor
    const log = this.#log
    if (!actor) return
    const runtime = this.#runtime
    runtime?.halt()
    // May be called during a transition, which is written first.
    await this.#checks
    const children = runtime?.hasChildren ? [...runtime.children.values()] : []
    await Promise.all(children.map((child) => child.release()))
    // Messages must be in the log before another process resumes the run.
    // New events can arrive while it waits.
    while (this.#mailbox.sending || !this.#isQuiet(actor))
      await (this.#mailbox.sending ?? this.#waitUntilQuiet(actor))
    if (log) this.#recordRelease(actor, log)
    this.#isReleased = true
    log?.inbox.close()
    // XState lets only the parent stop an actor, such as a sub-agent's.
    // oxlint-disable-next-line no-underscore-dangle -- XState has no public method for this
    ;(actor as unknown as { _stop(): void })._stop()
    await log?.close()
  }

  #recordRelease(actor: Actor<AgentMachine>, log: SessionLog): void {
    const { status, context } = actor.getSnapshot()
    if (status !== 'active' || !isWorkState(context.state)) return
    const usage = this.#runtime?.openBill?.getUsageSoFar() ?? null
    if (usage !== null || log.isJustResumed) actor.send({ type: 'RELEASED', ...(usage && { usage }) })
  }

  #waitUntilQuiet(actor: Actor<AgentMachine>): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.#isQuiet(actor)) resolve()
      }
      actor.subscribe({ next: look, complete: resolve })
      look()
    })
  }

  /** Whether another process could resume the run now without repeating a call that must not run twice. */
  #isQuiet(actor: Actor<AgentMachine>): boolean {
    const { status, context } = actor.getSnapshot()
    return status !== 'active' || !context.calls.some((call) => isInDoubt(context, call))
  }

  #warn(code: string, message: string): void {
    this.#runtime?.emit({ type: 'warning', code, message })
  }

  /** Leaves the rest while the edit is validated, and returns to it if the edit is invalid. */
  async #answerLater(
    { callId, fingerprint, messageId }: PendingCall,
    edit: ControlEvent,
    problem: Promise<UsageError | null>,
  ): Promise<void> {
    this.#rest.leave()
    try {
      const refusal = await problem
      if (refusal) throw refusal
      // Another answer may have arrived in the meantime.
      getAwaitedCall(this.#forecast?.context, callId, 'approval', { fingerprint, messageId })
      this.#send(edit)
    } catch (error) {
      this.#warn('answer_refused', describeError(error))
      if (this.#snapshot) this.#settle(this.#snapshot)
    }
  }

  #settle({ context, status }: AgentSnapshot): void {
    const atFinal = status !== 'active'
    if (!atFinal && !isRestState(context.state)) {
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
    const ended = atFinal ? addObject(this.#output, this.#toEndResult(context)) : null
    if (written || ended instanceof Promise)
      void this.#rest.reachLater(written, () => ended ?? toRunResult(context), toUnsavedResult)
    else this.#rest.reach(() => ended ?? toRunResult(context))
  }

  /** Not the output of the snapshot itself, because the app owns its result and may change it. */
  #toEndResult(context: AgentContext): RunResult {
    const result = toRunResult(context)
    // A run that ended because its log could not be written can be resumed.
    const isResumable = result.reason === 'store_error' && this.#log?.isResumable === true
    return isResumable ? ({ ...result, resumable: true } as RunResult) : result
  }

  #checkActive(method: string): void {
    const ahead = this.#forecast
    if (this.#isRefused || (ahead && ahead.status !== 'active')) this.#failWrongState(method, 'it has ended')
  }

  #failWrongState(method: string, why: string): never {
    const text = `${method}(): the run is ${this.state} and ${why}. Await run.result, or watch run.state$, before you call it.`
    throw new UsageError('wrong_state', text, method)
  }
}
