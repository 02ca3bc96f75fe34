import type { AgentContext } from '../../../machines/agent/context.js'
import { callFactOf } from '../../../machines/agent/call-facts.js'
import type { AssistantMessage, Message, ToolMessage, UserMessage } from '../../../machines/agent/messages.js'
import type { BatchCall } from '../../../machines/agent/results.js'
import type { Screening, ShieldPoint } from '../../../machines/agent/screening.js'
import { withTexts } from '../../../machines/agent/actions/shields.js'
import { UsageError } from '../base/errors.js'
import { screeningsOf } from '../effects/screen-input.js'
import type { AgentParts } from '../live/parts.js'
import { type ForkEdit, readEdit, type WrittenEdit } from '../sessions/fork-edit.js'
import type { Beginning } from '../sessions/fork.js'
import { machineStateOf, type Standing } from '../sessions/standing.js'
import { askShields } from '../shields/ask-shields.js'
import type { ShieldScene } from '../shields/shield.js'
import { prepareCalls } from '../tools/prepare.js'
import { formatResult } from '../tools/tool-content.js'
import { editedArguments } from './edited-arguments.js'

/** What an edit makes of where a session stood. `app` is the app's own object. */
export async function editFork(
  parts: AgentParts,
  standing: Standing,
  given: unknown,
  app: unknown,
): Promise<Beginning> {
  const edit = readEdit(given)
  const before = standing.run?.context.messages ?? standing.state.messages
  const scene: Scene = { parts, standing, messages: before, app }
  const { messages, written, change } = await edited(edit, scene)
  const { run } = standing
  // What a run came to was said to other words: the fork keeps the conversation, and the next run goes on from there.
  if (run?.status !== 'active') {
    const state = { ...standing.state, messages, fit: keptFit(standing.state, before, messages) }
    return { state, run: null, edit: written }
  }
  const fit = keptFit(run.context, before, messages)
  const context: AgentContext = { ...run.context, messages, fit, ...change.context }
  const machine = { ...machineStateOf(run), value: change.place(run.value) }
  return { state: { ...standing.state, messages, fit }, run: { machine, context }, edit: written }
}

interface Scene {
  parts: AgentParts
  standing: Standing
  messages: readonly Message[]
  app: unknown
}

interface Edited {
  messages: Message[]
  written: WrittenEdit
  /** What of a run under way is otherwise, and where it goes on. */
  change: { context: Partial<AgentContext>; place(value: unknown): unknown }
}

function edited(edit: ForkEdit, scene: Scene): Promise<Edited> {
  if ('message' in edit) return editedMessage(edit, scene)
  return 'result' in edit ? editedResult(edit, scene) : editedCall(edit, scene)
}

async function editedMessage(
  { message: id, content: given }: Extract<ForkEdit, { message: string }>,
  scene: Scene,
): Promise<Edited> {
  const { messages, parts, standing } = scene
  const said = messages.filter((one): one is UserMessage => one.role === 'user' && !one.internal)
  const message = said.find((one) => one.id === id)
  if (message === undefined) {
    const known = said.map((one) => one.id).join(', ') || 'none'
    throw new UsageError(
      'unknown_message',
      `'${id}' is no message of the user's there. They are: ${known}.`,
      id,
    )
  }
  const content = parts.shields.input.length === 0 ? given : await seenInput(given, scene)
  const { withheld: _withheld, ...data } = message.data ?? {}
  const { data: _data, ...rest } = message
  const next: UserMessage = { ...rest, content, ...(Object.keys(data).length > 0 && { data }) }
  // Memory was searched for what the user said before.
  const isAskedAnew = standing.run?.context.features.retrieval === true && said.at(-1) === message
  const change = { context: {}, place: (value: unknown) => beforeRequest(value, isAskedAnew) }
  return { messages: replaced(messages, message, next), written: { message: id, content }, change }
}

