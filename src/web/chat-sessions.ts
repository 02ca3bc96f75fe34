import type { AgentContext } from '../../machines/agent/context.js'
import { isActiveState } from '../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import type { AgentInternals } from '../core/agent/agent-internals.js'
import { type Clock, wait } from '../core/base/clock.js'
import { acceptsDefinition, type AgentLabel } from '../core/sessions/agent-definition.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import { isQueuedText, type QueuedMessage, sortQueue } from '../core/sessions/inbox/queued-message.js'
import { type AnswerMessage, parseInboxMessage } from '../core/sessions/inbox/session-message.js'
import type { SessionBranches } from '../core/sessions/replay-session.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { isAnswerTo, isSameCall, sendAnswers } from './call-answers.js'
import { hasCode } from './error-response.js'
import type { AnyRun, Caller, ChatAgent } from './subscription.js'

interface ChatInternals extends Pick<AgentInternals, 'openStored'> {
  store: SessionStore
  clock: Clock
  inputShields: boolean
  /** The name and version of the agent in `defineAgents`. */
  getLabel: () => AgentLabel | undefined
}

/** The context of a session after a record in its log. */
export interface StoredContext {
  /** The branches of the session. Absent if the session has only one branch. */
  branches?: SessionBranches | undefined
  seq: number
  context: AgentContext
}

const attemptDelayMs = 100

/** Attempts to acquire a session that another process is about to release, over three seconds in total. */
export const maxAttempts = 30

export const isSessionTaken = (error: unknown): boolean => hasCode(error, 'session_busy', 'unfinished_run')

/** The stored sessions of an agent. Reads their state and inboxes, and resumes their runs. */
export class ChatSessions {
  readonly agent: ChatAgent
  readonly internals: ChatInternals
  readonly #tasks = new Map<string, Promise<unknown>>()

  constructor(agent: ChatAgent, internals: ChatInternals) {
    this.agent = agent
    this.internals = internals
  }

  /** Runs the tasks of a session one at a time, so that each sees the effects of the previous one. */
  async runTask<Value>(sessionId: string, task: () => Promise<Value>): Promise<Value> {
    const current = (this.#tasks.get(sessionId) ?? Promise.resolve()).then(task, task)
    this.#tasks.set(sessionId, current)
    try {
      return await current
    } finally {
      if (this.#tasks.get(sessionId) === current) this.#tasks.delete(sessionId)
    }
  }

  /** Retries with a short delay while another process holds the session. Other errors are rethrown. */
  async retryWhileTaken<Value>(
    task: () => Promise<Value>,
    isTaken: (error: unknown) => boolean | Promise<boolean> = isSessionTaken,
  ): Promise<Value> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await task()
      } catch (error) {
        if (!(await isTaken(error)) || attempt >= maxAttempts) throw error
        await this.waitForAttempt()
      }
    }
  }

  waitForAttempt(): Promise<void> {
    return wait(this.internals.clock, attemptDelayMs)
  }

  async readContext(sessionId: string): Promise<AgentContext | null> {
    return (await this.readStored(sessionId))?.context ?? null
  }

  async readStored(sessionId: string): Promise<StoredContext | null> {
    const replayed = await nullIfUnknown(this.agent.replay(sessionId))
    if (!replayed?.snapshot) return null
    const { seq, snapshot, branches } = replayed
    return { seq, context: snapshot.context as AgentContext, branches }
  }

  async isHeld(sessionId: string): Promise<boolean> {
    return (await this.getListed(sessionId))?.holder !== null
  }

  async getListed(sessionId: string): Promise<ListedSession | null> {
    return this.internals.store.get(sessionId)
  }

  get hasInbox(): boolean {
    return this.internals.store.inbox !== undefined
  }

  /** Whether answers can go through the inbox. Requires a store with an inbox, and a session of this agent. */
  async canUseInbox(sessionId: string): Promise<boolean> {
    const { store, getLabel } = this.internals
    if (!this.hasInbox) return false
    const { agent: name, version } = (await store.get(sessionId))?.summary ?? {}
    const definition = name === undefined ? null : { name, ...(version !== undefined && { version }) }
    return acceptsDefinition(getLabel(), definition)
  }

  /**
   * Adds answers to the inbox of a session. An answer that is already there is a retry by its sender and counts as sent.
   * @throws {UsageError} `already_answered`, `run_ended` if none of the answers is in the inbox afterwards
   */
  async sendAnswers(sessionId: string, answers: readonly AnswerMessage[]): Promise<void> {
    const refusal = await sendAnswers(this.agent, sessionId, answers)
    if (refusal === null) return
    const unread = await this.#readUnread(sessionId)
    if (!answers.some((answer) => unread.some((event) => isAnswerTo(event, answer)))) throw refusal
  }

  /** Whether a resting run has an answer in its inbox that no process has read. */
  async hasUnreadAnswer(sessionId: string, context: AgentContext): Promise<boolean> {
    const open = isActiveState(context.state) ? [] : listAnswerableCalls(context)
    if (open.length === 0) return false
    const unread = await this.#readUnread(sessionId)
    return unread.some((event) => 'callId' in event && open.some((call) => isSameCall(event, call)))
  }

  /** The turn in which a run received a steering message. `last` is the id of the message that started the current turn. */
  async findSteeredTurn(
    sessionId: string,
    key: string,
    last: string | undefined,
  ): Promise<'current' | 'past' | null> {
    const keys = (await this.#readFolded(sessionId))?.keys ?? []
    const at = keys.lastIndexOf(key)
    if (at < 0) return null
    return last !== undefined && keys.lastIndexOf(last) > at ? 'past' : 'current'
  }

  async readQueue(sessionId: string): Promise<QueuedMessage[]> {
    const found = (await this.#readInbox(sessionId)).filter(({ text }) => isQueuedText(text))
    const folded = found.length === 0 ? null : await this.#readFolded(sessionId)
    if (folded === null) return []
    const { run, state, queued, keys } = folded
    // A message in the log is no longer queued.
    return sortQueue(found, { queued, messages: (run?.context ?? state).messages, keys }).waiting
  }

  resume(sessionId: string, caller: Caller): Promise<AnyRun> {
    return this.agent.resume(sessionId, { context: caller.context } as never)
  }

  /** Resumes a resting run. Retries while the process that recorded the rest still holds the session. */
  resumeWhenReleased(sessionId: string, caller: Caller): Promise<AnyRun> {
    return this.retryWhileTaken(
      () => this.resume(sessionId, caller),
      async (error) => {
        const context = hasCode(error, 'session_busy') ? await this.readContext(sessionId) : undefined
        return context !== undefined && !(context && isActiveState(context.state))
      },
    )
  }

  async #readFolded(sessionId: string): Promise<FoldedSession | null> {
    const stored = await this.internals.openStored()
    return nullIfUnknown(stored.readFolded(sessionId))
  }

  async #readUnread(sessionId: string) {
    return (await this.#readInbox(sessionId)).flatMap((message) => parseInboxMessage(message) ?? [])
  }

  async #readInbox(sessionId: string) {
    return (await this.internals.store.inbox?.read(sessionId)) ?? []
  }
}

export async function nullIfUnknown<Value>(read: Promise<Value>): Promise<Value | null> {
  try {
    return await read
  } catch (error) {
    if (hasCode(error, 'unknown_session')) return null
    throw error
  }
}
