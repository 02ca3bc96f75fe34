import type { AgentContext } from '../../machines/agent/context.js'
import { type RunResult, isActiveState, isFinalState } from '../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { UsageError } from '../core/base/errors.js'
import { joinTextParts } from '../core/base/text.js'
import { applyMessage } from '../core/run/apply-message.js'
import type { AnswerMessage } from '../core/sessions/inbox/session-message.js'
import { isDelivered } from '../core/sessions/inbox/queued-message.js'
import { type BranchRequest, createBranchedRuns } from './branched-runs.js'
import { selectAnswers, isAnyOpen, type PageAnswers } from './call-answers.js'
import {
  type ChatHost,
  createChatSession,
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
  type Turn,
} from './chat-turn.js'
import { findClientId, isTurnOpening } from '../core/sessions/find-turn.js'
import { alreadySentError, answersPendingError, hasCode, runInProgressError } from './error-response.js'
import { createPageView } from './exposure.js'
import {
  type AnyRun,
  type Caller,
  createFinishedSubscription,
  findContext,
  findTurn,
  type LiveRun,
  subscribeFromNow,
  subscribeFromStart,
  subscribeToNew,
  type Subscription,
  toCallerOptions,
} from './subscription.js'
import { createMessageQueue, type QueuedAnswer } from './message-queue.js'

export type Chat = ReturnType<typeof createChat>

export type SessionView = NonNullable<Awaited<ReturnType<Chat['readSession']>>>

/**
 * A chat of an agent, for one request. A message that is sent twice starts one run, and every page that subscribes
 * receives the same answer: first from the log, then live. All data for the page is masked according to `expose`.
 */
