import { valueOr } from '../core/base/maybe-promise.js'
import { omitUndefined } from '../../guards/lib/json.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import type { Json } from '../../machines/agent/json.js'
import type {
  Annotation,
  AssistantMessage,
  ContentPart,
  MediaPart,
  Message,
  ToolMessage,
  UserMessage,
} from '../../machines/agent/messages.js'
import type {
  AgentState,
  Elicitation,
  PendingCall,
  Reason,
  TurnEnd,
  UnansweredCall,
} from '../../machines/agent/run-result.js'
import { expectArgument, listRule, optionsRule } from '../core/base/values.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import { getCallTitle, toApprovalId } from '../web/approval-id.js'
import { getShownContent } from '../web/chat-turn.js'
import { findClientId, isSteering, toAnswerId } from '../core/sessions/find-turn.js'
import { getSentence } from '../web/exposure.js'
import type {
  FilePart,
  FinishReason,
  Protocol,
  SourcePart,
  UIMessage,
  UIMessageChunk,
  UIMessagePart,
} from './ui-message-types.js'

/**
 * Converts a transcript into messages for `useChat`: one assistant message per user message, with the same ids as the
 * stream.
 *
 * - `messages`: the messages from a result, from `agent.replay` or from a session
 * - `pending`: the pending calls from a result in WAITING_FOR_INPUT, so that approval requests survive a reload
 * - `protocol`: `'v6'` for the `ai` 6 client
 * - `approved`: the ids of calls that are approved while other calls still wait
 * - `points`: the branch points from `agent.replay`; messages that differ get a part `data-branches`
 * - `ends`: the `ends` from `agent.replay`; an answer that was ended by a limit, a guard, a person or a failure gets a
 *   part `data-statewright` with the reason
 *
 * @example
 * const { messages, run } = await agent.replay('ann')
 * const shown: UIMessage[] = toUIMessages(messages, run?.pending)
 */
export function toUIMessages(
  messages: readonly Message[],
  pending: readonly PendingCall[] = [],
  options: {
    protocol?: Protocol
    approved?: readonly string[]
    points?: readonly BranchPoint[]
    ends?: readonly TurnEnd[]
  } = {},
): UIMessage[] {
  const messagesRule = listRule('a list of messages, such as (await run.result).messages')
  const pendingRule = listRule('a list of calls, such as result.pending')
  expectArgument('toUIMessages(messages)', messages, messagesRule)
  expectArgument('toUIMessages(messages, pending)', pending, pendingRule)
  expectArgument('toUIMessages(messages, pending, options)', options, optionsRule)
  const { protocol = 'v7', approved = [], points = [], ends = [] } = options
  const shown: UIMessage[] = []
  const endById = new Map(ends.map((end) => [end.messageId, end]))
  let answerId: string | null = null
  let openingId = ''
  const getParts = (message: Pick<Message, 'id'>): UIMessagePart[] => {
    if (shown.at(-1)?.role !== 'assistant')
      shown.push({ id: answerId ?? toAnswerId(message), role: 'assistant', parts: [] })
    return shown.at(-1)?.parts ?? []
  }
  const addEnd = (): void => {
    const end = endById.get(openingId)
    if (end) getParts({ id: openingId }).push(toEndPart(end))
  }
  const pointByIndex = new Map(points.map((point) => [point.at, point]))
  let point: BranchPoint | undefined
  for (const [i, message] of messages.entries()) {
    // The point of a hidden message moves to the next visible one.
    point = pointByIndex.get(i) ?? point
    if (message.role === 'system' || (message.internal && message.role !== 'tool')) continue
    if (message.role === 'assistant') addAnswer(getParts(message), message)
    else if (message.role === 'tool') addResult(getParts(message), message)
    else if (isSteering(message)) getParts(message).push(toSteeringPart(message, protocol))
    else {
      addEnd()
      openingId = message.id
      answerId = toAnswerId(message)
      const parts = toUserParts(message.content)
      shown.push({ id: findClientId(message) ?? message.id, role: 'user', parts })
    }
    if (point) shown.at(-1)?.parts.push(toBranchesPart(point))
    point = undefined
  }
  addEnd()
  // A branch may have no answer yet.
  const [open] = points.filter(({ at }) => at === messages.length)
  if (open) shown.at(-1)?.parts.push(toBranchesPart(open))
  const last = shown.at(-1)
  if (last?.role !== 'assistant') return shown
  for (const call of pending) addRequest(last.parts, call)
  for (const callId of approved) addApproval(last.parts, callId)
  return shown
}

