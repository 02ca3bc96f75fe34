import type { AgentContext } from '../../machines/agent/context.js'
import { type AgentState, type PendingCall, isWorkState } from '../../machines/agent/run-result.js'
import type { Message } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import { acceptsDefinition, type AgentLabel } from '../core/sessions/agent-definition.js'
import type { Clock } from '../core/base/clock.js'
import { UsageError } from '../core/base/errors.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { applyAnswers, type CallAnswer, checkAnswers, isAnyOpen, tellAnswers } from './call-answers.js'
import type { ChatAgent } from './chat-agent.js'
import { followRemoteRun, type StoredContext } from './follow-remote.js'
import { type IncomingMessage, toInputMessage, toText } from './incoming-message.js'
import { maxAttempts, waitForNextAttempt } from './next-attempt.js'
import { SessionQueue } from './session-queue.js'
import {
  createFinishedSubscription,
  type Subscription,
  subscribeFromNow,
  subscribeFromStart,
} from './subscription.js'
import {
  alreadySentError,
  hasCode,
  isSessionTaken,
  isUnknownSession,
  runInProgressError,
  messageChangedError,
  answersPendingError,
} from './chat-errors.js'
import { type AnyRun, type Caller, findContext, findTurn, type LiveRun, LiveRuns } from './live-runs.js'
import { findClientId, isTurnOpening, toTurn } from './chat-turn.js'

/** The current state of a session. */
export interface SessionView {
  messages: readonly Message[]
  pending: readonly PendingCall[]
  /** Calls that are approved while other calls still wait. */
  approved: readonly string[]
  state: AgentState | null
}

export interface ChatInternals {
  store: SessionStore
  clock: Clock
  /** How `defineAgents` calls the agent. */
  getLabel: () => AgentLabel | undefined
}

export class ChatService {
  readonly #agent: ChatAgent
  readonly #internals: ChatInternals
  readonly #liveRuns = new LiveRuns()
  readonly #queue = new SessionQueue()

  constructor(agent: ChatAgent, made: ChatInternals) {
    this.#agent = agent
    this.#internals = made
  }

  /**
   * Sends a user message. It starts a run, or answers the run that waits for a message. A message with the same `clientId`
   * does not start a second run: the caller is subscribed to the first answer.
   *
   * @throws {UsageError} `run_in_progress`, `waiting_for_answers`, `message_changed`, `already_said`
   */
  sendMessage(sessionId: string, message: IncomingMessage, caller: Caller): Promise<Subscription> {
    return this.#queue.run(sessionId, () => this.#sendMessage(sessionId, message, caller))
  }

  /**
   * Answers pending calls. All answers are checked before the first one is applied.
   *
   * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`
   */
  answerCalls(sessionId: string, answers: readonly CallAnswer[], caller: Caller): Promise<Subscription> {
    return this.#queue.run(sessionId, () => this.#answerCalls(sessionId, answers, caller))
  }

