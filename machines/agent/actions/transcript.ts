import { extended } from '../../../guards/lib/extended.js'
import { truncatedCall } from '../../../guards/truncation.js'
import type { EmittedEvent } from '../announcements.js'
import type { AgentContext, NewMessage } from '../context.js'
import type { Message, ToolMessage, UserMessage } from '../messages.js'
import type { Reason } from '../outcome.js'
import { type BatchCall, findOpenCall, type ResultStatus, type ToolResult } from '../results.js'
import { withheldResult } from '../screening.js'
import { messageId } from '../step-id.js'

type Tell = (announcement: EmittedEvent) => void

/** The transcript with user messages added; they are announced, unless shields are to see them first. */
export function withUserMessages(
  context: AgentContext,
  drafts: readonly NewMessage[],
  now: number,
  tell: Tell,
): Pick<AgentContext, 'messages' | 'numbered'> {
  const messages: Message[] = drafts.map((draft, i): UserMessage => {
    const message: UserMessage = {
      role: 'user',
      id: messageId(context.numbered + i + 1),
      createdAt: now,
      ...draft,
    }
    if (!context.features.inputShields) tell({ type: 'user_message', message })
    return message
  })
  return { messages: context.messages.concat(messages), numbered: context.numbered + messages.length }
}

/** The transcript with a message of the loop's own: sent to the model, shown to nobody. */
export function withInternalMessage(
  context: AgentContext,
  content: string,
  reason: string,
  now: number,
): Pick<AgentContext, 'messages' | 'numbered'> {
  const message: UserMessage = {
    role: 'user',
    id: messageId(context.numbered + 1),
    createdAt: now,
    internal: true,
    data: { reason },
    content,
  }
  return { messages: context.messages.concat(message), numbered: context.numbered + 1 }
}

/** One call of the batch, settled. */
export function settleCall(
  calls: readonly BatchCall[],
  callId: string,
  result: ToolResult,
  now: number,
  tell: Tell,
): BatchCall[] {
  return withOpenCall(calls, callId, (call) => settled(call, result, now, tell))
}

/** The same for a result that comes from outside: where there are shields for it, it is not told before they are. */
export function receiveResult(
  context: AgentContext,
  callId: string,
  result: ToolResult,
  now: number,
  tell: Tell,
): BatchCall[] {
  return context.features.resultShields
    ? awaitShields(context.calls, callId, result, now)
    : settleCall(context.calls, callId, result, now, tell)
}

/** One call of the batch with a result that is not told before shields have seen it. */
export function awaitShields(
  calls: readonly BatchCall[],
  callId: string,
  result: ToolResult,
  now: number,
): BatchCall[] {
  return withOpenCall(calls, callId, (call) =>
    extended(call, { result, settledAt: now, unscreened: true as const }),
  )
}

/** The batch with one call changed. Copied as a whole: of thousands of calls, each brings its result by itself. */
function withOpenCall(
  calls: readonly BatchCall[],
  callId: string,
  change: (call: BatchCall) => BatchCall,
): BatchCall[] {
  const copy = calls.slice()
  const at = findOpenCall(calls, callId)
  const call = calls[at]
  if (call) copy[at] = change(call)
  return copy
}

/** Results that no shield has seen when the run stops: they are told as withheld. */
export function withholdUnscreened(calls: readonly BatchCall[], now: number, tell: Tell): BatchCall[] {
  return calls.map((call) => {
    if (!call.unscreened) return call
    const { unscreened: _unscreened, ...known } = call
    const { durationMs = 0 } = call.result ?? {}
    return settled(
      known,
      { status: 'blocked', content: withheldResult, durationMs },
      call.settledAt ?? now,
      tell,
    )
  })
}

/** Every open call closed: one that never ran reads `notExecuted`, one that was running has an unknown outcome. */
export function closeOpenCalls(
  context: AgentContext,
  notExecuted: string,
  now: number,
  tell: Tell,
): BatchCall[] {
  return context.calls.map((call) =>
    call.result === undefined ? settled(call, closing(call, notExecuted), now, tell) : call,
  )
}

