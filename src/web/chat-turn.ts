import type { ToolResult } from '../../machines/agent/batch-calls.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { Message, ToolMessage, UserMessage } from '../../machines/agent/messages.js'
import type { AgentState, PendingCall, TurnEnd } from '../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { maskMessages } from '../../machines/agent/mask-uncleared.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { findClientId, isTurnOpening, listTurnEnds, toAnswerId } from '../core/sessions/find-turn.js'
import { messageChangedError } from '../core/sessions/session-errors.js'
import { hasSameWords, type UserInputMessage } from '../core/sessions/user-input.js'

export interface IncomingMessage {
  content: UserInputMessage['content']
  /** The page's id for the message. If a message is sent twice with the same id, only one run starts. */
  clientId: string | undefined
  /** The branch that the page shows. Defaults to the current branch of the session. */
  branch?: number | undefined
}

export function toInputMessage({ content, clientId }: IncomingMessage): UserInputMessage {
  return { content, ...(clientId !== undefined && { clientId }) }
}

export function isText({ content }: IncomingMessage): boolean {
  return typeof content === 'string' || content.every(({ type }) => type === 'text')
}

/** The result of a call that is not in a message yet, because other calls of its batch are still open. */
type SettledResult = { callId: string } & Pick<ToolResult, 'status' | 'content' | 'media' | 'publicMessage'>

export interface Turn extends Pick<AgentContext, 'reason' | 'error' | 'wakeAt'> {
  /** The id of the page message. It does not change while the answer grows, after a reload, or in another process. */
  messageId: string
  clientId: string | undefined
  /** The conversation up to and including the user message. */
  before: readonly Message[]
  messages: readonly Message[]
  settled: readonly SettledResult[]
  pending: readonly PendingCall[]
  state: AgentState
  /** The ends of runs that did not answer in full, up to this turn. */
  ends: readonly TurnEnd[]
}

export function toTurn(context: AgentContext): Turn {
  const all = maskMessages(context)
  const at = all.findLastIndex(isTurnOpening)
  const opening = all[at]
  const { runId, state, reason, error, wakeAt } = context
  return {
    messageId: opening ? toAnswerId(opening) : `${runId}.answer`,
    ...sliceTurn(all, at),
    settled: listSettledResults(context, all.slice(at + 1)),
    pending: listAnswerableCalls(context),
    state: state ?? 'RUNNING',
    reason,
    error,
    wakeAt,
    ends: listTurnEnds(context),
  }
}

function sliceTurn(all: readonly Message[], at: number, end?: number) {
  const opening = all[at]
  const clientId = opening && findClientId(opening)
  return { clientId, before: all.slice(0, at + 1), messages: all.slice(at + 1, end) }
}

/** Compares both the id in the transcript and the page's id. */
const hasId = (message: Message, id: string): boolean => message.id === id || findClientId(message) === id

export function isOpenedBy({ messages }: Pick<AgentContext, 'messages'>, id: string): boolean {
  const opening = messages.findLast(isTurnOpening)
  return opening !== undefined && hasId(opening, id)
}

/** The turn of an earlier user message. Null if the message is unknown or started the current turn. */
export function findPastTurn(context: AgentContext, id: string): Turn | null {
  const all = maskMessages(context)
  const at = all.findLastIndex((message) => isTurnOpening(message) && hasId(message, id))
  const opening = all[at]
  const next = all.findIndex((message, i) => i > at && isTurnOpening(message))
  if (!opening || next < 0) return null
  const end = context.turnEnds?.find(({ messageId }) => messageId === opening.id)
  return {
    messageId: toAnswerId(opening),
    ...sliceTurn(all, at, next),
    settled: [],
    pending: [],
    state: end?.state ?? 'COMPLETED',
    reason: end?.reason ?? 'end_turn',
    error: end?.error ? { ...end.error, recoverable: false } : null,
    wakeAt: null,
    ends: context.turnEnds ?? [],
  }
}

/** @throws {UsageError} `message_changed` if the earlier message with this id had a different text */
export function findSentMessage(
  messages: readonly Message[],
  { clientId, content }: { clientId: string; content: IncomingMessage['content'] },
): UserMessage | undefined {
  const earlier = messages.filter(isTurnOpening).find((message) => findClientId(message) === clientId)
  if (earlier && !hasSameWords(content, earlier)) throw messageChangedError(clientId)
  return earlier
}

/** The content of a result without the note that informs the model about an edit. */
export function getShownContent({ content, data }: Pick<ToolMessage, 'content' | 'data'>): string {
  const length = data?.['noteLength']
  return typeof length === 'number' ? content.slice(length) : content
}

function listSettledResults({ calls }: AgentContext, messages: readonly Message[]): SettledResult[] {
  const messageCallIds = new Set(
    messages.map((message) => (message.role === 'tool' ? message.tool_call_id : '')),
  )
  return calls.flatMap(({ id: callId, result, unscreenedResult, unscreenedArguments }) => {
    if (!result || unscreenedResult || unscreenedArguments || messageCallIds.has(callId)) return []
    const { status, content, media, publicMessage } = result
    return [{ callId, status, content, ...omitUndefined({ publicMessage, media }) }]
  })
}
