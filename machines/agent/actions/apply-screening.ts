import { omitUndefined, parseJsonOr } from '../../../guards/lib/json.js'
import { toAction, toActionOn } from '../update-action.js'
import type { Emit } from '../announcements.js'
import { type AgentMachineEvent, getEventTime, type AgentContext } from '../context.js'
import type { AssistantMessage, ContentPart, Message, ToolCall, UserMessage } from '../messages.js'
import { createDenial, findStrictest, isApproved, isDenied } from '../approvals.js'
import { type BatchCall, toResult } from '../batch-calls.js'
import { getApprovalTerms } from '../questions.js'
import { announceDecisions } from './judge-batch.js'
import {
  type CallScreening,
  type InputScreening,
  isInputBlocked,
  toList,
  type Screening,
  type ShieldFinding,
  type ShieldPoint,
  refusedAnswer,
  withheldArguments,
  withheldInput,
} from '../screening.js'
import { listUnclearedCalls, listUnclearedInput, maskMessage, withholdMessage } from '../mask-uncleared.js'
import { closeCall, emitAfterScreening, joinPieces, withOwnAnswer } from './update-transcript.js'

export const applyInputScreening = toActionOn('xstate.done.actor.inputShields', (context, event, emit) => {
  const screenings = toList(event.output) as readonly InputScreening[]
  for (const screening of screenings) emitFindings(screening.findings, 'input', emit)
  const uncleared: readonly Message[] = listUnclearedInput(context)
  return {
    messages: context.messages.map((message) => {
      if (message.role !== 'user' || !uncleared.includes(message)) return message
      const screened = toScreenedMessage(message, uncleared.indexOf(message), screenings)
      emit({ type: 'user_message', message: screened })
      return screened
    }),
  }
})

function toScreenedMessage(message: UserMessage, index: number, screenings: readonly InputScreening[]) {
  if (isInputBlocked(screenings, index)) return maskMessage(message, withheldInput)
  const mine = screenings.filter((screening) => screening.index === index)
  const content = withScreenedTexts(message.content, mine)
  return { ...message, content, data: { ...message.data, screened: true } }
}

export function withScreenedTexts(
  content: UserMessage['content'],
  screenings: readonly InputScreening[],
): UserMessage['content'] {
  if (typeof content === 'string') return screenings[0]?.content ?? content
  return content.flatMap((part, i): ContentPart[] => {
    const screening = screenings.find((one) => one.part === i)
    if (screening?.action !== 'redact') return [part]
    // A file's extracted text becomes a text part. If that text was merged into another part, this part is dropped.
    const { content: text } = screening
    if (text === '') return []
    return part.type === 'text' ? [{ ...part, text }] : [{ type: 'text', text }]
  })
}

export const keepShieldMessage = toAction((context, event, emit) => {
  const content = getBlockMessage(event)
  const error = { code: 'shield', message: content, recoverable: false }
  const last = context.messages.at(-1)
  if (context.pendingAnswer !== null && last?.role === 'assistant') {
    const { refusal: _refusal, ...rest } = last
    const message: AssistantMessage = { ...rest, content, data: { reason: 'shield' } }
    const pieces = context.unscreenedText?.ids ?? []
    const messages = [...context.messages.slice(0, -1).map((one) => maskPiece(one, pieces)), message]
    const unemittedStep = context.unemittedStep ?? context.pendingAnswer.stepId
    const emitted = emitAfterScreening({ ...context, messages, unemittedStep }, emit)
    return { messages, pendingAnswer: null, error, ...emitted, ...(pieces.length > 0 && noPieces) }
  }
  const answered = withOwnAnswer(context, content, { reason: 'shield' }, getEventTime(event), emit)
  return { ...answered, pendingAnswer: null, error }
})

const noPieces = { continuedText: '', unscreenedText: null, output: '' }

/** Forbidden content can span several parts, so all are masked. */
function maskPiece(message: Message, pieces: readonly string[]): Message {
  if (message.role !== 'assistant' || !pieces.includes(message.id)) return message
  return withholdMessage(message, refusedAnswer)
}

export const emitOutputFindings = toActionOn('xstate.done.actor.outputShields', (_context, event, emit) =>
  emitFindings(event.output.findings, 'output', emit),
)

