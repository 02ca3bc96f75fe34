import { omitUndefined, extendObject } from '../../../guards/lib/json.js'
import { truncatedCall } from '../../../guards/unusable-answer.js'
import type { Emit } from '../announcements.js'
import type { AgentContext, NewMessage } from '../context.js'
import {
  type AssistantMessage,
  type Message,
  type ToolMessage,
  type UserMessage,
  formatMessageId,
  getStepId,
} from '../messages.js'
import type { Reason } from '../run-result.js'
import {
  type BatchCall,
  findOpenCallIndex,
  type ResultStatus,
  type ToolResult,
  toResult,
} from '../batch-calls.js'
import { withheldResult } from '../screening.js'
import { changeSkills } from '../skills.js'

type Calls = readonly BatchCall[]

/** Adds user messages to the transcript and emits them, unless they are waiting for shields. */
export function withUserMessages(
  context: AgentContext,
  drafts: readonly NewMessage[],
  now: number,
  emit: Emit,
): Pick<AgentContext, 'messages' | 'lastMessageNumber'> {
  const messages = drafts.map((draft, i): UserMessage => {
    const id = formatMessageId(context.lastMessageNumber + i + 1)
    const message: UserMessage = { role: 'user', id, createdAt: now, ...draft }
    if (!context.features.inputShields) emit({ type: 'user_message', message })
    return message
  })
  return appendMessages(context, messages)
}

function appendMessages({ messages: before, lastMessageNumber }: AgentContext, messages: Message[]) {
  return { messages: before.concat(messages), lastMessageNumber: lastMessageNumber + messages.length }
}

export function withOwnAnswer(
  context: AgentContext,
  content: string,
  data: { partial: true } | { reason: string },
  now: number,
  emit: Emit,
): Pick<AgentContext, 'messages' | 'lastMessageNumber'> {
  const id = formatMessageId(context.lastMessageNumber + 1)
  const message: AssistantMessage = { role: 'assistant', id, createdAt: now, content, data }
  const partial = 'partial' in data && { partial: true as const }
  emit({ type: 'assistant_message', stepId: getStepId(context), message, ...partial })
  return appendMessages(context, [message])
}

/** Adds an internal message. The model reads it, but user interfaces hide it. */
export function withInternalMessage(
  context: AgentContext,
  content: string,
  reason: string,
  now: number,
): Pick<AgentContext, 'messages' | 'lastMessageNumber'> {
  const id = formatMessageId(context.lastMessageNumber + 1)
  return appendMessages(context, [
    { role: 'user', id, createdAt: now, internal: true, data: { reason }, content },
  ])
}

/**
 * Settles a call. An uncleared result waits until result shields have screened it. Uses `slice`, because a batch with
 * thousands of calls makes thousands of copies.
 */
export function settleCall(
  calls: Calls,
  callId: string,
  result: ToolResult,
  now: number,
  emit: Emit,
  isUncleared = false,
): BatchCall[] {
  const copy = calls.slice()
  const at = findOpenCallIndex(calls, callId)
  const call = calls[at]
  if (call)
    copy[at] = isUncleared
      ? extendObject(call, { result, settledAt: now, unscreenedResult: true as const })
      : closeCall(call, result, now, emit)
  return copy
}

export function maskUnclearedResults(calls: readonly BatchCall[], now: number, emit: Emit): BatchCall[] {
  return calls.map((call) => {
    if (!call.unscreenedResult) return call
    const { unscreenedResult: _unscreened, ...known } = call
    const { durationMs = 0 } = call.result ?? {}
    return closeCall(known, { ...maskedResult, durationMs }, call.settledAt ?? now, emit)
  })
}

/** Closes all open calls. Calls that never ran get the text `notExecuted`. Running calls get an unknown outcome. */
export function closeOpenCalls(
  calls: readonly BatchCall[],
  notExecuted: string,
  now: number,
  emit: Emit,
  isMeant: (call: BatchCall) => boolean = () => true,
): BatchCall[] {
  return calls.map((call) => {
    if (call.result !== undefined || !isMeant(call)) return call
    const hasStarted = call.started || call.questions
    const result = hasStarted ? interrupted : toResult('not_executed', notExecuted)
    return closeCall(call, result, now, emit)
  })
}

/** Sets the result of a call, and emits it if the call itself was emitted. */
export function closeCall(call: BatchCall, result: ToolResult, now: number, emit: Emit): BatchCall {
  if (!call.unscreenedArguments) emitResult(call, result, emit)
  return extendObject(call, { result, settledAt: now })
}

function emitResult({ id: callId, name }: BatchCall, result: ToolResult, emit: Emit): void {
  const { status, errorKind, content, durationMs, truncated, publicMessage, media, appData } = result
  emit({
    type: 'tool_result',
    callId,
    name,
    status,
    content,
    durationMs,
    ...omitUndefined({ errorKind, truncated, publicMessage, media, appData }),
  })
}

