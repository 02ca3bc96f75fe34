import type { AssistantMessage, Message, ToolMessage } from '../../machines/agent/messages.js'
import type { PendingCall, TurnEnd } from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { optionsRule, expectArgument, listRule } from '../core/base/values.js'
import { toApprovalId } from '../web/approval-id.js'
import { toElicitationPart } from './elicitation-part.js'
import { toAnswerId, findClientId, isSteering, getShownContent } from '../web/chat-turn.js'
import type { BranchPoint } from '../core/sessions/branch-tree.js'
import type { Protocol, UIMessage, UIMessagePart } from './ui-message-chunks.js'
import {
  toEndPart,
  toOutputState,
  toFileParts,
  parseArguments,
  parseOutput,
  toSourceParts,
  toUserParts,
} from './ui-parts.js'
import { getAnswerText } from './text-fold.js'

/**
 * Converts a transcript into messages for `useChat`: one assistant message for each user message, with the ids that the
 * stream uses. Open approval requests come from `pending`, so that they survive a reload.
 *
 * `messages`: those of a result, of `agent.replay` or of a session; `pending`: of a result in WAITING_FOR_INPUT; `protocol`:
 * `'v6'` for the client of `ai` 6; `approved`: ids of calls that are approved while others still wait; `points`: where branches
 * part, of `agent.replay`: the message that differs gets a part `data-branches`; `ends`: of `agent.replay`: an answer that a
 * limit, a guard, a person or a failure ended gets a part `data-statewright` with the reason.
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
  expectArgument(
    'toUIMessages(messages)',
    messages,
    listRule('a list of messages, such as (await run.result).messages'),
  )
  expectArgument('toUIMessages(messages, pending)', pending, listRule('a list of calls: result.pending'))
  expectArgument('toUIMessages(messages, pending, options)', options, optionsRule)
  const { protocol = 'v7', approved = [], points = [], ends = [] } = options
  const shown: UIMessage[] = []
  const endById = new Map(ends.map((end) => [end.messageId, end]))
  /** The id of the message that answers the last user message. */
  let answerId: string | null = null
  let openingId = ''
  const answer = (message: Pick<Message, 'id'>): UIMessage => {
    const last = shown.at(-1)
    if (last?.role === 'assistant') return last
    const begun: UIMessage = { id: answerId ?? toAnswerId(message), role: 'assistant', parts: [] }
    shown.push(begun)
    return begun
  }
  /** The end of the answer to the last user message. */
  const addEnd = (): void => {
    const end = endById.get(openingId)
    if (end) answer({ id: openingId }).parts.push(toEndPart(end))
  }
  const isPoint = new Map(points.map((point) => [point.at, point]))
  let point: BranchPoint | undefined
  for (const [i, message] of messages.entries()) {
    // What is not shown has no part: the next message that is gets it.
    point = isPoint.get(i) ?? point
    if (message.role === 'system' || (message.internal && message.role !== 'tool')) continue
    if (message.role === 'assistant') addAnswer(answer(message).parts, message)
    else if (message.role === 'tool') addResult(answer(message).parts, message)
    else if (isSteering(message)) {
      const parts = toUserParts(message.content)
      const { id } = message
      answer(message).parts.push(
        protocol === 'v7'
          ? { type: 'steering-message', id, parts }
          : { type: 'data-steering', id, data: { parts } },
      )
    } else {
      addEnd()
      openingId = message.id
      answerId = toAnswerId(message)
      shown.push({
        id: findClientId(message) ?? message.id,
        role: 'user',
        parts: toUserParts(message.content),
      })
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
  for (const call of pending) addQuestion(last.parts, call)
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
  for (const { id: toolCallId, function: asked } of message.tool_calls ?? []) {
    const { input, isJson } = parseArguments(asked.arguments)
    const type = `tool-${asked.name}` as const
    parts.push(
      isJson
        ? { type, toolCallId, state: 'input-available', input }
        : { type, toolCallId, state: 'output-error', input, errorText: 'The arguments are not JSON.' },
    )
  }
}

function addResult(parts: UIMessagePart[], message: ToolMessage): void {
  const { tool_call_id: id, media, data } = message
  const content = getShownContent(message)
  const at = parts.findLastIndex((part) => 'toolCallId' in part && part.toolCallId === id)
  const asked = parts[at]
  if (!asked || !('toolCallId' in asked)) return
  const status = (data?.['status'] ?? 'ok') as ResultStatus
  const { type, toolCallId, input } = asked as Extract<UIMessagePart, { type: `tool-${string}` }>
  const part = { type, toolCallId, input }
  switch (toOutputState(status)) {
    case 'available':
      parts[at] = { ...part, state: 'output-available', output: parseOutput(content) }
      break
    case 'denied':
      parts[at] = {
        ...part,
        state: 'output-denied',
        approval: { id: toolCallId, approved: false, reason: content },
      }
      break
    default:
      parts[at] = { ...part, state: 'output-error', errorText: content }
  }
  parts.push(...toFileParts(media))
}

function addQuestion(parts: UIMessagePart[], call: PendingCall): void {
  if (call.needs === 'elicitation')
    parts.push({ type: 'dynamic-tool', state: 'input-available', ...toElicitationPart(call) })
  if (call.needs !== 'approval') return
  const { callId: toolCallId, name, arguments: text, path } = call
  const asked = { toolCallId, input: parseArguments(text).input, state: 'approval-requested' as const }
  const approval = { id: toApprovalId(call) }
  if (path) {
    const title = [...path, name].join(' › ')
    parts.push({ type: 'dynamic-tool', toolName: name, title, ...asked, approval })
    return
  }
  const at = parts.findLastIndex((part) => 'toolCallId' in part && part.toolCallId === toolCallId)
  if (at >= 0) parts[at] = { type: `tool-${name}`, ...asked, approval }
}

function addApproval(parts: UIMessagePart[], toolCallId: string): void {
  const at = parts.findLastIndex((part) => 'toolCallId' in part && part.toolCallId === toolCallId)
  const part = parts[at]
  if (!part || !('toolCallId' in part) || part.state !== 'input-available') return
  const approval = {
    id: toApprovalId({ callId: toolCallId, fingerprint: 'approved' }),
    approved: true as const,
  }
  parts[at] = { ...part, state: 'approval-responded', approval }
}

/** What a page is told of a message that other branches have otherwise. */
interface BranchesPart {
  type: 'data-branches'
  id: 'branches'
  data: Pick<BranchPoint, 'position' | 'count' | 'branches'>
}

export function toBranchesPart({ position, count, branches }: BranchPoint): BranchesPart {
  return { type: 'data-branches', id: 'branches', data: { position, count, branches } }
}
