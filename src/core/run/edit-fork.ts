import type { AgentContext } from '../../../machines/agent/context.js'
import { createDenial, isDenied } from '../../../machines/agent/approvals.js'
import { toCallFact } from '../../../machines/agent/call-facts.js'
import type {
  AssistantMessage,
  Message,
  ToolMessage,
  UserMessage,
  ContentPart,
} from '../../../machines/agent/messages.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import type { ShieldPoint } from '../../../machines/agent/screening.js'
import { isChildAtRest } from '../../../machines/agent/questions.js'
import { withScreenedTexts } from '../../../machines/agent/actions/apply-screening.js'
import { CallAbort } from '../base/abort.js'
import { inputError, UsageError } from '../base/errors.js'
import { toPrepareOptions } from '../effects/prepare-options.js'
import { screenContent } from '../effects/screening-effects.js'
import { type AgentParts, getSpeakerTools, toSpeaker } from '../live/agent-parts.js'
import type { LoggedEdit } from '../sessions/log/log-record.js'
import { type ForkStart, keepUnchanged } from '../sessions/fork-session.js'
import { toMachineState, type FoldedSession } from '../sessions/fold-session.js'
import { askShields } from '../shields/ask-shields.js'
import type { ShieldScene } from '../shields/define-shield.js'
import { prepareCalls } from '../tools/prepare-calls.js'
import { formatResult } from '../tools/tool-content.js'
import { parseEditedArguments } from './answer-events.js'
import { parseJsonOr } from '../base/json.js'
import { toMessage } from '../sessions/user-input.js'

/**
 * A change that a fork makes to the copied session. The change edits a user message (by its id), the arguments of an
 * unfinished call, the result of a finished call, or the agent's instructions.
 * @example
 * const edits: ForkEdit[] = [
 *   { message: 'm1', content: 'And in June?' },
 *   { call: 'call_1', arguments: { month: 6 } },
 *   { call: 'call_1', result: { total: 12 } }, // an Error becomes an error result
 *   { instructions: 'You are brief.' }, // only in this fork, instead of the instructions of the agent or a step
 * ]
 */
export type ForkEdit =
  | { message: string; content: string | ContentPart[] }
  | { call: string; arguments: unknown }
  | { call: string; result: unknown }
  | { instructions: string }

/** Options for forking a session. */
export interface ForkOptions {
  /** A change to the forked state. Defaults to none. */
  edit?: ForkEdit
  /**
   * Requires approval for all calls in the fork that are not read-only, so that no side effect repeats without
   * confirmation. Defaults to false.
   */
  askFirst?: boolean
  /** The app's context object, passed to shields and to `needsApproval`. */
  context?: unknown
}

export async function editFork(
  parts: AgentParts,
  source: FoldedSession,
  { edit: option, askFirst, context: app }: ForkOptions,
): Promise<ForkStart> {
  const folded = withDispatchAgain(askFirst === true ? withAskFirst(source, parts) : source)
  if (option === undefined) return keepUnchanged(folded)
  const edit = readEdit(option)
  const { state, run } = folded
  const before = run?.context.messages ?? state.messages
  const active = run?.status === 'active' ? run : null
  const scene: EditScene = { parts, folded, messages: before, context: active?.context, app }
  let applied: AppliedEdit
  if ('message' in edit) applied = await editMessage(edit, scene)
  else if ('result' in edit) applied = await editResult(edit, scene)
  else if ('arguments' in edit) applied = await editCall(edit, scene)
  // The author of the fork writes the instructions, so shields do not check them.
  else applied = { written: edit, change: { terms: { ...(run?.context ?? state).terms, ...edit } } }
  const { messages = [...before], change = {}, place = moveBeforeRequest } = applied
  const last = active?.context ?? state
  const { terms } = { ...last, ...change }
  const fit = keepFit(last, before, messages)
  return {
    state: { ...state, messages, fit, ...(terms && { terms }) },
    // The ended run answered the unedited content. The fork keeps the conversation, and the next run continues it.
    run: active && {
      machine: { ...toMachineState(active), value: place(active.value) },
      context: { ...active.context, messages, fit, ...change },
    },
    edit: applied.written,
  }
}

/** With `askFirst`, calls that were about to run are dispatched again, so that they ask. */
function withDispatchAgain(folded: FoldedSession): FoldedSession {
  const { run } = folded
  if (!run?.context.terms?.askFirst) return folded
  return { ...folded, run: { ...run, value: moveBeforeDispatch(run.value) } as typeof run }
}

