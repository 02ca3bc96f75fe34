import { joinTextParts } from '../core/base/text.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { AgentState, PendingCall, RunResult, TurnEnd } from '../../machines/agent/run-result.js'
import type { Message, UserMessage } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import { UsageError } from '../core/base/errors.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import { applyAnswers, type CallAnswer, checkAnswers, isAnyOpen, type PageAnswers } from './call-answers.js'
import type { ChatAgent } from './chat-agent.js'
import { type ChatInternals, ChatSessions, isWorking } from './chat-sessions.js'
import { ContinuedRuns } from './continued-runs.js'
import type { StoredContext } from './follow-remote.js'
import { type IncomingMessage, isText, toInputMessage } from './incoming-message.js'
import { MessageQueue, type QueuedAnswer, type WhenBusy } from './message-queue.js'
import { maxAttempts, waitForNextAttempt } from './next-attempt.js'
import { BranchedRuns, type BranchRequest } from './branched-runs.js'
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
  answersPendingError,
} from './chat-errors.js'
import {
  type AnyRun,
  type Caller,
  findContext,
  findTurn,
  hasEnded,
  type LiveRun,
  LiveRuns,
} from './live-runs.js'
import {
  findClientId,
  findPastTurn,
  findSentMessage,
  isOpenedBy,
  isTurnOpening,
  toTurn,
} from './chat-turn.js'
import { isSaid } from '../core/sessions/inbox/queued-message.js'

/** The current state of a session. */
export interface SessionView {
  messages: readonly Message[]
  /** Messages that wait for their turns, in order. */
  queued: readonly UserMessage[]
  pending: readonly PendingCall[]
  /** Calls that are approved while other calls still wait. */
  approved: readonly string[]
  state: AgentState | null
  /** When its run goes on, which sleeps. */
  wakeAt: number | null
  /** Ends of runs that did not answer in full, by the user messages that they answer. */
  ends: readonly TurnEnd[]
  /** Where its messages part from those of other branches. */
  points: readonly BranchPoint[]
}

/** A message, and what becomes of it while the session works. */
type SentMessage = IncomingMessage & { whenBusy: WhenBusy }

export class ChatService {
  readonly #agent: ChatAgent
  readonly #clock: ChatInternals['clock']
  readonly #sessions: ChatSessions
  readonly #liveRuns = new LiveRuns()
  readonly #tasks = new SessionQueue()
  readonly #continued: ContinuedRuns
  readonly #messages: MessageQueue
  readonly #branched: BranchedRuns