function addAnswer(parts: UIMessagePart[], message: AssistantMessage): void {
  const { id, reasoning = '', media, annotations } = message
  const text = getAnswerText(message)
  parts.push({ type: 'step-start' })
  if (reasoning !== '') parts.push({ type: 'reasoning', text: reasoning, state: 'done' })
  if (text !== '') parts.push({ type: 'text', text, state: 'done' })
  parts.push(...toSourceParts(id, annotations), ...toFileParts(media))
  for (const { id: toolCallId, function: call } of message.tool_calls ?? []) {
    const { input, isJson } = parseArguments(call.arguments)
    const type = `tool-${call.name}` as const
    parts.push(
      isJson
        ? { type, toolCallId, state: 'input-available', input }
        : { type, toolCallId, state: 'output-error', input, errorText: invalidArguments },
    )
  }
}

function addResult(parts: UIMessagePart[], message: ToolMessage): void {
  const { tool_call_id: id, media, data } = message
  const content = getShownContent(message)
  const [at, call] = findCall(parts, id)
  if (!call) return
  const { type, toolCallId, input } = call as Extract<UIMessagePart, { type: `tool-${string}` }>
  const part = { type, toolCallId, input }
  const ends: Record<ReturnType<typeof toOutputState>, UIMessagePart> = {
    available: { ...part, state: 'output-available', output: parseOutput(content) },
    denied: { ...part, state: 'output-denied', approval: { id, approved: false, reason: content } },
    error: { ...part, state: 'output-error', errorText: content },
  }
  parts[at] = ends[toOutputState((data?.['status'] ?? 'ok') as ResultStatus)]
  parts.push(...toFileParts(media))
}

type CallPart = Extract<UIMessagePart, { toolCallId: string }>

function findCall(parts: readonly UIMessagePart[], id: string): [at: number, call: CallPart | undefined] {
  const at = parts.findLastIndex((part) => 'toolCallId' in part && part.toolCallId === id)
  return [at, parts[at] as CallPart | undefined]
}

function addRequest(parts: UIMessagePart[], call: PendingCall): void {
  if (call.needs === 'elicitation')
    parts.push({ type: 'dynamic-tool', state: 'input-available', ...toElicitationPart(call) })
  if (call.needs !== 'approval') return
  const { callId: toolCallId, name, arguments: text, path } = call
  const state = 'approval-requested' as const
  const approval = { id: toApprovalId(call) }
  const request = { toolCallId, input: parseArguments(text).input, state, approval }
  const [at] = findCall(parts, toolCallId)
  if (path) parts.push({ type: 'dynamic-tool', toolName: name, title: getCallTitle(call), ...request })
  else if (at >= 0) parts[at] = { type: `tool-${name}`, ...request }
  parts.push(...toTermsParts(call))
}

export function toTermsParts(call: UnansweredCall): { type: 'data-approval'; id: string; data: unknown }[] {
  const { callId: toolCallId, reason, expiresAt } = call
  if (reason === undefined && expiresAt === undefined) return []
  const data = { toolCallId, ...omitUndefined({ reason, expiresAt }) }
  return [{ type: 'data-approval', id: toApprovalId(call), data }]
}

function addApproval(parts: UIMessagePart[], toolCallId: string): void {
  const [at, part] = findCall(parts, toolCallId)
  if (part?.state !== 'input-available') return
  const id = toApprovalId({ callId: toolCallId, fingerprint: 'approved' })
  parts[at] = { ...part, state: 'approval-responded', approval: { id, approved: true } }
}

/** Marks a message that differs between branches. */
export function toBranchesPart({ position, count, branches }: BranchPoint) {
  return { type: 'data-branches' as const, id: 'branches', data: { position, count, branches } }
}

export function getAnswerText({ content, refusal }: Pick<AssistantMessage, 'content' | 'refusal'>): string {
  return content || (refusal ?? '')
}

export const invalidArguments = 'The arguments are not valid JSON.'

/** The arguments of a call as a JSON value, or as text if they are not valid JSON. */
export function parseArguments(text: string): { input: unknown; isJson: boolean } {
  return valueOr(() => ({ input: JSON.parse(text), isJson: true }), { input: text, isJson: false })
}