/** @throws {UsageError} `invalid_input` if the value is not an edit */
function readEdit(edit: unknown): ForkEdit {
  const { message, content, call, ...rest } = (edit ?? {}) as Record<string, unknown>
  const { instructions } = rest
  if (typeof instructions === 'string' && Object.keys(edit as object).length === 1) return { instructions }
  if (typeof message === 'string' && call === undefined && Object.keys(rest).length === 0) {
    return { message, content: toMessage({ content }, 'edit').content }
  }
  const [key, ...others] = Object.keys(rest)
  const isOfCall = typeof call === 'string' && message === undefined && content === undefined
  if (isOfCall && others.length === 0 && (key === 'arguments' || key === 'result') && rest[key] !== undefined)
    return { call, [key]: rest[key] } as ForkEdit
  throw inputError(
    'edit must be { message, content }, { call, arguments }, { call, result } or { instructions }. message and call are ids.',
    'edit',
  )
}

/** Asks for approval of all open calls, because they would run again in the fork. */
function withAskFirst(folded: FoldedSession, { tools }: AgentParts): FoldedSession {
  const { state, run } = folded
  const terms = { ...(run?.context ?? state).terms, askFirst: true as const }
  const asking = { ...folded, state: { ...state, terms } }
  if (run === null) return asking
  const spoken = getSpeakerTools(tools, run.context.speaker)
  const asks = ({ name, result, needs, unloaded }: BatchCall): boolean =>
    result === undefined && needs === 'nobody' && !unloaded && spoken.get(name)?.readOnly === false
  const calls = run.context.calls.map((call): BatchCall => {
    if (isChildAtRest(call)) return withoutApprovals(call)
    if (!asks(call)) return call
    const { started: _s, interrupted: _i, ...open } = call
    return { ...open, needs: 'approval' }
  })
  return { ...asking, run: { ...run, context: { ...run.context, terms, calls } } as typeof run }
}

/** Removes the approvals given so far. The sub-agent's call has not read them, because it waits for more answers. */
function withoutApprovals(call: BatchCall): BatchCall {
  const questions = (call.questions ?? []).map(({ answer, ...question }) =>
    answer === undefined || question.needs === 'approval' ? question : { ...question, answer },
  )
  return { ...call, questions }
}

interface EditScene {
  parts: AgentParts
  folded: FoldedSession
  messages: readonly Message[]
  /** The context of the run, unless the run has ended. */
  context: AgentContext | undefined
  app: unknown
}

interface AppliedEdit {
  /** Absent if the transcript does not change. */
  messages?: Message[]
  written: LoggedEdit
  change?: Partial<AgentContext>
  /** The state from which an active run continues. Defaults to before the request. */
  place?: (value: unknown) => unknown
}

async function editMessage(
  { message: id, content: newContent }: Extract<ForkEdit, { message: string }>,
  scene: EditScene,
): Promise<AppliedEdit> {
  const { messages, folded } = scene
  const userMessages = messages.filter((one): one is UserMessage => one.role === 'user' && !one.internal)
  const message = userMessages.find((one) => one.id === id)
  if (message === undefined) {
    const known = userMessages.map((one) => one.id).join(', ') || 'none'
    const text = `'${id}' is not a user message at that point. The user messages are: ${known}.`
    throw new UsageError('unknown_message', text, id)
  }
  const content = await screenEdit('input', newContent, {}, scene)
  const { withheld: _withheld, ...data } = message.data ?? {}
  const { data: _data, ...rest } = message
  const next: UserMessage = { ...rest, content, ...(Object.keys(data).length > 0 && { data }) }
  // The retrieved memory was for the previous user message.
  const isRetrievedAgain = folded.run?.context.features.retrieval === true && userMessages.at(-1) === message
  return {
    messages: replaceMessage(messages, message, next),
    written: { message: id, content },
    place: (value) => moveBeforeRequest(value, isRetrievedAgain ? 'retrieving' : 'checkingLimits'),
  }
}

