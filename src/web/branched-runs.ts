import { isActiveState, isFinalState } from '../../machines/agent/run-result.js'
import { sha256 } from '../../guards/lib/sha256.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { findTurnIndex, isTurnOpening } from '../core/sessions/find-turn.js'
import type { SessionBranches } from '../core/sessions/replay-session.js'
import { hasSameWords } from '../core/sessions/user-input.js'
import { type ChatSession, isSessionTaken, type StoredContext } from './chat-sessions.js'
import { type IncomingMessage, isText, toInputMessage } from './chat-turn.js'
import { alreadySentError, answersPendingError, hasCode, runInProgressError } from './error-response.js'
import { subscribeFromStart, type Subscription, toCallerOptions } from './subscription.js'

/** A page's request for another answer to an earlier message. */
export interface BranchRequest {
  from: string
  /** Replaces the message. Null keeps the message. */
  edit: IncomingMessage | null
  /** Whether an edit with unchanged text asks for another answer. By default, the existing answer is shown. */
  isAgain?: boolean
  /** Identifies the request if it is sent again. */
  key: string | undefined
  /** The branch that the page shows. Defaults to the current branch of the session. */
  branch: number | undefined
}

export function createBranchedRuns(session: ChatSession) {
  const { sessionId, caller } = session
  const { agent } = session.host

  /** The answer that an earlier copy of this request started, or null if this request may start one. */
  async function join(
    { from, edit, key, branch }: BranchRequest,
    stored: StoredContext,
  ): Promise<Subscription | null> {
    const { context } = stored
    const { messages, state } = context
    const current: SessionBranches['began'] = stored.branches?.began ?? { at: 0 }
    const last = messages.findLastIndex(isTurnOpening)
    const live = session.getLive()
    const show = () => session.showAnswer(context)
    const startedAt = current.again ? current.at - 1 : current.at
    if (key !== undefined && current.key === key) {
      if (last !== startedAt) throw alreadySentError(from)
      return show()
    }
    const isLast =
      (branch ?? getCurrent(stored)) === getCurrent(stored) && findTurnIndex(messages, from) === last
    // A request without a key joins the regeneration in progress.
    const isWorkingOn = live !== undefined || isActiveState(state)
    if (isLast && isWorkingOn && edit === null && current.again && startedAt === last) return show()
    const mayTakeOver = isLast && edit === null && !live && isActiveState(state) && caller.mayContinue
    if (mayTakeOver && !(await session.isHeld())) return show()
    refuseUnfinished(stored)
    return isLast && edit && isUnchanged(edit, messages[last]) ? show() : null
  }

  function refuseUnfinished({ context }: StoredContext): void {
    const { state, reason } = context
    if (!session.getLive() && isFinalState(state)) return
    if (state === 'WAITING_FOR_INPUT' && reason !== 'message')
      throw answersPendingError(listAnswerableCalls(context))
    throw runInProgressError(sessionId)
  }

  async function startRun({ from, edit, key }: BranchRequest): Promise<Subscription> {
    const run = agent.branch(sessionId, {
      from,
      ...(edit && { edit: [toInputMessage(edit)] }),
      ...(key !== undefined && { key }),
      ...toCallerOptions(caller),
    } as never)
    const live = session.follow(run, null, { clientId: edit?.clientId ?? from })
    await run.started
    if (edit === null) {
      const branches = (await session.readStored())?.branches
      live.point = branches?.points.find(({ at }) => at === branches.began.at)
    }
    return subscribeFromStart(live)
  }

  return {
    /** @throws {UsageError} `run_in_progress`, `waiting_for_answers`, and the errors of `agent.branch` */
    start(request: BranchRequest): Promise<Subscription> {
      const start = async (): Promise<Subscription> => {
        const stored = await session.readStored()
        const completed = completeRequest(request, stored)
        const joined = stored && (await join(completed, stored))
        if (joined) return joined
        const { branch } = completed
        if (branch === undefined || branch === (stored && getCurrent(stored))) return startRun(completed)
        await agent.selectBranch(sessionId, branch)
        return start()
      }
      // Another process may have received the same request, or may be about to release the session.
      const isTaken = (error: unknown) => isSessionTaken(error) || hasCode(error, 'already_branched')
      return session.retryWhileTaken(start, isTaken)
    },

    /** False if the session is on that branch. @throws {UsageError} `run_in_progress`, `waiting_for_answers`, `unknown_branch` */
    select: (branch: number): Promise<boolean> =>
      session.retryWhileTaken(async () => {
        const stored = await session.readStored()
        if ((stored && getCurrent(stored)) === branch) return false
        if (stored && branch <= (stored.branches?.count ?? 1)) refuseUnfinished(stored)
        await agent.selectBranch(sessionId, branch)
        return true
      }),

    /** Whether a message is on a branch that the session has left. If so, the request is late or repeated. */
    async isOnOtherBranch(
      { lastMessageNumber, messages }: AgentContext,
      clientId: string | undefined,
    ): Promise<boolean> {
      // Messages on other branches have numbers that are missing from the transcript.
      if (clientId === undefined || lastMessageNumber <= messages.length) return false
      return (await session.readStored())?.branches?.left.includes(clientId) === true
    },
  }
}

const getCurrent = ({ branches }: StoredContext): number => branches?.current ?? 1

/** Adds the key, and removes an edit with unchanged text if the page asks for another answer. */
function completeRequest(request: BranchRequest, stored: StoredContext | null): BranchRequest {
  const { from, edit, isAgain = false } = request
  const { messages = [] } = stored?.context ?? {}
  const isRegeneration =
    isAgain && edit !== null && isUnchanged(edit, messages[findTurnIndex(messages, from)])
  return { ...request, key: createKey(request), ...(isRegeneration && { edit: null }) }
}

/** Edits are identified by their text, regenerations by the branch that the page shows. */
function createKey({ from, edit, key, branch }: BranchRequest): string | undefined {
  if (key !== undefined) return key
  if (edit) return `edit:${sha256(JSON.stringify([from, branch ?? null, edit.content])).slice(0, 32)}`
  return branch === undefined ? undefined : `branch:${branch}:${from}`
}

/** Whether an edit has the same text as the message, and both have only text. */
function isUnchanged(edit: IncomingMessage, message: Message | undefined): boolean {
  if (message?.role !== 'user' || message.data?.['withheld'] === true) return false
  const isPlain = isText({ content: message.content as IncomingMessage['content'], clientId: undefined })
  return isPlain && isText(edit) && hasSameWords(edit.content, message)
}