async function editedCall(
  { call: id, arguments: given }: Extract<ForkEdit, { arguments: unknown }>,
  scene: Scene,
): Promise<Edited> {
  const { messages, parts, standing, app } = scene
  const context = standing.run?.status === 'active' ? standing.run.context : undefined
  const call = context?.calls.find((one) => one.id === id && one.result === undefined)
  const asked = askedIn(messages, id)
  if (context === undefined || call === undefined) throw asked ? hasEnded(id) : unknownCall(id, messages)
  if (call.needs === 'child' || call.questions || call.childUsage) throw isDelegated(id)
  const { text, problem } = editedArguments(given, { callId: id, ...call }, parts.tools, refusedEdit)
  const refusal = await problem
  if (refusal) throw refusal
  const seen = await seenText('toolInput', text, { callId: id, toolName: call.name }, scene)
  if (seen !== text && !isJson(seen)) throw refusedByShield(id, 'What is left of the arguments is no JSON.')
  const { started: _s, interrupted: _i, undecided: _u, approved: _a, edited: _e, ...fresh } = call
  const [prepared] = await prepareCalls(
    [{ id, type: 'function', function: { name: call.name, arguments: seen } }],
    parts.tools,
    { context: app, defaultTimeoutMs: context.config.toolCalls.timeoutMs, clock: parts.clock },
  )
  const isResting = context.state === 'WAITING_FOR_INPUT'
  // Where the run rests for an answer to it, it rests on.
  const needs = isResting ? { needs: call.needs } : { needs: 'approval' as const, ...prepared }
  const next: BatchCall = { ...fresh, ...needs, id, arguments: seen }
  if (call.fact) next.fact = callFactOf(context.tools, { ...next })
  const { held } = context
  const { reasoning_details: _details, provider_items: _items, ...reasoning } = held?.reasoning ?? {}
  const change = {
    context: {
      calls: context.calls.map((one) => (one === call ? next : one)),
      ...(held && { held: { ...held, reasoning } }),
    },
    place: beforeDispatch,
  }
  const isShown = asked !== undefined && !call.unchecked
  return {
    messages: isShown ? replaced(messages, asked, withArguments(asked, id, seen)) : [...messages],
    written: { call: id, arguments: seen },
    change,
  }
}

async function editedResult(
  { call: id, result: given }: Extract<ForkEdit, { result: unknown }>,
  scene: Scene,
): Promise<Edited> {
  const { messages, parts, standing } = scene
  const context = standing.run?.status === 'active' ? standing.run.context : undefined
  const call = context?.calls.find((one) => one.id === id)
  const message = messages.findLast(
    (one): one is ToolMessage => one.role === 'tool' && one.tool_call_id === id,
  )
  const asked = askedIn(messages, id)
  if (!asked) throw unknownCall(id, messages)
  if (asked.tool_calls?.some((one) => one.id === id && one.hosted)) throw isAnswer(id)
  if (call ? call.result === undefined : message === undefined) throw hasNoResult(id)
  const isError = given instanceof Error
  const limits = (context?.config ?? parts.config).toolCalls
  const { content, truncated } = formatResult(isError ? given.message : given, limits.maxResultChars)
  const toolName = asked.tool_calls?.find((one) => one.id === id)?.function.name
  const seen = await seenText('toolOutput', content, { callId: id, ...(toolName && { toolName }) }, scene)
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
    // A result that shields are still to see is not in the transcript yet.
    messages: message && !call?.unscreened ? replaced(messages, message, next) : [...messages],
    written: { call: id, result: seen },
    change: {
      context: call && calls ? { calls } : {},
      place: (value) => beforeRequest(value, false),
    },
  }
}

/** The latest message that has such a call. */
function askedIn(messages: readonly Message[], callId: string): AssistantMessage | undefined {
  return messages.findLast(
    (one): one is AssistantMessage =>
      one.role === 'assistant' && one.tool_calls?.some(({ id }) => id === callId) === true,
  )
}

/** What a provider wants back unchanged belongs to what it said: none of it goes on with what it has not said. */
function withArguments(message: AssistantMessage, callId: string, text: string): AssistantMessage {
  const { reasoning_details: _details, provider_items: _items, ...said } = message
  const calls = (message.tool_calls ?? []).map(({ extra_content: _extra, ...call }) =>
    call.id === callId ? { ...call, function: { ...call.function, arguments: text } } : call,
  )
  return { ...said, tool_calls: calls }
}