async function editCall(
  { call: id, arguments: newArguments }: Extract<ForkEdit, { arguments: unknown }>,
  scene: EditScene,
): Promise<AppliedEdit> {
  const { messages, parts, context, app } = scene
  const call = context?.calls.find((one) => one.id === id && one.result === undefined)
  const caller = findAskingMessage(messages, id)
  if (context === undefined || call === undefined)
    throw caller ? callError(id, 'hasResult') : unknownCallError(id, messages)
  if (call.needs === 'child' || call.questions || call.childUsage) throw callError(id, 'delegated')
  const tools = getSpeakerTools(parts.tools, context.speaker)
  const edited = { callId: id, ...call }
  const { text, problem } = parseEditedArguments(newArguments, edited, tools, refusedForkEditError)
  const refusal = await problem
  if (refusal) throw refusal
  const seen = await screenEdit('toolInput', text, { callId: id, toolName: call.name }, scene)
  if (seen !== text && parseJsonOr(seen, undefined) === undefined)
    throw refusedByShieldError(id, 'The remaining arguments are not valid JSON.')
  const {
    started: _s,
    interrupted: _i,
    approvalTimedOut: _u,
    approved: _a,
    approvals: _v,
    edited: _e,
    decisions: _d,
    undecided: _n,
    ungranted: _g,
    ...fresh
  } = call
  const [prepared] = await prepareCalls(
    [{ id, type: 'function', function: { name: call.name, arguments: seen } }],
    tools,
    {
      ...toPrepareOptions(toSpeaker(parts, context.speaker), context, { context: app }, new CallAbort()),
      isUnloaded: () => call.unloaded === true,
    },
  )
  if (prepared && isDenied(prepared)) {
    const text = `The edited arguments of call '${id}' were denied. ${createDenial(prepared).content}`
    throw new UsageError('denied_by_policy', text, id)
  }
  const isResting = context.state === 'WAITING_FOR_INPUT'
  // A run that rests for an answer to this call continues to rest.
  const needs = isResting ? { ...prepared, needs: call.needs } : { needs: 'approval' as const, ...prepared }
  const next: BatchCall = { ...fresh, ...needs, id, arguments: seen }
  if (call.fact) next.fact = toCallFact(context.tools, { ...next }, context.config.guardrails)
  const { pendingAnswer } = context
  const { reasoning_details: _details, provider_items: _items, ...reasoning } = pendingAnswer?.reasoning ?? {}
  const isShown = caller !== undefined && !call.unscreenedArguments
  return {
    ...(isShown && { messages: replaceMessage(messages, caller, withArguments(caller, id, seen)) }),
    written: { call: id, arguments: seen },
    change: {
      calls: context.calls.map((one) => (one === call ? next : one)),
      ...(pendingAnswer && { pendingAnswer: { ...pendingAnswer, reasoning } }),
    },
    place: moveBeforeDispatch,
  }
}

async function editResult(
  { call: id, result: newResult }: Extract<ForkEdit, { result: unknown }>,
  scene: EditScene,
): Promise<AppliedEdit> {
  const { messages, parts, context } = scene
  const call = context?.calls.find((one) => one.id === id)
  const message = messages.findLast(
    (one): one is ToolMessage => one.role === 'tool' && one.tool_call_id === id,
  )
  const caller = findAskingMessage(messages, id)
  const asked = caller?.tool_calls?.find((one) => one.id === id)
  if (!asked) throw unknownCallError(id, messages)
  if (asked.hosted) throw callError(id, 'hosted')
  if (call ? call.result === undefined : message === undefined) throw callError(id, 'noResult')
  const isError = newResult instanceof Error
  const limits = (context?.config ?? parts.config).toolCalls
  const { content, truncated } = formatResult(isError ? newResult.message : newResult, limits.maxResultChars)
  const about = { callId: id, toolName: asked.function.name }
  const seen = await screenEdit('toolOutput', content, about, scene)
  const result = {
    status: isError ? ('error' as const) : ('ok' as const),
    content: seen,
    ...(isError && { errorKind: 'failed' as const }),
    durationMs: call?.result?.durationMs ?? 0,
    ...(truncated && { truncated }),
  }
  const calls = context?.calls.map((one) => (one === call ? { ...one, result } : one))
  const { data: _status, media: _media, ...rest } = message ?? ({} as ToolMessage)
  const next: ToolMessage = { ...rest, content: seen, ...(isError && { data: { status: 'error' } }) }
  return {
    // An unscreened result is not in the transcript yet.
    ...(message && !call?.unscreenedResult && { messages: replaceMessage(messages, message, next) }),
    written: { call: id, result: seen },
    ...(call && calls && { change: { calls } }),
  }
}

