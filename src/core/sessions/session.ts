import { type Message, formatMessageId, parseMessageNumber } from '../../../machines/agent/messages.js'
import { getInitialGuardrails } from '../../../guards/state.js'
import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import { maskMessages } from '../../../machines/agent/mask-uncleared.js'
import { noUsage, type Usage } from '../../../machines/agent/usage.js'
import { UsageError } from '../base/errors.js'
import { createId } from '../base/platform.js'
import { toSessionState } from './session-state.js'

/** The state of a session apart from its messages. Plain JSON. A restored session has no grants. */
export type SessionMetadata = Omit<SessionState, 'messages' | 'usage' | 'lastMessageNumber'>

/** A stored session. Plain JSON, read by `restoreSession`. */
export interface StoredSession {
  /** Version of the format. Newer versions are rejected. */
  version: typeof sessionVersion
  /** Unique. */
  id: string
  /** A display name. */
  name?: string
  /** The whole transcript. Every call in it has a result. */
  messages: Message[]
  /** Token usage of all runs. */
  usage: Usage
  /** The state of guards and limits. */
  metadata: SessionMetadata
}

export const sessionVersion = 1

/**
 * A conversation over several runs, with its transcript, totals and guard state. Without a store, the session is kept
 * in memory. Save `JSON.stringify(session)` to continue it later.
 * @example
 * const session: Session = createSession('May')
 * await agent.run('Pay the invoices.', { session }).result
 * console.log(session.messages.length, session.usage.totalTokens)
 */
export class Session {
  /** A unique id, which a store uses as the key. */
  readonly id: string
  /** A display name. */
  readonly name: string | undefined
  /** The transcript when the session last became idle. */
  messages: readonly Message[] = []
  /** Token usage of all runs. */
  usage: Usage = noUsage
  /** The state of guards and limits. */
  metadata: SessionMetadata = { guardrails: getInitialGuardrails(), warnedOfBudget: false, fit: null }
  #runId: string | null = null

  constructor(id: string, name?: string) {
    this.id = id
    this.name = name
  }

  /** The state that the next run starts from. */
  get state(): SessionState {
    return { messages: [...this.messages], usage: this.usage, ...this.metadata }
  }

  /** Locks the session for one run. A second run is refused until the first has ended. */
  acquire(runId: string): void {
    if (this.#runId !== null) {
      const message = `Session '${this.id}' is busy with run '${this.#runId}'. Wait for its final state, or cancel it.`
      throw new UsageError('session_busy', message, this.id)
    }
    this.#runId = runId
  }

  update(context: AgentContext): void {
    this.messages = maskMessages(context)
    this.usage = context.usage.session
    const { messages: _m, usage: _u, ...metadata } = toSessionState(context)
    this.metadata = metadata
  }

  /** Unlocks the session, unless another run holds it. */
  release(runId: string): void {
    if (this.#runId === runId) this.#runId = null
  }

  /**
   * The last idle state of the session, for storage and `restoreSession`. Calls that wait for an answer are closed with
   * a result, because a run that continues from the copy is not the run that asked.
   * @example
   * const text = JSON.stringify(createSession('May')) // back with restoreSession(JSON.parse(text))
   */
  toJSON(): StoredSession {
    const { id, name, usage, metadata } = this
    const messages = closeWaitingCalls(this.messages)
    return { version: sessionVersion, id, ...(name !== undefined && { name }), messages, usage, metadata }
  }
}

/**
 * Creates an empty session with a new id. `name` is a display name.
 * @example
 * const session = createSession('Ann')
 * await agent.run('My name is Ann.', { session }).result
 * await agent.run('What is my name?', { session }).result
 * @throws {UsageError} `invalid_session` if the name is not a string
 */
export function createSession(name?: string): Session {
  if (name !== undefined && typeof name !== 'string')
    throw new UsageError('invalid_session', "A session's name must be a string.", 'name')
  return new Session(createId(), name)
}

/** Adds results for the open calls in the last batch, stating that the calls never ran. */
function closeWaitingCalls(messages: readonly Message[]): Message[] {
  const at = messages.findLastIndex((message) => message.role === 'assistant' && message.tool_calls)
  const caller = messages[at]
  if (caller?.role !== 'assistant') return [...messages]
  const calls = caller.tool_calls ?? []
  const after = messages.slice(at + 1)
  if (after.filter(({ role }) => role === 'tool').length === calls.length) return [...messages]
  const results = calls.map(
    ({ id }, i): Message =>
      after.find((message) => message.role === 'tool' && message.tool_call_id === id) ?? {
        role: 'tool',
        id: formatMessageId((parseMessageNumber(caller.id) ?? at + 1) + 1 + i),
        createdAt: caller.createdAt,
        tool_call_id: id,
        content: 'Not executed: the session was stored while this call waited for an answer.',
        data: { status: 'not_executed' },
      },
  )
  return [...messages.slice(0, at + 1), ...results]
}