export const releaseAnswer = toActionOn('xstate.done.actor.outputShields', (context, event, emit) => {
  const last = context.messages.at(-1)
  if (context.pendingAnswer === null) return undefined
  const { isRefusal, isPiece, stepId, text, reasoning = {} } = context.pendingAnswer
  const { content, outputProblem = context.pendingAnswer.outputProblem ?? context.outputProblem } =
    event.output
  // The transcript already has the answer as a tool result.
  if (last?.role !== 'assistant') return { outputProblem, pendingAnswer: null, output: content }
  const { data: _withheld, ...rest } = last
  const cleared: AssistantMessage = isRefusal
    ? { ...rest, ...reasoning, content: '', refusal: content }
    : { ...rest, ...reasoning, content }
  const message = withCurrentCalls(cleared, context.calls)
  const messages = [...context.messages.slice(0, -1), message]
  const { unscreenedText } = context
  const unscreened = {
    text: (unscreenedText?.text ?? '') + text,
    ids: [...(unscreenedText?.ids ?? []), message.id],
  }
  const next = {
    outputProblem,
    messages,
    pendingAnswer: null,
    unscreenedText: isPiece ? unscreened : null,
    ...joinPieces(context, isPiece, content),
  }
  const unemittedStep = context.unemittedStep ?? stepId
  if (context.calls.some((call) => call.unscreenedArguments)) return { ...next, unemittedStep }
  return { ...next, ...emitAfterScreening({ ...context, messages, unemittedStep }, emit) }
})

function withCurrentCalls(message: AssistantMessage, calls: readonly BatchCall[]): AssistantMessage {
  if (message.tool_calls === undefined) return message
  const shown = message.tool_calls.map((original): ToolCall => {
    const call = calls.find(({ id }) => id === original.id)
    if (call === undefined || call.unscreenedArguments || call.edited) return original
    const { name, arguments: text } = call
    return { ...original, function: { name, arguments: text } }
  })
  return { ...message, tool_calls: shown }
}

/** A call whose arguments were blocked gets the refusal as its result, and the loop continues. */
export const applyCallScreening = toActionOn('xstate.done.actor.callShields', (context, event, emit) => {
  const screeningOf = createScreeningLookup(event.output)
  const screenings = new Map(
    listUnclearedCalls(context).map((call) => [call.id, blockHostedRedaction(call, screeningOf(call))]),
  )
  const checked = context.calls.map((call): BatchCall => {
    const screening = screenings.get(call.id)
    if (screening === undefined) return call
    const looked = { ...toScreenedCall(call, screening), unscreenedArguments: true as const }
    if (looked.result !== undefined) return looked
    if (screening.action !== 'block') return decideAgain(looked, screening, context, getEventTime(event))
    const why = screening.message ?? refusedCallText
    const content = call.edited ? `${refusedEditText}: ${why}` : why
    return { ...looked, result: toResult('blocked', content), settledAt: getEventTime(event) }
  })
  const caller = context.messages[context.batchAt]
  const known = checked.map(({ unscreenedArguments: _unchecked, ...call }) =>
    screenings.get(call.id)?.action === 'redact' ? withJsonArguments(call) : call,
  )
  const message = caller?.role === 'assistant' ? withCurrentCalls(caller, known) : undefined
  const messages = message ? context.messages.with(context.batchAt, message) : context.messages
  const emitted = emitAfterScreening({ ...context, messages, calls: checked }, emit, () => {
    for (const [id, screening] of screenings) emitFindings(screening.findings, 'toolInput', emit, id)
    for (const call of known) if (screenings.get(call.id)?.decisions) announceDecisions(call, emit)
  })
  return {
    ...emitted,
    messages,
    calls: emitted.calls.map(({ unscreenedArguments: _unchecked, undecided: _undecided, ...call }) => call),
  }
})

