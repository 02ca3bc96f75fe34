import { type Message, formatMessageId, parseMessageNumber } from '../../../machines/agent/messages.js'
import { type GuardrailsState, getInitialGuardrails } from '../../../guards/state.js'
import type { AgentContext, ForkTerms, SessionState } from '../../../machines/agent/context.js'
import type { TurnEnd } from '../../../machines/agent/run-result.js'
import type { Fit } from '../../../machines/agent/fit.js'
import type { Refusal } from '../../../machines/agent/refusals.js'
import { maskMessages } from '../../../machines/agent/mask-uncleared.js'
import { noUsage, type Usage } from '../../../machines/agent/usage.js'
import { UsageError } from '../base/errors.js'
import { createId } from '../base/platform.js'
import { toSessionState } from './session-state.js'

/** What a session keeps beside its messages; plain JSON. */
export interface SessionMetadata {
  /** What the guards remember. */
  guardrails: GuardrailsState
  /** Whether the session has had its one budget warning. */
  warnedOfBudget: boolean
  /** What requests leave out of the transcript; null while all of it fits. */
  fit: Fit | null
  /** The deferred tools that are loaded, in this order. Absent: none. */
  loaded?: readonly string[]
  /** What holds in a fork alone. */
  terms?: ForkTerms
  /** Ends of earlier runs that did not answer in full. Absent: none. */
  turnEnds?: readonly TurnEnd[]
  /** Content that providers have refused. Absent: none. */
  refusals?: readonly Refusal[]
}

/** A session as it is stored: plain JSON, for `restoreSession`. */
export interface StoredSession {
  /** Of its schema; a newer one is refused. */
  version: typeof sessionVersion
  /** Unique. */
  id: string
  /** For people. */
  name?: string
  /** The whole transcript; every call in it has its result. */
  messages: Message[]
  /** Totals of all runs. */
  usage: Usage
  /** What guards and limits have to remember. */
  metadata: SessionMetadata
}

export const sessionVersion = 1

/**
 * A conversation over several runs: its transcript, its totals and the state of its guards. Without a store it lives in
 * memory; keep `JSON.stringify(session)` to go on another day.
 *
 * @example
 * const session: Session = createSession('May')
 * await agent.run('Pay the invoices.', { session }).result
 * console.log(session.messages.length, session.usage.totalTokens)
 */
export class Session {
  /** Unique; a store keeps the session under it. */
  readonly id: string
  /** For people. */
  readonly name: string | undefined
  /** The transcript, as it stood at the last rest. */
  messages: readonly Message[] = []
  /** Totals of all runs. */
  usage: Usage = noUsage
  /** What guards and limits have to remember. */
  metadata: SessionMetadata = { guardrails: getInitialGuardrails(), warnedOfBudget: false, fit: null }
  #runId: string | null = null

  constructor(id: string, name?: string) {
    this.id = id
    this.name = name
  }

  /** What the next run starts from. */
  get state(): SessionState {
    return { messages: [...this.messages], usage: this.usage, ...this.metadata }
  }

  /** One run at a time: a second one is refused until the first has ended. */
  acquire(runId: string): void {
    if (this.#runId !== null) {
      throw new UsageError(
        'session_busy',
        `Session '${this.id}' is busy with run '${this.#runId}'. Wait for its final state, or cancel it.`,
        this.id,
      )
    }
    this.#runId = runId
  }

  /** Takes over what a run has come to. */
  update(context: AgentContext): void {
    this.messages = maskMessages(context)
    this.usage = context.usage.session
    const { messages: _m, usage: _u, ...metadata } = toSessionState(context)
    this.metadata = metadata
  }

  /** The next run may begin, unless another one has the session. */
  release(runId: string): void {
    if (this.#runId === runId) this.#runId = null
  }

  /**
   * The session as it stood at the last rest of its run, to be stored and read by `restoreSession`. Calls that wait for
   * an answer are closed in it: a run that goes on from the copy is not the run that asked.
   *
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
 * A new, empty session with an id of its own; `name` is for people.
 *
 * @example
 * const session = createSession('Ann')
 * await agent.run('My name is Ann.', { session }).result
 * await agent.run('What is my name?', { session }).result
 * @throws {UsageError} `invalid_session` for a name that is no text
 */
export function createSession(name?: string): Session {
  if (name !== undefined && typeof name !== 'string')
    throw new UsageError('invalid_session', 'The name of a session must be a text.', 'name')
  return new Session(createId(), name)
}

/** A transcript whose last batch is complete: its open calls have results that say that they never ran. */
function closeWaitingCalls(messages: readonly Message[]): Message[] {
  const at = messages.findLastIndex((message) => message.role === 'assistant' && message.tool_calls)
  const asked = messages[at]
  if (asked?.role !== 'assistant') return [...messages]
  const calls = asked.tool_calls ?? []
  const after = messages.slice(at + 1)
  if (after.filter(({ role }) => role === 'tool').length === calls.length) return [...messages]
  const results = calls.map(
    ({ id }, i): Message =>
      after.find((message) => message.role === 'tool' && message.tool_call_id === id) ?? {
        role: 'tool',
        id: formatMessageId((parseMessageNumber(asked.id) ?? at + 1) + 1 + i),
        createdAt: asked.createdAt,
        tool_call_id: id,
        content: 'Not executed: the session was stored while this call waited for an answer.',
        data: { status: 'not_executed' },
      },
  )
  return [...messages.slice(0, at + 1), ...results]
}