/** A call with its result, which is told, unless nobody has been told of the call yet. */
export function settled(call: BatchCall, result: ToolResult, now: number, tell: Tell): BatchCall {
  if (!call.unchecked) tellResult(call, result, tell)
  return extended(call, { result, settledAt: now })
}

export function tellResult({ id: callId, name }: BatchCall, result: ToolResult, tell: Tell): void {
  const { status, errorKind, content, durationMs, publicMessage } = result
  const kind = errorKind ? { errorKind } : {}
  const truncated = result.truncated ? { truncated: true as const } : {}
  const media = result.media ? { media: result.media } : {}
  const toPages = publicMessage === undefined ? {} : { publicMessage }
  tell({
    type: 'tool_result',
    callId,
    name,
    status,
    ...kind,
    content,
    durationMs,
    ...truncated,
    ...toPages,
    ...media,
  })
}

function closing(call: BatchCall, notExecuted: string): ToolResult {
  return call.started || call.questions
    ? { status: 'interrupted', content: interrupted, durationMs: 0 }
    : { status: 'not_executed', content: notExecuted, durationMs: 0 }
}

const interrupted = 'Interrupted: the run stopped while this call was running. Its outcome is unknown.'

/** The transcript with the results of the batch right after the message that called, in call order. */
export function withResults(context: AgentContext, calls: readonly BatchCall[]): Message[] {
  const results = calls.flatMap((call, i): ToolMessage[] => {
    if (call.result === undefined) return []
    const { status, content, media }: Pick<ToolResult, 'status' | 'content' | 'media'> = call.unscreened
      ? withheld
      : call.result
    const note =
      call.edited && !call.unchecked
        ? `The user changed the arguments to ${call.arguments} before approving.\n\n`
        : ''
    return [
      {
        role: 'tool',
        id: messageId(context.batchNumber + 1 + i),
        createdAt: call.settledAt ?? 0,
        tool_call_id: call.id,
        content: note + content,
        ...(media && { media }),
        ...notes(call, status, note),
      },
    ]
  })
  return context.messages.slice(0, context.batchAt + 1).concat(results)
}

/** What a provider asked is answered by its note: words alone never let anything run. */
function notes(
  { hosted, result, unscreened }: BatchCall,
  status: ResultStatus,
  note: string,
): Pick<ToolMessage, 'data'> {
  const data = {
    ...(status !== 'ok' && { status }),
    ...(!unscreened && result?.publicMessage !== undefined && { publicMessage: result.publicMessage }),
    // So many characters at the beginning are a note to the model, which people are not shown.
    ...(note !== '' && { noteLength: note.length }),
    ...(status === 'ok' && hosted && { approved: true }),
    ...(result?.media && result.orWords && { orWords: true }),
  }
  return Object.keys(data).length === 0 ? {} : { data }
}

const withheld = { status: 'blocked', content: withheldResult } as const

/** The model's last words stay the output; a continued answer is joined from its pieces. */
export function words(
  context: AgentContext,
  isPiece: boolean,
  text: string,
): Pick<AgentContext, 'pieces' | 'output'> {
  const joined = context.pieces + text
  return { pieces: isPiece ? joined : '', output: joined || context.output }
}

/** What a call reads that was never carried out because the run ended. */
export function whyNotExecuted(reason: Reason | null): string {
  if (reason === 'max_tokens') return truncatedCall
  return `Not executed: ${(reason && endings[reason]) ?? 'the run ended'}.`
}

const endings: Partial<Record<Reason, string>> = {
  cancelled: 'the run was cancelled',
  timeout: "the run's time was up",
  content_filter: "the provider's content filter stopped the answer",
  token_budget: 'the token budget was used up',
  output_tokens: 'the budget of output tokens was used up',
  cost_limit: 'the cost limit was reached',
  max_steps: 'the step limit was reached',
  refusal: 'the model declined to go on',
}