function findAskingMessage(messages: readonly Message[], callId: string): AssistantMessage | undefined {
  return messages.findLast(
    (one): one is AssistantMessage =>
      one.role === 'assistant' && one.tool_calls?.some(({ id }) => id === callId) === true,
  )
}

/** Removes items that must go back to a provider unchanged, because they match only the original arguments. */
function withArguments(message: AssistantMessage, callId: string, text: string): AssistantMessage {
  const { reasoning_details: _details, provider_items: _items, ...rest } = message
  const calls = (message.tool_calls ?? []).map(({ extra_content: _extra, ...call }) =>
    call.id === callId ? { ...call, function: { ...call.function, arguments: text } } : call,
  )
  return { ...rest, tool_calls: calls }
}

function replaceMessage(messages: readonly Message[], message: Message, next: Message): Message[] {
  return messages.map((one) => (one === message ? next : one))
}

/** Keeps the fit unless the edit is inside its gap, because the gap's note describes the messages inside the gap. */
function keepFit(
  { fit }: Pick<AgentContext, 'fit'>,
  before: readonly Message[],
  after: readonly Message[],
): AgentContext['fit'] {
  const at = after.findIndex((message, i) => message !== before[i])
  return fit !== null && at >= fit.head && at < fit.from ? null : fit
}

/** Moves a request in progress back to the previous safe point, because the request may be longer now. */
function moveBeforeRequest(value: unknown, to = 'checkingLimits'): unknown {
  const { preparing, asking } = (value as { RUNNING?: Record<string, unknown> }).RUNNING ?? {}
  const isBefore = preparing === 'fittingContext' || asking === 'requesting' || asking === 'backingOff'
  return isBefore ? { RUNNING: { preparing: to } } : value
}

function moveBeforeDispatch(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'WAITING_FOR_TOOL' in value
    ? { WAITING_FOR_TOOL: 'dispatching' }
    : value
}

/** @throws {UsageError} `refused_by_shield` */
async function screenEdit<Content extends UserMessage['content']>(
  point: ShieldPoint,
  content: Content,
  about: Pick<ShieldScene, 'callId' | 'toolName'>,
  { parts: { shields, clock }, messages, app }: EditScene,
): Promise<Content> {
  if (shields[point].length === 0) return content
  const { timeoutMs, failOpen } = shields
  const { signal } = new AbortController()
  const scene = { ...about, point, messages, context: app, signal, clock, timeoutMs, failOpen }
  const looked = await screenContent(content, (text) => askShields(shields[point], text, scene))
  const blocked = looked.find(({ action }) => action === 'block')
  if (blocked) throw refusedByShieldError(about.callId ?? 'edit', blocked.message)
  const texts = looked.map((one) => ({ ...one, index: 0 }))
  return withScreenedTexts(content, texts) as Content
}

function unknownCallError(id: string, messages: readonly Message[]): UsageError {
  const known = messages.flatMap((one) => (one.role === 'assistant' ? (one.tool_calls ?? []) : []))
  const ids = known.map((call) => call.id).join(', ') || 'none'
  const text = `There is no call '${id}' at that point. The calls in the transcript are: ${ids}.`
  return new UsageError('unknown_call', text, id)
}

const callFaults = {
  hasResult:
    'already has a result for its current arguments. Fork at a record before the result, or edit the result.',
  noResult: 'has no result at that point to edit. Fork at a record after the result, or edit the arguments.',
  hosted:
    'is executed by the provider, so its result here is only the approval or rejection. Fork at a record before that decision, and decide again.',
  delegated: 'has already started in a sub-agent with its current arguments. Fork at a record before that.',
}

function callError(id: string, fault: keyof typeof callFaults): UsageError {
  const code = fault === 'noResult' ? 'unknown_call' : 'already_answered'
  return new UsageError(code, `Call '${id}' ${callFaults[fault]}`, id)
}

function refusedForkEditError({ callId }: { callId: string }, problem: string): UsageError {
  return inputError(
    `fork(): the arguments of call '${callId}' were refused, and nothing was forked. ${problem}`,
    callId,
  )
}

function refusedByShieldError(subject: string, message: string | null): UsageError {
  const text = `fork(): the edit was refused, and nothing was forked. ${message ?? 'A shield refused it.'}`
  return new UsageError('refused_by_shield', text, subject)
}