function replaced(messages: readonly Message[], message: Message, next: Message): Message[] {
  return messages.map((one) => (one === message ? next : one))
}

/** A note in place of messages that requests leave out tells of them as they were. */
function keptFit(
  { fit }: Pick<AgentContext, 'fit'>,
  before: readonly Message[],
  after: readonly Message[],
): AgentContext['fit'] {
  const at = after.findIndex((message, i) => message !== before[i])
  return fit !== null && at >= fit.head && at < fit.from ? null : fit
}

/** A request that is under way, or waited for, is made anew, from the safe point before it: it may be longer now. */
function beforeRequest(value: unknown, isAskedAnew: boolean): unknown {
  const { preparing, asking } = (value as { RUNNING?: Record<string, unknown> }).RUNNING ?? {}
  const isBefore = preparing === 'fittingContext' || asking === 'requesting' || asking === 'backingOff'
  return isBefore ? { RUNNING: { preparing: isAskedAnew ? 'retrieving' : 'checkingLimits' } } : value
}

/** Whether such a call may run is decided anew. */
function beforeDispatch(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'WAITING_FOR_TOOL' in value
    ? { WAITING_FOR_TOOL: 'dispatching' }
    : value
}

async function seenInput(content: UserMessage['content'], scene: Scene): Promise<UserMessage['content']> {
  const looked = await screeningsOf(content, (text) => ask('input', text, {}, scene))
  const blocked = looked.find(({ action }) => action === 'block')
  if (blocked) throw refusedByShield('edit', blocked.message)
  return withTexts(
    content,
    looked.map((one) => ({ ...one, index: 0 })),
  )
}

async function seenText(
  point: ShieldPoint,
  text: string,
  about: Pick<ShieldScene, 'callId' | 'toolName'>,
  scene: Scene,
): Promise<string> {
  if (scene.parts.shields[point].length === 0) return text
  const { action, content, message } = await ask(point, text, about, scene)
  if (action === 'block') throw refusedByShield(about.callId ?? 'edit', message)
  return content
}

function ask(
  point: ShieldPoint,
  text: string,
  about: Pick<ShieldScene, 'callId' | 'toolName'>,
  { parts: { shields, clock }, messages, app }: Scene,
): Promise<Screening> {
  const { timeoutMs, failOpen } = shields
  const { signal } = new AbortController()
  return askShields(shields[point], text, {
    ...about,
    point,
    signal,
    clock,
    timeoutMs,
    failOpen,
    messages,
    context: app,
  })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function unknownCall(id: string, messages: readonly Message[]): UsageError {
  const known = messages.flatMap((one) => (one.role === 'assistant' ? (one.tool_calls ?? []) : []))
  const ids = known.map((call) => call.id).join(', ') || 'none'
  return new UsageError(
    'unknown_call',
    `There is no call '${id}' there. Those of the transcript are: ${ids}.`,
    id,
  )
}

function hasEnded(id: string): UsageError {
  const text = `Call '${id}' has its result, which is that of the arguments it had. Fork at a record before it came, or edit the result.`
  return new UsageError('already_answered', text, id)
}

function hasNoResult(id: string): UsageError {
  const text = `Call '${id}' has no result there that could be edited. Fork at a record after it came, or edit the arguments.`
  return new UsageError('unknown_call', text, id)
}

function isAnswer(id: string): UsageError {
  const text = `Call '${id}' is carried out by the provider: its result here is the yes or no that it was given. Fork at a record before that, and answer it anew.`
  return new UsageError('already_answered', text, id)
}

function isDelegated(id: string): UsageError {
  const text = `Call '${id}' has begun in a sub-agent, with the arguments it has. Fork at a record before that.`
  return new UsageError('already_answered', text, id)
}

function refusedEdit({ callId }: { callId: string }, problem: string): UsageError {
  const text = `fork(): the arguments of call '${callId}' are refused, and nothing was forked. ${problem}`
  return new UsageError('invalid_input', text, callId)
}

function refusedByShield(subject: string, message: string | null): UsageError {
  const why = message ?? 'A shield refused it.'
  return new UsageError(
    'refused_by_shield',
    `fork(): the edit is refused, and nothing was forked. ${why}`,
    subject,
  )
}