function parseOutput(content: string): unknown {
  if (!/^\s*[[{]/.test(content)) return content
  const { input, isJson } = parseArguments(content)
  return isJson ? input : content
}

function toOutputState(status: ResultStatus): 'available' | 'denied' | 'error' {
  if (status === 'ok') return 'available'
  return status === 'rejected' ? 'denied' : 'error'
}

export function toOutputChunk(
  toolCallId: string,
  { status, content }: { status: ResultStatus; content: string },
): UIMessageChunk {
  const state = toOutputState(status)
  if (state === 'available')
    return { type: 'tool-output-available', toolCallId, output: parseOutput(content) }
  if (state === 'denied') return { type: 'tool-output-denied', toolCallId }
  return { type: 'tool-output-error', toolCallId, errorText: content }
}

export function toElicitationPart({ callId, elicitation }: UnansweredCall & { elicitation: Elicitation }) {
  return {
    toolCallId: callId,
    toolName: 'elicitation',
    title: `${elicitation.server} asks`,
    input: elicitation as unknown as Json,
  }
}

export function toFileParts(media: readonly MediaPart[] = []): FilePart[] {
  return media
    .flatMap((part) => toFilePart(part) ?? [])
    .filter(({ url }) => isWebAddress(url) || /^data:/i.test(url))
}

/** Pages turn addresses into links, which must not run code. */
const isWebAddress = (url: string): boolean => /^https?:/i.test(url)

function toFilePart(part: MediaPart): FilePart | null {
  if (part.type === 'image_url') {
    const { url } = part.image_url
    return { type: 'file', url, mediaType: parseMediaType(url) ?? 'image/*' }
  }
  if (part.type === 'input_audio') {
    const { data, format } = part.input_audio
    const mediaType = format === 'mp3' ? 'audio/mpeg' : 'audio/wav'
    return { type: 'file', url: `data:${mediaType};base64,${data}`, mediaType }
  }
  const { file_data: url, filename } = part.file
  if (url === undefined) return null
  const mediaType = parseMediaType(url) ?? 'application/octet-stream'
  return { type: 'file', url, mediaType, ...omitUndefined({ filename }) }
}

function parseMediaType(url: string): string | undefined {
  return /^data:([^;,]+)[;,]/.exec(url)?.[1]
}

type UserPart = { type: 'text'; text: string } | FilePart

function toUserParts(content: string | readonly ContentPart[]): UserPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.flatMap((part): UserPart[] =>
    part.type === 'text' ? [{ type: 'text', text: part.text }] : toFileParts([part]),
  )
}

export function toSteeringPart({ id, content }: UserMessage, protocol: Protocol) {
  const parts = toUserParts(content)
  return protocol === 'v7'
    ? { type: 'steering-message' as const, id, parts }
    : { type: 'data-steering' as const, id, data: { parts } }
}

export function toSourceParts(messageId: string, annotations: readonly Annotation[] = []): SourcePart[] {
  return annotations.flatMap((source, i): SourcePart[] => {
    const sourceId = `${messageId}.source.${i}`
    if (source.type === 'url_citation') {
      const { url, title } = source.url_citation
      if (!isWebAddress(url)) return []
      return [{ type: 'source-url', sourceId, url, ...omitUndefined({ title }) }]
    }
    const { filename, title = filename } = source.file_citation
    return [{ type: 'source-document', sourceId, mediaType: 'application/octet-stream', title, filename }]
  })
}

export function toFinishReason(state: AgentState, reason: Reason | null, protocol: Protocol): FinishReason {
  switch (state) {
    case 'COMPLETED':
      if (reason === 'max_tokens') return 'length'
      return reason === 'content_filter' ? 'content-filter' : 'stop'
    case 'WAITING_FOR_INPUT':
      return reason === 'message' ? 'stop' : 'tool-calls'
    case 'BLOCKED':
      return 'content-filter'
    default:
      return protocol === 'v6' ? 'other' : 'interrupted'
  }
}

/** The end of a run. A later end in the same message replaces it. `message` is absent if a paused run has continued. */
export function toEndPart({ state, reason, error, wakeAt }: Omit<TurnEnd, 'messageId'>) {
  const isExpected = state === 'WAITING_FOR_INPUT' || reason === 'end_turn'
  const message = isExpected ? undefined : (error?.message ?? getSentence(reason))
  const data = { type: 'run_ended', state, reason, ...omitUndefined({ message, wakeAt }) }
  return { type: 'data-statewright' as const, id: 'run_ended', data }
}
