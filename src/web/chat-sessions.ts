import type { AgentContext } from '../../machines/agent/context.js'
import { type AgentState, isWorkState } from '../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import type { Clock } from '../core/base/clock.js'
import { acceptsDefinition, type AgentLabel } from '../core/sessions/agent-definition.js'
import type { AgentInternals } from '../core/agent/agent-internals.js'
import { isQueuedText, type QueuedMessage, sortQueue } from '../core/sessions/inbox/queued-message.js'
import { parseInboxMessage } from '../core/sessions/inbox/session-message.js'
import type { FoldedSession } from '../core/sessions/fold-session.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { type CallAnswer, isAnswerTo, isMeant, sendAnswers } from './call-answers.js'
import type { ChatAgent } from './chat-agent.js'
import { hasCode, isUnknownSession } from './chat-errors.js'
import type { StoredContext } from './follow-remote.js'
import type { AnyRun, Caller } from './live-runs.js'
import { maxAttempts, waitForNextAttempt } from './next-attempt.js'

export interface ChatInternals {
  store: SessionStore
  clock: Clock
  /** Whether shields screen what users say. */
  inputShields: boolean
  readFolded: AgentInternals['readFolded']
  /** Begins the next run of a session with its first queued message. */
  beginQueuedRun: AgentInternals['beginQueuedRun']
  /** How `defineAgents` calls the agent. */
  getLabel: () => AgentLabel | undefined
}

/** The sessions of an agent in its store: their state, their inboxes, and how their runs are resumed. */
export class ChatSessions {
  readonly #agent: ChatAgent
  readonly #internals: ChatInternals

  constructor(agent: ChatAgent, internals: ChatInternals) {
    this.#agent = agent
    this.#internals = internals
  }

  async readContext(sessionId: string): Promise<AgentContext | null> {
    return (await this.readStored(sessionId))?.context ?? null
  }

  async readStored(sessionId: string): Promise<StoredContext | null> {
    try {
      const { seq, snapshot, branches } = await this.#agent.replay(sessionId)
      return snapshot && { seq, context: snapshot.context as AgentContext, branches }
    } catch (error) {
      if (isUnknownSession(error)) return null
      throw error
    }
  }

  /** All that the log of a session says; null when there is none. */
  async readFolded(sessionId: string): Promise<FoldedSession | null> {
    try {
      return await this.#internals.readFolded(sessionId)
    } catch (error) {
      if (isUnknownSession(error)) return null
      throw error
    }
  }

  /** Whether a process has the session. */
  async isHeld(sessionId: string): Promise<boolean> {
    return (await this.getListed(sessionId))?.holder !== null
  }

  /** As it stands in lists; null when there is none. */
  async getListed(sessionId: string): Promise<ListedSession | null> {
    return this.#internals.store.get(sessionId)
  }

  /** Whether an answer may be left for the run: it is this agent's, and the store has an inbox. */
  async canSend(sessionId: string): Promise<boolean> {
    const { store, getLabel } = this.#internals
    if (store.inbox === undefined) return false
    const { agent: name, version } = (await store.get(sessionId))?.summary ?? {}
    const definition = name === undefined ? null : { name, ...(version !== undefined && { version }) }
    return acceptsDefinition(getLabel(), definition)
  }

  /**
   * Puts answers into the inbox of a session. An answer that is there already counts once: its sender tries again.
   *
   * @throws {UsageError} `already_answered`, `run_ended` when none of them is in the inbox afterwards
   */
  async send(sessionId: string, answers: readonly CallAnswer[]): Promise<void> {
    const refusal = await sendAnswers(this.#agent, sessionId, answers)
    if (refusal === null) return
    const unread = await this.#readUnread(sessionId)
    if (!answers.some((answer) => unread.some((event) => isAnswerTo(event, answer)))) throw refusal
  }

  /** Whether the inbox has an answer to a call that waits: the process that took the request could not apply it. */
  async hasUnreadAnswer(sessionId: string, context: AgentContext): Promise<boolean> {
    const open = listAnswerableCalls(context)
    if (open.length === 0) return false
    const unread = await this.#readUnread(sessionId)
    return unread.some(
      (event) =>
        'callId' in event && open.some((call) => call.callId === event.callId && isMeant(event, call)),
    )
  }

  /** Whether the store has an inbox. */
  get hasInbox(): boolean {
    return this.#internals.store.inbox !== undefined
  }

  /** Which turn a run at work has read a message with this id in. `last`: the id of the message that began the current turn. */
  async findSteeredTurn(
    sessionId: string,
    key: string,
    last: string | undefined,
  ): Promise<'current' | 'past' | null> {
    const keys = (await this.readFolded(sessionId))?.keys ?? []
    const at = keys.lastIndexOf(key)
    if (at < 0) return null
    return last !== undefined && keys.lastIndexOf(last) > at ? 'past' : 'current'
  }

  /** Whether shields screen what users say. */
  get inputShields(): boolean {
    return this.#internals.inputShields
  }

  /** The messages that wait for their turns. */
  async readQueue(sessionId: string): Promise<QueuedMessage[]> {
    const { store } = this.#internals
    const found = ((await store.inbox?.read(sessionId)) ?? []).filter(({ text }) => isQueuedText(text))
    if (found.length === 0) return []
    const folded = await this.readFolded(sessionId)
    if (folded === null) return []
    const { run, state, queued, keys } = folded
    // What is in the log is not waiting.
    return sortQueue(found, { queued, messages: (run?.context ?? state).messages, keys }).waiting
  }

  async #readUnread(sessionId: string) {
    const found = (await this.#internals.store.inbox?.read(sessionId)) ?? []
    return found.flatMap((message) => parseInboxMessage(message) ?? [])
  }

  resume(sessionId: string, caller: Caller): Promise<AnyRun> {
    return this.#agent.resume(sessionId, { context: caller.context } as never)
  }

  /** Retries while the process that wrote the rest still holds the session. */
  async resumeWhenReleased(sessionId: string, caller: Caller): Promise<AnyRun> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.resume(sessionId, caller)
      } catch (error) {
        if (!hasCode(error, 'session_busy') || attempt >= maxAttempts) throw error
        const context = await this.readContext(sessionId)
        if (context && isWorking(context.state)) throw error
        await waitForNextAttempt(this.#internals.clock)
      }
    }
  }
}

export function isWorking(state: AgentState | null): boolean {
  return state === null || isWorkState(state)
}
