import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import { sha256 } from '../../guards/lib/sha256.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import { hasSameWords } from '../core/sessions/user-input.js'
import type { SessionBranches } from '../core/sessions/replay-session.js'
import { findTurnIndex, isTurnOpening } from '../core/sessions/find-turn.js'
import type { ChatAgent } from './chat-agent.js'
import {
  alreadySentError,
  answersPendingError,
  hasCode,
  isSessionTaken,
  runInProgressError,
} from './chat-errors.js'
import { type ChatInternals, type ChatSessions, isWorking } from './chat-sessions.js'
import { toTurn } from './chat-turn.js'
import type { StoredContext } from './follow-remote.js'
import type { ContinuedRuns } from './continued-runs.js'
import { type IncomingMessage, isText, toInputMessage } from './incoming-message.js'
import { type Caller, hasEnded, type LiveRuns } from './live-runs.js'
import { maxAttempts, waitForNextAttempt } from './next-attempt.js'
import { createFinishedSubscription, type Subscription, subscribeFromStart } from './subscription.js'

/** What a page asks for when it wants another answer. */
export interface BranchRequest {
  /** The page's id of the user message. */
  from: string
  /** The message that stands in its place. Null: the same message. */
  edit: IncomingMessage | null
  /** Whether an edit with the words of the message asks for another answer. Default: it is shown the answer that it has. */
  isAgain?: boolean
  /** What tells the request from others. */
  key: string | undefined
  /** The branch that the page shows; undefined: the one that the session is on. */
  branch: number | undefined
}

export interface BranchedRunsParts {
  agent: ChatAgent
  clock: ChatInternals['clock']
  sessions: ChatSessions
  liveRuns: LiveRuns
  continued: ContinuedRuns
}

/** The runs that begin at an earlier message of a session. */
export class BranchedRuns {
  readonly #parts: BranchedRunsParts

  constructor(parts: BranchedRunsParts) {
    this.#parts = parts
  }

  /**
   * Answers an earlier message on a new branch. A request that comes again joins what it has begun.
   *
   * @throws {UsageError} `run_in_progress`, `waiting_for_answers`, and as `agent.branch`
   */
  async begin(sessionId: string, asked: BranchRequest, caller: Caller): Promise<Subscription> {
    const { clock, agent } = this.#parts
    for (let attempt = 1; ; attempt += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      const standing = await this.#parts.sessions.readStored(sessionId)
      const request = completeRequest(asked, standing)
      // oxlint-disable-next-line no-await-in-loop -- as above
      const joined = standing && (await this.#join(sessionId, request, standing, caller))
      if (joined) return joined
      try {
        if (request.branch !== undefined && request.branch !== (standing && getCurrent(standing))) {
          // oxlint-disable-next-line no-await-in-loop -- as above
          await agent.selectBranch(sessionId, request.branch)
          continue
        }
        // oxlint-disable-next-line no-await-in-loop -- as above
        return await this.#start(sessionId, request, caller)
      } catch (error) {
        // Another process may have received the same request, or may be about to release the session.
        const isTaken = isSessionTaken(error) || hasCode(error, 'already_branched')
        if (!isTaken || attempt >= maxAttempts) throw error
        // oxlint-disable-next-line no-await-in-loop -- as above
        await waitForNextAttempt(clock)
      }
    }
  }

  /**
   * Puts a session back on a branch. False: it is on it.
   *
   * @throws {UsageError} `run_in_progress`, `waiting_for_answers`, `unknown_branch`
   */
  async select(sessionId: string, branch: number): Promise<boolean> {
    const { agent, clock } = this.#parts
    for (let attempt = 1; ; attempt += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      const standing = await this.#parts.sessions.readStored(sessionId)
      if ((standing && getCurrent(standing)) === branch) return false
      if (standing && branch <= (standing.branches?.count ?? 1)) this.#refuseUnfinished(sessionId, standing)
      try {
        // oxlint-disable-next-line no-await-in-loop -- as above
        await agent.selectBranch(sessionId, branch)
        return true
      } catch (error) {
        if (!isSessionTaken(error) || attempt >= maxAttempts) throw error
        // oxlint-disable-next-line no-await-in-loop -- as above
        await waitForNextAttempt(clock)
      }
    }
  }

  /** Whether a message with this id was said on a branch that the session has left: its request comes late, or again. */
  async isOnOtherBranch(
    { sessionId, numbered, messages }: AgentContext,
    clientId: string | undefined,
  ): Promise<boolean> {
    // Other branches have numbers that the transcript does not have.
    if (clientId === undefined || numbered <= messages.length) return false
    return (await this.#parts.sessions.readStored(sessionId))?.branches?.left.includes(clientId) === true
  }

  /** The answer that the request has begun already; null when it has begun none, and may. */
  async #join(
    sessionId: string,
    { from, edit, key, branch }: BranchRequest,
    standing: StoredContext,
    caller: Caller,
  ): Promise<Subscription | null> {
    const { liveRuns, continued, sessions } = this.#parts
    const { context } = standing
    const { messages, state } = context
    const current: SessionBranches['began'] = standing.branches?.began ?? { at: 0 }
    const last = messages.findLastIndex(isTurnOpening)
    const live = liveRuns.get(sessionId)
    const isAtWork = live !== undefined || isWorking(state)
    const show = (): Subscription | Promise<Subscription> => {
      if (live) return subscribeFromStart(live)
      return isWorking(state)
        ? continued.resumeOrFollow(sessionId, caller)
        : createFinishedSubscription(toTurn(context))
    }
    const began = current.again ? current.at - 1 : current.at
    if (key !== undefined && current.key === key) {
      if (last !== began) throw alreadySentError(from)
      return show()
    }
    const isLast =
      (branch ?? getCurrent(standing)) === getCurrent(standing) && findTurnIndex(messages, from) === last
    // Without a key, an answer that is being given anew is the one that is asked for.
    if (isLast && isAtWork && edit === null && current.again && began === last) return show()
    const mayTakeOver = isLast && edit === null && !live && isWorking(state) && caller.mayContinue
    if (mayTakeOver && !(await sessions.isHeld(sessionId))) return show()
    this.#refuseUnfinished(sessionId, standing)
    return isLast && edit && isUnchanged(edit, messages[last]) ? show() : null
  }

  #refuseUnfinished(sessionId: string, { context }: StoredContext): void {
    const { state, reason } = context
    if (this.#parts.liveRuns.get(sessionId) || state === null || !hasEnded(state)) {
      if (state === 'WAITING_FOR_INPUT' && reason !== 'message')
        throw answersPendingError(listAnswerableCalls(context))
      throw runInProgressError(sessionId)
    }
  }