/** Applies policy decisions on changed arguments. A call without a decision is denied. */
function decideAgain(
  call: BatchCall,
  { action, decisions }: CallScreening,
  context: AgentContext,
  now: number,
): BatchCall {
  if (!call.undecided && !(call.decisions && action === 'redact')) return call
  const decided = { ...call, decisions: decisions ?? [missingDecision] }
  if (isDenied(decided)) return { ...decided, result: createDenial(decided), settledAt: now }
  const terms = getApprovalTerms(context, decided)
  const isEnough = call.approved && (!terms.approvers || isApproved(terms, context.requesters))
  const asks = findStrictest(decided) === 'ask' && !isEnough && call.needs !== 'approval'
  if (!asks) return decided
  const { approved: _approved, expiresAt: _time, ...open } = decided
  return { ...open, needs: 'approval', ...(call.needs === 'client' && { client: true as const }) }
}

const missingDecision = { policy: 'policy', decision: 'deny', rule: 'policy_error', failed: true } as const

/** Turns the redaction of a hosted call into a block, because the provider runs hosted calls unchanged. */
function blockHostedRedaction({ hosted }: BatchCall, screening: CallScreening): CallScreening {
  if (!hosted || screening.action !== 'redact') return screening
  return { ...screening, action: 'block', message: screening.message ?? refusedCallText }
}

function toScreenedCall(call: BatchCall, { action, content, name }: Partial<CallScreening>): BatchCall {
  const named = { ...call, ...omitUndefined({ name }) }
  if (action === 'redact') return { ...named, arguments: content ?? withheldArguments }
  if (action !== 'block') return named
  const { edited: _edited, ...refused } = named
  return { ...refused, arguments: withheldArguments }
}

/** Replaces arguments with `{}` if redaction broke their JSON, because messages need valid JSON. */
function withJsonArguments(call: BatchCall): BatchCall {
  const isJson = call.arguments.trim() === '' || parseJsonOr(call.arguments, undefined) !== undefined
  return isJson ? call : { ...call, arguments: withheldArguments }
}

/** Shields fail closed, so a call without a screening is refused. */
function createScreeningLookup(output: unknown): (call: BatchCall) => CallScreening {
  const known = new Map((toList(output) as readonly CallScreening[]).map((one) => [one.callId, one]))
  const message = 'No shield has checked this call.'
  return ({ id }) => known.get(id) ?? { callId: id, action: 'block', message, content: '', findings: [] }
}

const refusedCallText = "A shield refused this call's arguments."
const refusedEditText = 'The user changed the arguments before approving, but they were refused'

export const applyResultScreening = toActionOn('xstate.done.actor.resultShields', (context, event, emit) => {
  const screeningOf = createScreeningLookup(event.output)
  const calls = context.calls.map((call): BatchCall => {
    if (call.result === undefined || !call.unscreenedResult) return call
    const screening = screeningOf(call)
    if (screening.asInput) emitFindings(screening.asInput.findings, 'input', emit, call.id)
    emitFindings(screening.findings, 'toolOutput', emit, call.id)
    const { unscreenedResult: _unscreened, result, ...known } = call
    const now = call.settledAt ?? getEventTime(event)
    if (screening.action !== 'block') {
      const { media, ...words } = { ...result, content: screening.content }
      const isKept = media !== undefined && !screening.withoutMedia
      return closeCall(known, isKept ? { ...words, media } : words, now, emit)
    }
    const { durationMs, status } = result
    // A blocked rejection reason is dropped, but the call stays rejected.
    const blocked =
      status === 'rejected'
        ? toResult(status, 'Rejected by the user, for a reason that a shield withheld.')
        : toResult('blocked', screening.message ?? "A shield withheld this call's result.")
    return closeCall(known, { ...blocked, durationMs }, now, emit)
  })
  return { calls }
})

function emitFindings(findings: ShieldFinding[], point: ShieldPoint, emit: Emit, callId?: string): undefined {
  for (const { shield, action, message, durationMs } of findings) {
    if (action === 'allow') continue
    emit({ type: 'shield', point, shield, action, message, durationMs, ...omitUndefined({ callId }) })
  }
}

function getBlockMessage(event: AgentMachineEvent): string {
  const output: unknown = 'output' in event ? event.output : null
  const outputs: unknown[] = Array.isArray(output) ? output : [output]
  const block = outputs.find((one): one is Screening => (one as Screening | null)?.action === 'block')
  return block?.message ?? 'A shield refused the content.'
}
