import type { AgentContext } from '../../machines/agent/context.js'
import type { MediaPart, Message, ToolMessage, UserMessage } from '../../machines/agent/messages.js'
import type { AgentState, PendingCall, Reason, RunFailure, TurnEnd } from '../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../machines/agent/to-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { messageChangedError } from '../core/sessions/session-errors.js'
import { hasSameWords } from '../core/sessions/user-input.js'
import type { IncomingMessage } from './incoming-message.js'
import { maskMessages } from '../../machines/agent/uncleared-input.js'
import { findClientId, isTurnOpening, listTurnEnds, toAnswerId } from '../core/sessions/find-turn.js'

export { findClientId, isSteering, isTurnOpening, toAnswerId } from '../core/sessions/find-turn.js'

/** The result of a call that is not in a message yet, because other calls of its batch still run or wait. */
export interface SettledResult {
  callId: string
  name: string
  status: ResultStatus
  content: string
  media?: MediaPart[]
  publicMessage?: string
}

/** The answer to the last user message of a session, as far as the log has it. */
export interface Turn {
  /** The id of the page's message: it stays the same while the answer grows, after a reload, and in every process. */
  messageId: string
  /** The page's id of the user message. */
  clientId: string | undefined
  /** The conversation up to and including that message. */
  before: readonly Message[]
  /** The messages after it. */
  messages: readonly Message[]
  settled: readonly SettledResult[]
  /** The calls that wait for an answer. */
  pending: readonly PendingCall[]
  state: AgentState
  reason: Reason | null
  error: RunFailure | null
  /** When a run goes on that sleeps. */
  wakeAt: number | null
  /** Ends of the runs of the session up to here that did not answer in full. */
  ends: readonly TurnEnd[]
}

/** The current turn of a run. */
export function toTurn(context: AgentContext): Turn {
  const all = maskMessages(context)
  const at = all.findLastIndex(isTurnOpening)
  const opening = all[at]
  const messages = all.slice(at + 1)
  return {
    messageId: opening ? toAnswerId(opening) : `${context.runId}.answer`,
    clientId: opening && findClientId(opening),
    before: all.slice(0, at + 1),
    messages,
    settled: listSettledResults(context, messages),
    pending: listAnswerableCalls(context),
    state: context.state ?? 'RUNNING',
    reason: context.reason,
    error: context.error,
    wakeAt: context.wakeAt,
    ends: listTurnEnds(context),
  }
}

const hasId = (message: Message, id: string): boolean => message.id === id || findClientId(message) === id

/** Whether the last user message has this id, which is the page's or that of the transcript. */
export function isOpenedBy({ messages }: Pick<AgentContext, 'messages'>, id: string): boolean {
  const opening = messages.findLast(isTurnOpening)
  return opening !== undefined && hasId(opening, id)
}

/** The turn that a page's message opened, when other turns have followed it; null when there is none. */
export function findPastTurn(context: AgentContext, id: string): Turn | null {
  const all = maskMessages(context)
  const at = all.findLastIndex((message) => isTurnOpening(message) && hasId(message, id))
  const opening = all[at]
  const next = all.findIndex((message, i) => i > at && isTurnOpening(message))
  if (!opening || next < 0) return null
  const end = context.ends?.find(({ messageId }) => messageId === opening.id)
  return {
    messageId: toAnswerId(opening),
    clientId: findClientId(opening),
    before: all.slice(0, at + 1),
    messages: all.slice(at + 1, next),
    settled: [],
    pending: [],
    state: end?.state ?? 'COMPLETED',
    reason: end?.reason ?? 'end_turn',
    error: end?.error ? { ...end.error, recoverable: false } : null,
    wakeAt: null,
    ends: context.ends ?? [],
  }
}

/**
 * The message that a page has sent under this id before; undefined when there is none.
 * @throws {UsageError} `message_changed` when it had another text
 */
export function findSentMessage(
  messages: readonly Message[],
  { clientId, content }: { clientId: string; content: IncomingMessage['content'] },
): UserMessage | undefined {
  const earlier = messages.filter(isTurnOpening).find((message) => findClientId(message) === clientId)
  if (earlier && !hasSameWords(content, earlier)) throw messageChangedError(clientId)
  return earlier
}

/** The content of a result without the note for the model that a person changed the call. */
export function getShownContent({ content, data }: Pick<ToolMessage, 'content' | 'data'>): string {
  const length = data?.['noteLength']
  return typeof length === 'number' ? content.slice(length) : content
}

function listSettledResults({ calls }: AgentContext, messages: readonly Message[]): SettledResult[] {
  const messageCallIds = new Set(
    messages.map((message) => (message.role === 'tool' ? message.tool_call_id : '')),
  )
  return calls.flatMap(({ id: callId, name, result, unscreened, unchecked }) => {
    if (!result || unscreened || unchecked || messageCallIds.has(callId)) return []
    const { status, content, media, publicMessage } = result
    const toPages = publicMessage === undefined ? {} : { publicMessage }
    return [{ callId, name, status, content, ...toPages, ...(media && { media }) }]
  })
}