export function createChat(host: ChatHost, sessionId: string, caller: Caller) {
  const onEnd = (live: LiveRun): void => void createChat(host, sessionId, live.caller).startNextAfterEnd()
  const session = createChatSession(host, sessionId, caller, onEnd)
  const queue = createMessageQueue(session)
  const branched = createBranchedRuns(session)
  const { agent } = host
  const { by, whenBusy } = caller

  function mask(found: Subscription | null): Subscription | null {
    if (found === null) return null
    const view = createPageView(caller.expose, sessionId)
    const { turn } = found
    return {
      ...found,
      readPast: () => {
        const { before, ends } = found.readPast()
        return { before: view.maskMessages(before), ends: view.maskEnds(ends) }
      },
      turn: turn && {
        ...turn,
        messages: view.maskMessages(turn.messages),
        settled: turn.settled.map(view.maskResult),
        error: turn.error && view.maskFailure(turn.error),
      },
      maskEvent: view.maskEvent,
    }
  }

  /** Runs a task for the session, and masks its answer for the page. */
  async function runMasked<Answer extends Subscription | QueuedAnswer | null>(
    task: () => Promise<Answer>,
  ): Promise<Answer> {
    const found = await session.runTask(task)
    if (found === null || !('answer' in found)) return mask(found) as Answer
    const later = found.answer.then(mask)
    later.catch((error: unknown) =>
      caller.report({ where: 'run', error, callId: null }, { id: null, sessionId }),
    )
    return { answer: later } as Answer
  }

  async function deliver(message: IncomingMessage, attempt = 1): Promise<Subscription | QueuedAnswer> {
    const { clientId } = message
    const live = session.getLive()
    if (live && clientId !== undefined && live.clientIds.has(clientId)) {
      findSentMessage(findContext(live.run)?.messages ?? [], { ...message, clientId })
      return subscribeFromStart(live)
    }
    const context = await session.readContext()
    const earlier = context && (await findEarlierAnswer(context, message))
    if (earlier) return earlier
    if (message.branch !== undefined && (await branched.select(message.branch)))
      return deliver(message, attempt)
    if (live) return sendWhileBusy(message)
    switch (context?.state) {
      case 'RUNNING':
      case 'WAITING_FOR_TOOL':
        return sendWhileBusy(message)
      case 'WAITING_FOR_INPUT': {
        if (context.reason !== 'message') {
          if (whenBusy !== 'refuse' && session.hasInbox) return queue.add(message)
          throw answersPendingError(listAnswerableCalls(context))
        }
        const reply = (run: AnyRun): void => run.reply([toInputMessage(message)], { by })
        return session.resumeWith(reply, { clientId, isNewTurn: true })
      }
      case 'PAUSED': {
        if (!isText(message)) return queueAndResume(message)
        // The inbox stores the id of the message, so that a copy is recognized even after the run has ended.
        const usesInbox = clientId !== undefined && (await session.canUseInbox())
        if (usesInbox) await queue.send('now', message)
        const steer = (run: AnyRun): void => {
          if (!usesInbox) run.steer(joinTextParts(message.content), { by })
        }
        return session.resumeWith(steer, { clientId })
      }
      default:
        if (context && (await branched.isOnOtherBranch(context, clientId))) throw alreadySentError(clientId)
        // Queued messages are processed first.
        return context && !(await queue.isEmpty()) ? queue.add(message) : startRun(message, attempt)
    }
  }

  /** Queues a message, steers the run with it, or refuses it, because a run is active in this or another process. */
  async function sendWhileBusy(message: IncomingMessage): Promise<Subscription | QueuedAnswer> {
    if (whenBusy === 'refuse' || !session.hasInbox) throw runInProgressError(sessionId)
    try {
      if (whenBusy === 'steer' && isText(message) && queue.maySteer()) return await queue.steer(message)
      return await queue.add(message)
    } catch (error) {
      if (hasCode(error, 'interactive_run')) throw runInProgressError(sessionId)
      if (!hasCode(error, 'run_ended', 'not_waiting')) throw error
      return queue.add(message)
    }
  }

  /** A paused run can read only text, so a message with files becomes the next turn. */
  async function queueAndResume(message: IncomingMessage): Promise<Subscription | QueuedAnswer> {
    const queued = await sendWhileBusy(message)
    await session.resumeWith((run) => {
      try {
        run.resume({ by })
      } catch (error) {
        // A message in the inbox already resumes the run.
        if (!hasCode(error, 'wrong_state')) throw error
      }
    })
    return queued
  }

  async function startRun(message: IncomingMessage, attempt: number): Promise<Subscription | QueuedAnswer> {
    const options = { session: sessionId, ...toCallerOptions(caller) }
    const run = agent.run([toInputMessage(message)], options as never)
    const live = session.follow(run, null, { clientId: message.clientId })
    try {
      await run.started
    } catch (error) {
      // Another process may have received the same message, or may be about to release the session.
      if (!isSessionTaken(error) || attempt >= maxAttempts) throw error
      await session.waitForAttempt()
      return deliver(message, attempt + 1)
    }
    return subscribeToNew(live)
  }

  async function findEarlierAnswer(
    context: AgentContext,
    { clientId, content }: IncomingMessage,
  ): Promise<Subscription | null> {
    if (clientId === undefined) return null
    const openings = context.messages.filter(isTurnOpening)
    const last = openings.at(-1)
    const earlier = findSentMessage(openings, { clientId, content })
    const ofEarlier = earlier === last ? 'current' : 'past'
    const turn = earlier ? ofEarlier : await session.findSteeredTurn(clientId, last && findClientId(last))
    if (turn === 'past') throw alreadySentError(clientId)
    return turn && session.showAnswer(context)
  }

  async function giveAnswers(page: PageAnswers): Promise<Subscription> {
    const answers = { ...page, answers: page.answers.map((one) => ({ ...one, by })) }
    const live = session.getLive()
    if (live) {
      applyAnswers(live.run, selectAnswers(findContext(live.run), answers))
      return subscribeFromNow(live)
    }
    const stored = await session.readStored()
    const newAnswers = selectAnswers(stored?.context, answers)
    if (stored === null || !(await session.canUseInbox()))
      return session.resumeWith((run) => applyAnswers(run, newAnswers))
    try {
      await session.sendAnswers(newAnswers)
    } catch (error) {
      // The process that resumes the run also ends the expired question.
      if (hasCode(error, 'approval_expired')) await session.resumeOrFollow()
      throw error
    }
    return resumeAnswered(stored, newAnswers)
  }

  /** If another process has not read them after three seconds, they stay in the inbox until its release. */
  async function resumeAnswered(
    stored: StoredContext,
    answers: readonly AnswerMessage[],
  ): Promise<Subscription> {
    const follow = (resumes: boolean): Subscription =>
      session.followRemote(stored, { resumes, showsTurn: false, isAnswered: resumes })
    let isRead = false
    try {
      const run = await session.retryWhileTaken(session.resume, async (error) => {
        if (!hasCode(error, 'session_busy')) return false
        const context = await session.readContext()
        isRead = context !== null && !isAnyOpen(context, answers)
        return !isRead
      })
      const isAppliedHere = isAnyOpen(findContext(run), answers)
      const live = session.follow(run, findTurn(run))
      if (isAppliedHere) return subscribeToNew(live)
      return { ...follow(false), closing: live.closing }
    } catch (error) {
      if (!hasCode(error, 'session_busy')) throw error
      return follow(!isRead)
    }
  }

  /** Returns the result of the cancelled run, or null if the process that runs the session cancels it. */
  async function cancelRun(): Promise<RunResult | null> {
    const why = 'The user stopped it.'
    const live = session.getLive()
    if (live) {
      live.run.cancel(why, { by })
      return null
    }
    try {
      const { status } = await agent.send(sessionId, { type: 'cancel', why, by })
      if (status !== 'applied') return null
      const { run } = await agent.replay(sessionId)
      return run?.state === 'CANCELLED' ? run : null
    } catch (error) {
      if (hasCode(error, 'run_ended', 'unknown_session', 'nothing_to_resume')) return null
      if (!hasCode(error, 'no_inbox')) throw error
    }
    // Without an inbox, the run is resumed here and then cancelled.
    const run = await session.resumeWhenReleased()
    const turn = findTurn(run)
    run.cancel(why, { by })
    const result = await run.result
    return turn && isFinalState(turn.state) ? null : result
  }

  /**
   * Subscribes to the answer in progress, from its start. Null if there is none. A run in another process is read from
   * its log. If that process died, or no process has read the answers to the run, the run is resumed here, provided
   * that `caller.mayContinue` or `hasAnswered` (this request has just answered) is set.
   *
   * With `of`, subscribes to the answer to that user message, whether it is complete, in progress or queued. Null if
   * the session does not have the message.
   */
  function subscribe({ hasAnswered = false, of }: { hasAnswered?: boolean; of?: string | undefined } = {}) {
    const mayContinue = hasAnswered || caller.mayContinue
    return runMasked(async (): Promise<Subscription | QueuedAnswer | null> => {
      const live = session.getLive()
      if (live && (of === undefined || isAnswerOf(live, of))) return subscribeFromStart(live)
      // Messages move from the queue to the log, so the queue is read first.
      if (of !== undefined && (await queue.has(of))) return queue.watch(of)
      const stored = await session.readStored()
      if (stored === null) return null
      const { context } = stored
      if (of !== undefined && !isOpenedBy(context, of)) {
        const past = findPastTurn(context, of)
        return past && showRecorded(past, stored)
      }
      const isResting = !isActiveState(context.state)
      if (isResting && !(mayContinue && (await session.hasUnreadAnswer(context)))) {
        if (of !== undefined) return showRecorded(toTurn(context), stored)
        const isNext = mayContinue && !(await queue.isEmpty())
        const started = isNext ? await queue.startNext() : null
        return started && subscribeFromStart(started)
      }
      return mayContinue ? session.resumeOrFollow() : session.followRemote(stored)
    })
  }

  return {
    subscribe,
    startNextAfterEnd: (): Promise<void> => queue.startNextAfterEnd(),

    /**
     * While the session is working, `caller.whenBusy` decides: see `HandlerOptions`.
     * @throws {UsageError} `run_in_progress`, `queue_full`, `waiting_for_answers`, `message_changed`, `already_said`,
     * `unknown_branch`
     */
    sendMessage: (message: IncomingMessage) => runMasked(() => deliver(message)),

    /** Answers an earlier message again, or an edited version of it, on a new branch. @throws see `createBranchedRuns` */
    branch: (request: BranchRequest) => runMasked(() => branched.start(request)),

    /** All answers are checked first. @throws {UsageError} `unknown_call`, `already_answered`, `stale_answer` */
    answerCalls: (answers: PageAnswers) => runMasked(() => giveAnswers(answers)),

    /** `messages` is the transcript's length at the pause. @throws {UsageError} `already_answered` at another point */
    resumePaused: ({ messages, steer }: { messages: number; steer?: string | undefined }) =>
      runMasked(async () => {
        const context = session.getLive() ? null : await session.readContext()
        if (context?.state !== 'PAUSED' || context.messages.length !== messages) {
          const problem = 'The run is no longer paused there. Reload the conversation.'
          throw new UsageError('already_answered', problem, sessionId)
        }
        return session.resumeWith((run) =>
          steer === undefined ? run.resume({ by }) : run.steer(steer, { by }),
        )
      }),

    async subscribeAtRest(): Promise<Subscription | null> {
      const context = await session.readContext()
      return context && mask(createFinishedSubscription(toTurn(context)))
    },

    /** Cancels the unfinished run of the session. For a resting run, resolves when its hooks have settled. */
    async cancelRun(): Promise<void> {
      const ended = await session.runTask(cancelRun)
      if (ended) await caller.hooks.settle({ id: ended.runId, sessionId }, ended)
    },

    /** The current state of the session or of one of its branches, or null. @throws {UsageError} `unknown_branch` */
    async readSession(branch?: number) {
      // Messages move from the queue to the log, so the queue is read first.
      const waiting = await queue.list()
      const replayed = await nullIfUnknown(agent.replay(sessionId, branch === undefined ? {} : { branch }))
      if (replayed === null) return null
      const { messages, run, snapshot, branches, ends = [] } = replayed
      const { calls = [], steering = [] } = (snapshot?.context as AgentContext | undefined) ?? {}
      const { state = null, pending = [] } = run ?? {}
      const view = createPageView(caller.expose, sessionId)
      return {
        messages: view.maskMessages(messages),
        queued: [
          ...queue.listSteering(steering),
          ...waiting.filter((message) => !isDelivered(messages, findClientId(message) ?? message.id)),
        ],
        pending,
        /** The calls that are approved while other calls still wait for an answer. */
        approved: calls.flatMap((call) => (call.approved && !call.result ? [call.id] : [])),
        state,
        wakeAt: (run?.state === 'PAUSED' && run.wakeAt) || null,
        /** The end of each run that did not answer in full, by user message. */
        ends: view.maskEnds(ends),
        /** The points where the session's messages diverge from other branches. */
        points: branches?.points ?? [],
      }
    },
  }
}

function applyAnswers(run: AnyRun, answers: readonly AnswerMessage[]): void {
  for (const answer of answers) applyMessage(run, answer)
}

function showRecorded(turn: Turn, { branches, context }: StoredContext): Subscription {
  const at = turn.before.length
  // An earlier turn without an answer is followed by a message, whose point is not the answer's.
  const next = context.messages[at]
  const isOfAnswer = next === undefined || !isTurnOpening(next)
  const point = isOfAnswer ? branches?.points.find((one) => one.at === at) : undefined
  return { ...createFinishedSubscription(turn), point }
}

function isAnswerOf(live: LiveRun, messageId: string): boolean {
  if (live.clientIds.size > 0) return live.clientIds.has(messageId)
  const context = findContext(live.run)
  return context !== undefined && isOpenedBy(context, messageId)
}