  async #start(sessionId: string, { from, edit, key }: BranchRequest, caller: Caller): Promise<Subscription> {
    const { agent, liveRuns } = this.#parts
    const run = agent.branch(sessionId, {
      from,
      ...(edit && { edit: [toInputMessage(edit)] }),
      ...(key !== undefined && { key }),
      context: caller.context,
      ...(caller.tags && { tags: caller.tags }),
    } as never)
    const live = liveRuns.follow(run, null, caller, edit?.clientId ?? from)
    liveRuns.removeAtRest(live)
    await run.started
    if (edit === null) live.point = await this.#findAnswerPoint(sessionId)
    return subscribeFromStart(live)
  }

  /** Where the answer that has just begun parts from the others. */
  async #findAnswerPoint(sessionId: string): Promise<BranchPoint | undefined> {
    const branches = (await this.#parts.sessions.readStored(sessionId))?.branches
    return branches?.points.find(({ at }) => at === branches.began.at)
  }
}

const getCurrent = ({ branches }: StoredContext): number => branches?.current ?? 1

/** The request with its key, and without an edit that asks for the words that the message has. */
function completeRequest(asked: BranchRequest, standing: StoredContext | null): BranchRequest {
  const key = createKey(asked)
  const { messages = [] } = standing?.context ?? {}
  const message = messages[findTurnIndex(messages, asked.from)]
  const isAgain = asked.isAgain === true && asked.edit !== null && isUnchanged(asked.edit, message)
  return { ...asked, key, ...(isAgain && { edit: null }) }
}

/** What tells a request from others. Of an edit, its words; where a page shows another branch, that branch. */
function createKey({ from, edit, key, branch }: BranchRequest): string | undefined {
  if (key !== undefined) return key
  if (edit) return `edit:${sha256(JSON.stringify([from, branch ?? null, edit.content])).slice(0, 32)}`
  return branch === undefined ? undefined : `branch:${branch}:${from}`
}

/** Whether an edit has the words of the message, and nothing else. */
function isUnchanged(edit: IncomingMessage, message: Message | undefined): boolean {
  if (message?.role !== 'user' || message.data?.['withheld'] === true) return false
  const { content } = message
  const isPlain = typeof content === 'string' || content.every(({ type }) => type === 'text')
  return isPlain && isText(edit) && hasSameWords(edit.content, message)
}