  constructor(agent: ChatAgent, made: ChatInternals) {
    this.#agent = agent
    this.#clock = made.clock
    this.#sessions = new ChatSessions(agent, made)
    const shared = { agent, clock: made.clock, sessions: this.#sessions, liveRuns: this.#liveRuns }
    this.#continued = new ContinuedRuns({ ...shared, tasks: this.#tasks })
    this.#branched = new BranchedRuns({ ...shared, continued: this.#continued })
    this.#messages = new MessageQueue({
      ...shared,
      tasks: this.#tasks,
      continued: this.#continued,
      beginQueuedRun: made.beginQueuedRun,
    })
  }

  /**
   * Sends a user message. It starts a run, or answers the run that waits for a message. A message with the same `clientId`
   * does not start a second run: the caller is subscribed to the first answer. While the session works, `whenBusy` says what
   * becomes of the message: see `HandlerOptions`.
   *
   * @throws {UsageError} `run_in_progress`, `queue_full`, `waiting_for_answers`, `message_changed`, `already_said`,
   * `unknown_branch`
   */
  sendMessage(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
    { whenBusy }: { whenBusy: WhenBusy },
  ): Promise<Subscription | QueuedAnswer> {
    return this.#tasks.run(sessionId, () => this.#sendMessage(sessionId, { ...message, whenBusy }, caller))
  }

  /**
   * Answers an earlier message once more, or an edit of it, on a new branch. While the session works or waits, it is refused.
   *
   * @throws {UsageError} see `BranchedRuns`
   */
  branch(sessionId: string, request: BranchRequest, caller: Caller): Promise<Subscription> {
    return this.#tasks.run(sessionId, () => this.#branched.begin(sessionId, request, caller))
  }

  /**
   * Answers pending calls. All answers are checked before the first one is applied.
   *
   * @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer`
   */
  answerCalls(sessionId: string, answers: PageAnswers, caller: Caller): Promise<Subscription> {
    return this.#tasks.run(sessionId, () => this.#answerCalls(sessionId, answers, caller))
  }

  /**
   * Subscribes to the answer that is under way, from its beginning; null when there is none. A run of another process is
   * read from its log. A run whose process has died is resumed here with `mayContinue`, as is a run whose answers no process
   * has read; otherwise it is only watched.
   *
   * With `of`, it is the answer to that user message, whether the run has ended, works, or has not begun: a page that has read
   * the message misses nothing. Null when the session does not have the message.
   */
  subscribe(
    sessionId: string,
    caller: Caller,
    { mayContinue, of }: { mayContinue: boolean; of?: string | undefined },
  ): Promise<Subscription | QueuedAnswer | null> {
    return this.#tasks.run(sessionId, async () => {
      const live = this.#liveRuns.get(sessionId)
      if (live && (of === undefined || isAnswerOf(live, of))) return subscribeFromStart(live)
      // The queue is read before the log: a message moves from one to the other.
      if (of !== undefined && (await this.#messages.has(sessionId, of)))
        return this.#messages.watch(sessionId, of, { ...caller, mayContinue })
      const stored = await this.#sessions.readStored(sessionId)
      if (stored === null) return null
      if (of !== undefined && !isOpenedBy(stored.context, of)) {
        const past = findPastTurn(stored.context, of)
        return past && createFinishedSubscription(past)
      }
      const isAtRest = !isWorking(stored.context.state)
      if (isAtRest && !(mayContinue && (await this.#continued.isAnswered(sessionId, stored)))) {
        if (of !== undefined) return createFinishedSubscription(toTurn(stored.context))
        const isNext = mayContinue && !(await this.#messages.isEmpty(sessionId))
        const begun = isNext ? await this.#messages.beginNext(sessionId, caller) : null
        return begun && subscribeFromStart(begun)
      }
      return mayContinue
        ? this.#continued.resumeOrFollow(sessionId, caller)
        : this.#continued.followRemote(sessionId, stored, null)
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
    return this.#tasks.run(sessionId, async () => {
      const context = this.#liveRuns.get(sessionId) ? null : await this.#sessions.readContext(sessionId)
      if (context?.state !== 'PAUSED' || context.messages.length !== messages) {
        throw new UsageError(
          'already_answered',
          'The run is not paused there any more: read the conversation again.',
          sessionId,
        )
      }
      return this.#continued.resumeWith(sessionId, caller, { clientId: undefined }, (run) => {
        if (steer === undefined) run.resume()
        else run.steer(steer)
      })
    })
  }

  /** A session at rest as a finished subscription; null when there is no such session. */
  async subscribeAtRest(sessionId: string): Promise<Subscription | null> {
    const context = await this.#sessions.readContext(sessionId)
    return context && createFinishedSubscription(toTurn(context))
  }

  /** Cancels the run of a session that has not ended. Settles when the hooks of a run at rest have. */
  async cancelRun(sessionId: string, caller: Caller): Promise<void> {
    const ended = await this.#tasks.run(sessionId, () => this.#cancelRun(sessionId, caller))
    if (ended) await caller.hooks.rest({ id: ended.runId, sessionId }, ended)
  }

  /** The result of a run that did not work in this process; null where a process that runs it cancels it. */
  async #cancelRun(sessionId: string, caller: Caller): Promise<RunResult | null> {
    const why = 'The user has stopped it.'
    const live = this.#liveRuns.get(sessionId)
    if (live) {
      live.run.cancel(why)
      return null
    }
    try {
      const { status } = await this.#agent.send(sessionId, { type: 'cancel', why })
      if (status !== 'applied') return null
      const { run } = await this.#agent.replay(sessionId)
      return run?.state === 'CANCELLED' ? run : null
    } catch (error) {
      if (hasCode(error, 'run_ended', 'unknown_session', 'nothing_to_resume')) return null
      if (!hasCode(error, 'no_inbox')) throw error
    }
    // The store has no inbox: resume the run here and cancel it.
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const turn = findTurn(run)
    run.cancel(why)
    const result = await run.result
    return turn && hasEnded(turn.state) ? null : result
  }

  /**
   * The current state of a session, or of one of its branches; null when there is none.
   *
   * @throws {UsageError} `unknown_branch`
   */
  async readSession(sessionId: string, branch?: number): Promise<SessionView | null> {
    try {
      const read = branch === undefined ? {} : { branch }
      // The queue is read before the log: a message moves from one to the other.
      const waiting = await this.#messages.list(sessionId)
      const { messages, run, snapshot, branches, ends = [] } = await this.#agent.replay(sessionId, read)
      const { calls = [], steering = [] } = (snapshot?.context as AgentContext | undefined) ?? {}
      const approved = calls.flatMap((call) => (call.approved && !call.result ? [call.id] : []))
      const queued = [
        ...this.#messages.listSteering(steering),
        ...waiting.filter((message) => !isSaid(messages, findClientId(message) ?? message.id)),
      ]
      const points = branches?.points ?? []
      const { state = null, pending = [] } = run ?? {}
      const wakeAt = (run?.state === 'PAUSED' && run.wakeAt) || null
      return { messages, queued, pending, approved, state, wakeAt, ends, points }
    } catch (error) {
      if (isUnknownSession(error)) return null
      throw error
    }
  }

  async #sendMessage(
    sessionId: string,
    message: SentMessage,
    caller: Caller,
    attempt = 1,
  ): Promise<Subscription | QueuedAnswer> {
    const { clientId } = message
    const live = this.#liveRuns.get(sessionId)
    if (live && clientId !== undefined && live.clientIds.has(clientId)) {
      findSentMessage(findContext(live.run)?.messages ?? [], { ...message, clientId })
      return subscribeFromStart(live)
    }
    const context = await this.#sessions.readContext(sessionId)
    const earlier = context && (await this.#findEarlierAnswer(sessionId, context, message, caller))
    if (earlier) return earlier
    if (message.branch !== undefined && (await this.#branched.select(sessionId, message.branch)))
      return this.#sendMessage(sessionId, message, caller, attempt)
    if (live) return this.#sendWhileBusy(sessionId, message, caller)
    switch (context?.state) {
      case 'RUNNING':
      case 'WAITING_FOR_TOOL':
        return this.#sendWhileBusy(sessionId, message, caller)
      case 'WAITING_FOR_INPUT':
        if (context.reason !== 'message') {
          if (message.whenBusy !== 'refuse' && this.#sessions.hasInbox)
            return this.#messages.add(sessionId, message, caller)
          throw answersPendingError(listAnswerableCalls(context))
        }
        return this.#continued.resumeWith(sessionId, caller, message, (run) => {
          run.reply([toInputMessage(message)])
        })
      case 'PAUSED': {
        const steer = (run: AnyRun): unknown => run.steer(joinTextParts(message.content))
        // The inbox keeps the id of the message, so that a copy of it is recognised after the run has ended.
        const isTold = clientId !== undefined && isText(message) && (await this.#sessions.canSend(sessionId))
        if (isTold) await this.#messages.send(sessionId, 'now', message, caller)
        return this.#continued.resumeWith(sessionId, caller, message, isTold ? ignore : steer)
      }
      default:
        if (context && (await this.#branched.isOnOtherBranch(context, clientId)))
          throw alreadySentError(clientId)
        // Messages that wait are said first.
        return context && !(await this.#messages.isEmpty(sessionId))
          ? this.#messages.add(sessionId, message, caller)
          : this.#startRun(sessionId, message, caller, attempt)
    }
  }

  /** A run of this process or of another one works: the message waits for its end, steers it, or is refused. */
  async #sendWhileBusy(
    sessionId: string,
    message: SentMessage,
    caller: Caller,
  ): Promise<Subscription | QueuedAnswer> {
    const { whenBusy } = message
    if (whenBusy === 'refuse' || !this.#sessions.hasInbox) throw runInProgressError(sessionId)
    try {
      if (whenBusy === 'steer' && isText(message) && this.#messages.maySteer(sessionId, caller))
        return await this.#messages.steer(sessionId, message, caller)
      return await this.#messages.add(sessionId, message, caller)
    } catch (error) {
      if (hasCode(error, 'interactive_run')) throw runInProgressError(sessionId)
      // The run has ended meanwhile.
      if (!hasCode(error, 'run_ended', 'not_waiting')) throw error
      return this.#messages.add(sessionId, message, caller)
    }
  }

  async #startRun(
    sessionId: string,
    message: SentMessage,
    caller: Caller,
    attempt: number,
  ): Promise<Subscription | QueuedAnswer> {
    const run = this.#agent.run([toInputMessage(message)], {
      session: sessionId,
      context: caller.context,
      ...(caller.tags && { tags: caller.tags }),
    } as never)
    const live = this.#liveRuns.follow(run, null, caller, message.clientId)
    this.#liveRuns.removeAtRest(live)
    try {
      await run.started
    } catch (error) {
      // Another process may have received the same message, or may be about to release the session.
      if (!isSessionTaken(error) || attempt >= maxAttempts) throw error
      await waitForNextAttempt(this.#clock)
      return this.#sendMessage(sessionId, message, caller, attempt + 1)
    }
    return subscribeFromStart(live)
  }

  async #findEarlierAnswer(
    sessionId: string,
    context: AgentContext,
    { clientId, content }: SentMessage,
    caller: Caller,
  ): Promise<Subscription | null> {
    if (clientId === undefined) return null
    const openingMessages = context.messages.filter(isTurnOpening)
    const earlier = findSentMessage(openingMessages, { clientId, content })
    if (!earlier) {
      const last = openingMessages.at(-1)
      const steered = await this.#sessions.findSteeredTurn(sessionId, clientId, last && findClientId(last))
      if (steered === 'past') throw alreadySentError(clientId)
      return steered === 'current' ? this.#subscribeToTurn(sessionId, context, caller) : null
    }
    if (earlier !== openingMessages.at(-1)) {
      throw alreadySentError(clientId)
    }
    return this.#subscribeToTurn(sessionId, context, caller)
  }

  /** The current turn, from its beginning. */
  async #subscribeToTurn(sessionId: string, context: AgentContext, caller: Caller): Promise<Subscription> {
    const live = this.#liveRuns.get(sessionId)
    if (live) return subscribeFromStart(live)
    return isWorking(context.state)
      ? this.#continued.resumeOrFollow(sessionId, caller)
      : createFinishedSubscription(toTurn(context))
  }

  async #answerCalls(sessionId: string, answers: PageAnswers, caller: Caller): Promise<Subscription> {
    const live = this.#liveRuns.get(sessionId)
    if (live) {
      applyAnswers(live.run, checkAnswers(findContext(live.run), answers))
      return subscribeFromNow(live)
    }
    const stored = await this.#sessions.readStored(sessionId)
    const newAnswers = checkAnswers(stored?.context, answers)
    if (stored === null || !(await this.#sessions.canSend(sessionId)))
      return this.#answerHere(sessionId, newAnswers, caller)
    await this.#sessions.send(sessionId, newAnswers)
    return this.#resumeAnswered(sessionId, { stored, answers: newAnswers }, caller)
  }

  /** Resumes the run and answers it here; refused where it is another agent's. */
  async #answerHere(
    sessionId: string,
    answers: readonly CallAnswer[],
    caller: Caller,
  ): Promise<Subscription> {
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const resumed = this.#liveRuns.follow(run, findTurn(run), caller)
    try {
      applyAnswers(run, answers)
    } finally {
      this.#liveRuns.removeAtRest(resumed)
    }
    return subscribeFromNow(resumed, { isContinued: true })
  }

  /**
   * Resumes a run here whose answers are in its inbox, unless another process has the session and takes them. After three
   * seconds they stay in the inbox of a process that does not read it; they are taken here when that process is gone.
   */
  async #resumeAnswered(
    sessionId: string,
    { stored, answers }: { stored: StoredContext; answers: readonly CallAnswer[] },
    caller: Caller,
  ): Promise<Subscription> {
    // The log has what another process makes of the answers.
    const follow = (by: Caller | null): Subscription =>
      this.#continued.followRemote(sessionId, stored, by, { showsTurn: false, isAnswered: by !== null })
    for (let attempt = 1; ; attempt += 1) {
      try {
        const run = await this.#sessions.resume(sessionId, caller)
        const isTakenHere = isAnyOpen(findContext(run), answers)
        const live = this.#liveRuns.removeAtRest(this.#liveRuns.follow(run, findTurn(run), caller))
        if (isTakenHere) return subscribeFromNow(live, { isContinued: true })
        return { ...follow(null), closing: live.closing }
      } catch (error) {
        if (!hasCode(error, 'session_busy')) throw error
      }
      const context = await this.#sessions.readContext(sessionId)
      if (context !== null && !isAnyOpen(context, answers)) return follow(null)
      if (attempt >= maxAttempts) return follow(caller)
      await waitForNextAttempt(this.#clock)
    }
  }
}

/** Whether a run of this process answers the user message with this id, which is the page's or that of the transcript. */
function isAnswerOf(live: LiveRun, messageId: string): boolean {
  if (live.clientIds.size > 0) return live.clientIds.has(messageId)
  const context = findContext(live.run)
  return context !== undefined && isOpenedBy(context, messageId)
}

const ignore = (): void => undefined
