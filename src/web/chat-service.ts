import type { AgentContext } from '../../machines/agent/context.js'
import type { Message, UserMessage } from '../../machines/agent/messages.js'
import {
  type AgentState,
  type PendingCall,
  type RunResult,
  type TurnEnd,
  isActiveState,
  isFinalState,
} from '../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { internalsByAgent } from '../core/agent/agent-internals.js'
import { configError, UsageError } from '../core/base/errors.js'
import { joinTextParts } from '../core/base/text.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import { applyMessage } from '../core/run/apply-message.js'
import type { AnswerMessage } from '../core/sessions/inbox/session-message.js'
import { isDelivered } from '../core/sessions/inbox/queued-message.js'
import { BranchedRuns, type BranchRequest } from './branched-runs.js'
import { selectAnswers, isAnyOpen, type PageAnswers } from './call-answers.js'
import {
  ChatSessions,
  isSessionTaken,
  maxAttempts,
  nullIfUnknown,
  type StoredContext,
} from './chat-sessions.js'
import {
  findPastTurn,
  findSentMessage,
  type IncomingMessage,
  isOpenedBy,
  isText,
  toInputMessage,
  toTurn,
} from './chat-turn.js'
import { findClientId, isTurnOpening } from '../core/sessions/find-turn.js'
import { alreadySentError, answersPendingError, hasCode, runInProgressError } from './error-response.js'
import { PageView } from './exposure.js'
import {
  type AnyRun,
  type Caller,
  type ChatAgent,
  createFinishedSubscription,
  findContext,
  findTurn,
  type LiveRun,
  maskSubscription,
  subscribeFromNow,
  subscribeFromStart,
  type Subscription,
  toCallerOptions,
} from './subscription.js'
import { LiveRuns } from './live-runs.js'
import { MessageQueue, type QueuedAnswer } from './message-queue.js'

export interface SessionView {
  messages: readonly Message[]
  queued: readonly UserMessage[]
  pending: readonly PendingCall[]
  /** The calls that are approved while other calls still wait for an answer. */
  approved: readonly string[]
  state: AgentState | null
  /** When a sleeping run continues. */
  wakeAt: number | null
  /** The end of each run that did not answer in full, by user message. */
  ends: readonly TurnEnd[]
  /** The points where the session's messages diverge from other branches. */
  points: readonly BranchPoint[]
}

const serviceByAgent = new WeakMap<object, ChatService>()

/** @throws {ConfigError} `invalid_config` for an agent without a store */
export function getChatService(agent: ChatAgent): ChatService {
  const existing = serviceByAgent.get(agent)
  if (existing) return existing
  if (typeof agent?.run !== 'function')
    throw configError('agent must be an agent created by createAgent().', 'agent')
  const internals = internalsByAgent.get(agent)
  if (internals?.store === undefined)
    throw configError(
      'The agent has no store, but chat pages need one. Add one: createAgent({ store: fileStore({ dir }) }).',
      'agent',
    )
  const { store, parts, openStored } = internals
  const sessions = new ChatSessions(agent, {
    store,
    clock: parts.clock,
    getLabel: () => internals.label,
    openStored,
    inputShields: parts.shields.input.length > 0,
  })
  const service = new ChatService(sessions)
  serviceByAgent.set(agent, service)
  return service
}

/**
 * The chats of one agent. If a message is sent twice, it starts one run, and every page that subscribes receives the
 * same answer: first from the log, then live. A page that disconnects does not stop the run. All data sent to a page is
 * masked according to `expose`.
 */
export class ChatService {
  readonly #sessions: ChatSessions
  readonly #runs: LiveRuns
  readonly #queue: MessageQueue
  readonly #branched: BranchedRuns

  constructor(sessions: ChatSessions) {
    this.#sessions = sessions
    this.#runs = new LiveRuns(sessions)
    this.#branched = new BranchedRuns(sessions, this.#runs)
    this.#queue = new MessageQueue(sessions, this.#runs)
  }

  /**
   * Sends a user message, which starts a run or replies to a waiting run. While the session is working,
   * `caller.whenBusy` decides: see `HandlerOptions`.
   * @throws {UsageError} `run_in_progress`, `queue_full`, `waiting_for_answers`, `message_changed`, `already_said`,
   * `unknown_branch`
   */
  sendMessage(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
  ): Promise<Subscription | QueuedAnswer> {
    return this.#answer(sessionId, caller, () => this.#sendMessage(sessionId, message, caller))
  }