  /**
   * Subscribes to the answer that is under way, from its beginning; null when there is none. A run of another process is
   * read from its log. A run whose process has died is resumed here with `mayContinue`; otherwise it is only watched.
   */
  subscribe(
    sessionId: string,
    caller: Caller,
    { mayContinue }: { mayContinue: boolean },
  ): Promise<Subscription | null> {
    return this.#queue.run(sessionId, async () => {
      const live = this.#liveRuns.get(sessionId)
      if (live) return subscribeFromStart(live)
      const stored = await this.#readStored(sessionId)
      if (stored === null || !isWorking(stored.context.state)) return null
      return mayContinue
        ? this.#resumeOrFollow(sessionId, caller)
        : this.#followRemote(sessionId, stored, null)
    })
  }

  /**
   * Resumes a paused run, with a steering text if there is one. `messages`: the length of the transcript at the pause.
   *
   * @throws {UsageError} `already_answered` when the run is not paused there any more
   */
  resumePaused(
    sessionId: string,
    { messages, steer }: { messages: number; steer?: string | undefined },
    caller: Caller,
  ): Promise<Subscription> {
    return this.#queue.run(sessionId, async () => {
      const context = this.#liveRuns.get(sessionId) ? null : await this.#readContext(sessionId)
      if (context?.state !== 'PAUSED' || context.messages.length !== messages) {
        throw new UsageError(
          'already_answered',
          'The run is not paused there any more: read the conversation again.',
          sessionId,
        )
      }
      return this.#resumeWith(sessionId, caller, { clientId: undefined }, (run) => {
        if (steer === undefined) run.resume()
        else run.steer(steer)
      })
    })
  }

  /** A session at rest as a finished subscription; null when there is no such session. */
  async subscribeAtRest(sessionId: string): Promise<Subscription | null> {
    const context = await this.#readContext(sessionId)
    return context && createFinishedSubscription(toTurn(context))
  }

  /** Cancels the run of a session that has not ended. */
  cancelRun(sessionId: string, caller: Caller): Promise<void> {
    return this.#queue.run(sessionId, async () => {
      const why = 'The user has stopped it.'
      const live = this.#liveRuns.get(sessionId)
      if (live) return live.run.cancel(why)
      try {
        await this.#agent.tell(sessionId, { type: 'cancel', why })
      } catch (error) {
        if (hasCode(error, 'run_ended', 'unknown_session', 'nothing_to_resume')) return
        if (!hasCode(error, 'no_inbox')) throw error
        // The store has no inbox: resume the run here and cancel it.
        const run = await this.#resumeWhenReleased(sessionId, caller)
        run.cancel(why)
        await run.result
      }
    })
  }

  /** The current state of a session; null when there is none. */
  async readSession(sessionId: string): Promise<SessionView | null> {
    try {
      const { messages, run, snapshot } = await this.#agent.replay(sessionId)
      const { calls = [] } = (snapshot?.context as AgentContext | undefined) ?? {}
      const approved = calls.flatMap((call) => (call.approved && !call.result ? [call.id] : []))
      return { messages, pending: run?.pending ?? [], approved, state: run?.state ?? null }
    } catch (error) {
      if (isUnknownSession(error)) return null
      throw error
    }
  }

  async #sendMessage(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
    attempt = 1,
  ): Promise<Subscription> {
    const { clientId } = message
    const live = this.#liveRuns.get(sessionId)
    if (live && clientId !== undefined && live.clientIds.has(clientId)) return subscribeFromStart(live)
    const context = await this.#readContext(sessionId)
    const earlier = context && (await this.#findEarlierAnswer(sessionId, context, message, caller))
    if (earlier) return earlier
    if (live) throw runInProgressError(sessionId)
    switch (context?.state) {
      case 'RUNNING':
      case 'WAITING_FOR_TOOL':
        throw runInProgressError(sessionId)
      case 'WAITING_FOR_INPUT':
        if (context.reason !== 'message') throw answersPendingError(listAnswerableCalls(context))
        return this.#resumeWith(sessionId, caller, message, (run) => {
          run.reply([toInputMessage(message)])
        })
      case 'PAUSED':
        return this.#resumeWith(sessionId, caller, message, (run) => {
          run.steer(toText(message))
        })
      default:
        return this.#startRun(sessionId, message, caller, attempt)
    }
  }

  async #startRun(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
    attempt: number,
  ): Promise<Subscription> {
    const run = this.#agent.run([toInputMessage(message)], {
      session: sessionId,
      context: caller.context,
    } as never)
    const live = this.#liveRuns.follow(run, null, caller, message.clientId)
    this.#liveRuns.removeAtRest(live)
    try {
      await run.started
    } catch (error) {
      // Another process may have received the same message, or may be about to release the session.
      if (!isSessionTaken(error) || attempt >= maxAttempts) throw error
      await waitForNextAttempt(this.#internals.clock)
      return this.#sendMessage(sessionId, message, caller, attempt + 1)
    }
    return subscribeFromStart(live)
  }

  async #findEarlierAnswer(
    sessionId: string,
    context: AgentContext,
    { clientId, content }: IncomingMessage,
    caller: Caller,
  ): Promise<Subscription | null> {
    if (clientId === undefined) return null
    const openingMessages = context.messages.filter(isTurnOpening)
    const earlier = openingMessages.find((message) => findClientId(message) === clientId)
    if (!earlier) return null
    if (earlier.data?.['withheld'] !== true && toText({ content }) !== toText(earlier)) {
      throw messageChangedError(clientId)
    }
    if (earlier !== openingMessages.at(-1)) {
      throw alreadySentError(clientId)
    }
    const live = this.#liveRuns.get(sessionId)
    if (live) return subscribeFromStart(live)
    return isWorking(context.state)
      ? this.#resumeOrFollow(sessionId, caller)
      : createFinishedSubscription(toTurn(context))
  }

  async #answerCalls(
    sessionId: string,
    answers: readonly CallAnswer[],
    caller: Caller,
  ): Promise<Subscription> {
    const live = this.#liveRuns.get(sessionId)
    if (live) {
      applyAnswers(live.run, checkAnswers(findContext(live.run), answers))
      return subscribeFromNow(live)
    }
    const stored = await this.#readStored(sessionId)
    const newAnswers = checkAnswers(stored?.context, answers)
    if (stored === null || !(await this.#canTell(sessionId)))
      return this.#answerHere(sessionId, newAnswers, caller)
    await tellAnswers(this.#agent, sessionId, newAnswers)
    const taken = await this.#resumeAnswered(sessionId, newAnswers, caller)
    // The log has what any process makes of the answers.
    const followed = this.#followRemote(sessionId, stored, taken ? null : caller, { showsTurn: false })
    return { ...followed, closing: taken?.closing }
  }

  /** Whether an answer may be left for the run: it is this agent's, and the store has an inbox. */
  async #canTell(sessionId: string): Promise<boolean> {
    const { store, getLabel } = this.#internals
    if (store.inbox === undefined) return false
    const { agent: name, version } = (await store.get(sessionId))?.summary ?? {}
    const definition = name === undefined ? null : { name, ...(version !== undefined && { version }) }
    return acceptsDefinition(getLabel(), definition)
  }

  /** Resumes the run and answers it here; refused where it is another agent's. */
  async #answerHere(
    sessionId: string,
    answers: readonly CallAnswer[],
    caller: Caller,
  ): Promise<Subscription> {
    const run = await this.#resumeWhenReleased(sessionId, caller)
    const resumed = this.#liveRuns.follow(run, findTurn(run), caller)
    try {
      applyAnswers(run, answers)
    } finally {
      this.#liveRuns.removeAtRest(resumed)
    }
    return subscribeFromNow(resumed, { isContinued: true })
  }

  /**
   * Resumes an answered run here, unless another process has the session and takes the answers. Null when no
   * process has taken them: after three seconds they stay in the inbox of a process that does not read it.
   */
  async #resumeAnswered(
    sessionId: string,
    answers: readonly CallAnswer[],
    caller: Caller,
  ): Promise<Pick<LiveRun, 'closing'> | null> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const run = await this.#agent.resume(sessionId, { context: caller.context } as never)
        return this.#liveRuns.removeAtRest(this.#liveRuns.follow(run, findTurn(run), caller))
      } catch (error) {
        if (!hasCode(error, 'session_busy')) throw error
      }
      const context = await this.#readContext(sessionId)
      if (context !== null && !isAnyOpen(context, answers)) return { closing: undefined }
      if (attempt >= maxAttempts) return null
      await waitForNextAttempt(this.#internals.clock)
    }
  }

  async #resumeWith(
    sessionId: string,
    caller: Caller,
    { clientId }: Pick<IncomingMessage, 'clientId'>,
    apply: (run: AnyRun) => void,
  ): Promise<Subscription> {
    const run = await this.#resumeWhenReleased(sessionId, caller)
    const turn = run.state === 'PAUSED' ? findTurn(run) : null
    apply(run)
    const live = this.#liveRuns.follow(run, turn, caller, clientId)
    this.#liveRuns.removeAtRest(live)
    return turn === null ? subscribeFromStart(live) : subscribeFromNow(live, { isContinued: true })
  }

  /** Resumes a run that was at work; follows it when another process holds it or another agent started it. */
  async #resumeOrFollow(sessionId: string, caller: Caller): Promise<Subscription> {
    try {
      return await this.#resumeInterrupted(sessionId, caller)
    } catch (error) {
      const isStranded = hasCode(error, 'stranded')
      const stored = isStranded || hasCode(error, 'session_busy') ? await this.#readStored(sessionId) : null
      if (stored === null) throw error
      return isWorking(stored.context.state)
        ? this.#followRemote(sessionId, stored, isStranded ? null : caller)
        : createFinishedSubscription(toTurn(stored.context))
    }
  }

  /** `caller`: resumes the run when no process holds it any more; null: the run is only watched. */
  #followRemote(
    sessionId: string,
    stored: StoredContext,
    caller: Caller | null,
    { showsTurn = true } = {},
  ): Subscription {
    const resumeHere = (by: Caller): Promise<void> =>
      this.#queue.run(sessionId, async () => {
        if (this.#liveRuns.get(sessionId) || (await this.#internals.store.get(sessionId))?.holder !== null)
          return
        const stored = await this.#readContext(sessionId)
        if (stored && isWorking(stored.state)) await this.#resumeInterrupted(sessionId, by)
      })
    return followRemoteRun(stored, {
      showsTurn,
      clock: this.#internals.clock,
      watch: (options) => this.#agent.watch(sessionId, options),
      ...(caller && { resumeHere: () => resumeHere(caller) }),
    })
  }

  /** Resumes a run that was at work when its process ended. */
  async #resumeInterrupted(sessionId: string, caller: Caller): Promise<Subscription> {
    const run = await this.#resumeWhenReleased(sessionId, caller)
    const turn = findTurn(run)
    if (turn && !isWorking(turn.state)) return createFinishedSubscription(turn)
    const live = this.#liveRuns.follow(run, turn, caller, turn?.clientId)
    this.#liveRuns.removeAtRest(live)
    return subscribeFromStart(live)
  }

  /** Retries while the process that wrote the rest still holds the session. */
  async #resumeWhenReleased(sessionId: string, caller: Caller): Promise<AnyRun> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#agent.resume(sessionId, { context: caller.context } as never)
      } catch (error) {
        if (!hasCode(error, 'session_busy') || attempt >= maxAttempts) throw error
        const context = await this.#readContext(sessionId)
        if (context && isWorking(context.state)) throw error
        await waitForNextAttempt(this.#internals.clock)
      }
    }
  }

  async #readContext(sessionId: string): Promise<AgentContext | null> {
    return (await this.#readStored(sessionId))?.context ?? null
  }

  async #readStored(sessionId: string): Promise<StoredContext | null> {
    try {
      const { seq, snapshot } = await this.#agent.replay(sessionId)
      return snapshot && { seq, context: snapshot.context as AgentContext }
    } catch (error) {
      if (isUnknownSession(error)) return null
      throw error
    }
  }
}

function isWorking(state: AgentState | null): boolean {
  return state === null || isWorkState(state)
}