/** Emits the events that were held back for screening: the answer and its calls first, then the results. */
export function emitAfterScreening(
  context: Pick<AgentContext, 'unemittedStep' | 'messages' | 'batchAt' | 'calls'>,
  emit: Emit,
  findings: () => void = () => undefined,
): Pick<AgentContext, 'unemittedStep' | 'calls'> {
  const { unemittedStep: stepId, messages, batchAt } = context
  const message = messages[batchAt]
  if (stepId && message?.role === 'assistant') {
    emit({ type: 'assistant_message', stepId, message })
    for (const call of message.tool_calls ?? []) emit({ type: 'tool_call', stepId, call })
  }
  findings()
  const calls = context.calls.map((call) => {
    if (!call.unscreenedArguments || call.result === undefined) return call
    const { unscreenedArguments: _unchecked, ...known } = call
    // Results that are still uncleared are emitted later.
    if (!call.unscreenedResult) emitResult(known, call.result, emit)
    return known
  })
  return { unemittedStep: null, calls }
}

const interrupted = toResult(
  'interrupted',
  'Interrupted: the run stopped while this call was running. Its outcome is unknown.',
)

/** A call keeps its message while it does not change, so that it is compared and hashed once. */
const messageByCall = new WeakMap<BatchCall, ToolMessage>()

export function withResults(context: AgentContext, calls: readonly BatchCall[]): Message[] {
  const results = calls.flatMap((call, i): ToolMessage[] => {
    if (call.result === undefined) return []
    const id = formatMessageId(context.batchNumber + 1 + i)
    const known = messageByCall.get(call)
    if (known?.id === id) return [known]
    const { status, content, media } = call.unscreenedResult ? maskedResult : call.result
    const note =
      call.edited && !call.unscreenedArguments
        ? `The user changed the arguments to ${call.arguments} before approving.\n\n`
        : ''
    const message: ToolMessage = {
      role: 'tool',
      id,
      createdAt: call.settledAt ?? 0,
      tool_call_id: call.id,
      content: note + content,
      ...(media && { media }),
      ...createMessageNotes(call, status, note),
    }
    messageByCall.set(call, message)
    return [message]
  })
  return context.messages.slice(0, context.batchAt + 1).concat(results)
}

export function applySkillChanges(
  { skills: before, batchNumber }: AgentContext,
  calls: readonly BatchCall[],
): Partial<Pick<AgentContext, 'skills'>> {
  if (!calls.some(({ skill }) => skill)) return {}
  const skills = calls.reduce(
    (active, { skill, result, unscreenedResult }, i) =>
      skill && result?.status === 'ok' && !unscreenedResult
        ? changeSkills(active, skill, formatMessageId(batchNumber + 1 + i))
        : active,
    before,
  )
  return { skills }
}

export function applyHandoff(
  { speaker }: AgentContext,
  calls: readonly BatchCall[],
  emit: Emit,
): Partial<Pick<AgentContext, 'speaker' | 'tools' | 'skills'>> {
  const call = calls.findLast((one) => one.handoff && one.result?.status === 'ok' && !one.unscreenedResult)
  if (call?.handoff === undefined) return {}
  const { to, tools } = call.handoff
  emit({ type: 'handed_off', callId: call.id, from: speaker ?? null, to })
  return { speaker: to, tools, skills: [] }
}

/** They also answer a provider's approval request, because text alone never approves a hosted call. */
function createMessageNotes(call: BatchCall, status: ResultStatus, note: string): Pick<ToolMessage, 'data'> {
  const { hosted, result, unscreenedResult } = call
  const data = {
    ...(status !== 'ok' && { status }),
    ...(status === 'ok' && call.skill && { skill: { ...call.skill } }),
    ...(status === 'ok' && call.handoff && { handoff: { to: call.handoff.to } }),
    ...(!unscreenedResult && result?.publicMessage !== undefined && { publicMessage: result.publicMessage }),
    // Length of the leading note that only the model reads.
    ...(note !== '' && { noteLength: note.length }),
    ...(status === 'ok' && hosted && { approved: true }),
    ...(result?.media && result.mediaOptional && { mediaOptional: true }),
  }
  return Object.keys(data).length === 0 ? {} : { data }
}

const maskedResult = toResult('blocked', withheldResult)

export function joinPieces(
  context: AgentContext,
  isPiece: boolean,
  text: string,
): Pick<AgentContext, 'continuedText' | 'output'> {
  const joined = context.continuedText + text
  return { continuedText: isPiece ? joined : '', output: joined || context.output }
}

export function formatNotExecuted(reason: Reason | null): string {
  if (reason === 'max_tokens') return truncatedCall
  return `Not executed: ${(reason && notExecutedBecause[reason]) ?? 'the run ended'}.`
}

const notExecutedBecause: Partial<Record<Reason, string>> = {
  cancelled: 'the run was cancelled',
  approval_expired: 'an approval did not arrive in time',
  timeout: 'the deadline passed',
  content_filter: "the provider's content filter stopped the answer",
  token_budget: 'the token budget was used up',
  output_tokens: 'the output token budget was used up',
  cost_limit: 'the cost limit was reached',
  shared_budget: 'a shared budget was used up',
  max_steps: 'the step limit was reached',
  max_tool_calls: 'all tool calls of the run were used',
  refusal: 'the model declined to continue',
}