  /** Answers an earlier message again, or an edited version of it, on a new branch. @throws see `BranchedRuns` */
  branch(sessionId: string, request: BranchRequest, caller: Caller): Promise<Subscription> {
    return this.#answer(sessionId, caller, () => this.#branched.start(sessionId, request, caller))
  }

  /** All answers are checked first. @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer` */
  answerCalls(sessionId: string, answers: PageAnswers, caller: Caller): Promise<Subscription> {
    return this.#answer(sessionId, caller, () => this.#answerCalls(sessionId, answers, caller))
  }

  /** `messages` is the transcript's length at the pause. @throws {UsageError} `already_answered` at another point */
  resumePaused(
    sessionId: string,
    { messages, steer }: { messages: number; steer?: string | undefined },
    caller: Caller,
  ): Promise<Subscription> {
    return this.#answer(sessionId, caller, async () => {
      const context = this.#runs.get(sessionId) ? null : await this.#sessions.readContext(sessionId)
      if (context?.state !== 'PAUSED' || context.messages.length !== messages) {
        const problem = 'The run is no longer paused there. Reload the conversation.'
        throw new UsageError('already_answered', problem, sessionId)
      }
      return this.#runs.resumeWith(sessionId, caller, (run) => {
        if (steer === undefined) run.resume({ by: caller.by })
        else run.steer(steer, { by: caller.by })
      })
    })
  }

  /**
   * Subscribes to the answer in progress, from its start. Null if there is none. A run in another process is read from
   * its log. If that process died, or no process has read the answers to the run, the run is resumed here, provided
   * that `caller.mayContinue` or `hasAnswered` (this request has just answered) is set.
   *
   * With `of`, subscribes to the answer to that user message, whether it is complete, in progress or queued. Null if
   * the session does not have the message.
   */
  subscribe(
    sessionId: string,
    caller: Caller,
    options?: { hasAnswered?: boolean },
  ): Promise<Subscription | null>
  subscribe(
    sessionId: string,
    caller: Caller,
    options: { of: string | undefined },
  ): Promise<Subscription | QueuedAnswer | null>
  subscribe(
    sessionId: string,
    caller: Caller,
    { hasAnswered = false, of }: { hasAnswered?: boolean; of?: string | undefined } = {},
  ): Promise<Subscription | QueuedAnswer | null> {
    const mayContinue = hasAnswered || caller.mayContinue
    return this.#answer(sessionId, caller, async () => {
      const live = this.#runs.get(sessionId)
      if (live && (of === undefined || isAnswerOf(live, of))) return subscribeFromStart(live)
      // Messages move from the queue to the log, so the queue is read first.
      if (of !== undefined && (await this.#queue.has(sessionId, of)))
        return this.#queue.watch(sessionId, of, { ...caller, mayContinue })
      const stored = await this.#sessions.readStored(sessionId)
      if (stored === null) return null
      const { context } = stored
      if (of !== undefined && !isOpenedBy(context, of)) {
        const past = findPastTurn(context, of)
        return past && createFinishedSubscription(past)
      }
      const isResting = !isActiveState(context.state)
      if (isResting && !(mayContinue && (await this.#sessions.hasUnreadAnswer(sessionId, context)))) {
        if (of !== undefined) return createFinishedSubscription(toTurn(context))
        const isNext = mayContinue && !(await this.#queue.isEmpty(sessionId))
        const started = isNext ? await this.#queue.startNext(sessionId, caller) : null
        return started && subscribeFromStart(started)
      }
      return mayContinue
        ? this.#runs.resumeOrFollow(sessionId, caller)
        : this.#runs.followRemote(sessionId, stored, null)
    })
  }

  async subscribeAtRest(sessionId: string, caller: Caller): Promise<Subscription | null> {
    const context = await this.#sessions.readContext(sessionId)
    return context && this.#mask(sessionId, createFinishedSubscription(toTurn(context)), caller)
  }

  /** Cancels the unfinished run of a session. For a resting run, resolves when its hooks have settled. */
  async cancelRun(sessionId: string, caller: Caller): Promise<void> {
    const ended = await this.#sessions.runTask(sessionId, () => this.#cancelRun(sessionId, caller))
    if (ended) await caller.hooks.settle({ id: ended.runId, sessionId }, ended)
  }

  /** The current state of a session or of one of its branches, or null. @throws {UsageError} `unknown_branch` */
  async readSession(sessionId: string, caller: Caller, branch?: number): Promise<SessionView | null> {
    // Messages move from the queue to the log, so the queue is read first.
    const waiting = await this.#queue.list(sessionId)
    const replayed = await nullIfUnknown(
      this.#sessions.agent.replay(sessionId, branch === undefined ? {} : { branch }),
    )
    if (replayed === null) return null
    const { messages, run, snapshot, branches, ends = [] } = replayed
    const { calls = [], steering = [] } = (snapshot?.context as AgentContext | undefined) ?? {}
    const { state = null, pending = [] } = run ?? {}
    const view = new PageView(caller.expose, sessionId)
    return {
      messages: view.maskMessages(messages),
      queued: [
        ...this.#queue.listSteering(steering),
        ...waiting.filter((message) => !isDelivered(messages, findClientId(message) ?? message.id)),
      ],
      pending,
      approved: calls.flatMap((call) => (call.approved && !call.result ? [call.id] : [])),
      state,
      wakeAt: (run?.state === 'PAUSED' && run.wakeAt) || null,
      ends: view.maskEnds(ends),
      points: branches?.points ?? [],
    }
  }

  /** Runs a task for a session, and masks its answer for the page. */
  async #answer<Answer extends Subscription | QueuedAnswer | null>(
    sessionId: string,
    caller: Caller,
    task: () => Promise<Answer>,
  ): Promise<Answer> {
    const found = await this.#sessions.runTask(sessionId, task)
    if (found === null || !('answer' in found)) return this.#mask(sessionId, found, caller) as Answer
    const answer = found.answer.then((later) => this.#mask(sessionId, later, caller))
    answer.catch((error: unknown) =>
      caller.report({ where: 'run', error, callId: null }, { id: null, sessionId }),
    )
    return { answer } as Answer
  }

  #mask(sessionId: string, found: Subscription | null, { expose }: Caller): Subscription | null {
    return found && maskSubscription(found, new PageView(expose, sessionId))
  }

  async #sendMessage(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
    attempt = 1,
  ): Promise<Subscription | QueuedAnswer> {
    const { clientId } = message
    const live = this.#runs.get(sessionId)
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
          if (caller.whenBusy !== 'refuse' && this.#sessions.hasInbox)
            return this.#queue.add(sessionId, message, caller)
          throw answersPendingError(listAnswerableCalls(context))
        }
        return this.#runs.resumeWith(
          sessionId,
          caller,
          (run) => run.reply([toInputMessage(message)], { by: caller.by }),
          { clientId, isNewTurn: true },
        )
      case 'PAUSED': {
        // The inbox stores the id of the message, so that a copy is recognized even after the run has ended.
        const usesInbox =
          clientId !== undefined && isText(message) && (await this.#sessions.canUseInbox(sessionId))
        if (usesInbox) await this.#queue.send(sessionId, 'now', message, caller)
        const steer = (run: AnyRun): void => {
          if (!usesInbox) run.steer(joinTextParts(message.content), { by: caller.by })
        }
        return this.#runs.resumeWith(sessionId, caller, steer, { clientId })
      }
      default:
        if (context && (await this.#branched.isOnOtherBranch(context, clientId)))
          throw alreadySentError(clientId)
        // Queued messages are processed first.
        return context && !(await this.#queue.isEmpty(sessionId))
          ? this.#queue.add(sessionId, message, caller)
          : this.#startRun(sessionId, message, caller, attempt)
    }
  }

  /** Queues a message, steers the run with it, or refuses it, because a run is active in this or another process. */
  async #sendWhileBusy(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
  ): Promise<Subscription | QueuedAnswer> {
    const { whenBusy } = caller
    if (whenBusy === 'refuse' || !this.#sessions.hasInbox) throw runInProgressError(sessionId)
    try {
      if (whenBusy === 'steer' && isText(message) && this.#queue.maySteer(sessionId, caller))
        return await this.#queue.steer(sessionId, message, caller)
      return await this.#queue.add(sessionId, message, caller)
    } catch (error) {
      if (hasCode(error, 'interactive_run')) throw runInProgressError(sessionId)
      if (!hasCode(error, 'run_ended', 'not_waiting')) throw error
      return this.#queue.add(sessionId, message, caller)
    }
  }

  async #startRun(
    sessionId: string,
    message: IncomingMessage,
    caller: Caller,
    attempt: number,
  ): Promise<Subscription | QueuedAnswer> {
    const options = { session: sessionId, ...toCallerOptions(caller) }
    const run = this.#sessions.agent.run([toInputMessage(message)], options as never)
    const live = this.#runs.start(run, caller, message.clientId)
    try {
      await run.started
    } catch (error) {
      // Another process may have received the same message, or may be about to release the session.
      if (!isSessionTaken(error) || attempt >= maxAttempts) throw error
      await this.#sessions.waitForAttempt()
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
    const openings = context.messages.filter(isTurnOpening)
    const last = openings.at(-1)
    const earlier = findSentMessage(openings, { clientId, content })
    const turn = earlier
      ? earlier === last
        ? 'current'
        : 'past'
      : await this.#sessions.findSteeredTurn(sessionId, clientId, last && findClientId(last))
    if (turn === 'past') throw alreadySentError(clientId)
    if (turn === null) return null
    const live = this.#runs.get(sessionId)
    if (live) return subscribeFromStart(live)
    return isActiveState(context.state)
      ? this.#runs.resumeOrFollow(sessionId, caller)
      : createFinishedSubscription(toTurn(context))
  }

  async #answerCalls(sessionId: string, page: PageAnswers, caller: Caller): Promise<Subscription> {
    const answers = { ...page, answers: page.answers.map((answer) => ({ ...answer, by: caller.by })) }
    const live = this.#runs.get(sessionId)
    if (live) {
      applyAnswers(live.run, selectAnswers(findContext(live.run), answers))
      return subscribeFromNow(live)
    }
    const stored = await this.#sessions.readStored(sessionId)
    const newAnswers = selectAnswers(stored?.context, answers)
    if (stored === null || !(await this.#sessions.canUseInbox(sessionId)))
      return this.#runs.resumeWith(sessionId, caller, (run) => applyAnswers(run, newAnswers))
    try {
      await this.#sessions.sendAnswers(sessionId, newAnswers)
    } catch (error) {
      // The process that resumes the run also ends the expired question.
      if (hasCode(error, 'approval_expired')) await this.#runs.resumeOrFollow(sessionId, caller)
      throw error
    }
    return this.#resumeAnswered(sessionId, { stored, answers: newAnswers }, caller)
  }

  /** If another process has not read them after three seconds, they stay in the inbox until its release. */
  async #resumeAnswered(
    sessionId: string,
    { stored, answers }: { stored: StoredContext; answers: readonly AnswerMessage[] },
    caller: Caller,
  ): Promise<Subscription> {
    const follow = (resumer: Caller | null): Subscription =>
      this.#runs.followRemote(sessionId, stored, resumer, { showsTurn: false, isAnswered: resumer !== null })
    let isRead = false
    try {
      const run = await this.#sessions.retryWhileTaken(
        () => this.#sessions.resume(sessionId, caller),
        async (error) => {
          if (!hasCode(error, 'session_busy')) return false
          const context = await this.#sessions.readContext(sessionId)
          isRead = context !== null && !isAnyOpen(context, answers)
          return !isRead
        },
      )
      const isAppliedHere = isAnyOpen(findContext(run), answers)
      const live = this.#runs.removeAtRest(this.#runs.follow(run, findTurn(run), caller))
      if (isAppliedHere) return subscribeFromNow(live, { isContinued: true })
      return { ...follow(null), closing: live.closing }
    } catch (error) {
      if (!hasCode(error, 'session_busy')) throw error
      return follow(isRead ? null : caller)
    }
  }

  /** Cancels a run. Returns its result, or null if the process that runs the session cancels it. */
  async #cancelRun(sessionId: string, caller: Caller): Promise<RunResult | null> {
    const why = 'The user stopped it.'
    const live = this.#runs.get(sessionId)
    if (live) {
      live.run.cancel(why, { by: caller.by })
      return null
    }
    try {
      const { status } = await this.#sessions.agent.send(sessionId, { type: 'cancel', why, by: caller.by })
      if (status !== 'applied') return null
      const { run } = await this.#sessions.agent.replay(sessionId)
      return run?.state === 'CANCELLED' ? run : null
    } catch (error) {
      if (hasCode(error, 'run_ended', 'unknown_session', 'nothing_to_resume')) return null
      if (!hasCode(error, 'no_inbox')) throw error
    }
    // Without an inbox, the run is resumed here and then cancelled.
    const run = await this.#sessions.resumeWhenReleased(sessionId, caller)
    const turn = findTurn(run)
    run.cancel(why, { by: caller.by })
    const result = await run.result
    return turn && isFinalState(turn.state) ? null : result
  }
}

function applyAnswers(run: AnyRun, answers: readonly AnswerMessage[]): void {
  for (const answer of answers) applyMessage(run, answer)
}

function isAnswerOf(live: LiveRun, messageId: string): boolean {
  if (live.clientIds.size > 0) return live.clientIds.has(messageId)
  const context = findContext(live.run)
  return context !== undefined && isOpenedBy(context, messageId)
}
