import { act } from '../act.js'
import type { EmittedEvent } from '../announcements.js'
import { type AgentMachineEvent, timeOf } from '../events.js'
import type { AssistantMessage, ContentPart, Message, UserMessage } from '../messages.js'
import type { BatchCall } from '../results.js'
import {
  type CallScreening,
  type InputScreening,
  listed,
  type Screening,
  type ShieldPoint,
  refusedAnswer,
  withheldArguments,
  withheldInput,
} from '../screening.js'
import { messageId, stepIdOf } from '../step-id.js'
import { uncheckedCalls, unscreenedInput, withheldMessage } from '../unscreened.js'
import { settled, words } from './transcript.js'
import { tellUntold, withCalls } from './untold.js'

type Tell = (announcement: EmittedEvent) => void

/** The user's messages as the shields let them through: never told, and never sent to a model, before. */
export const heedInputShields = act((context, event, tell) => {
  if (event.type !== 'xstate.done.actor.inputShields') return undefined
  const screenings = listed(event.output) as readonly InputScreening[]
  for (const screening of screenings) tellFindings(screening, 'input', null, tell)
  const asked: readonly Message[] = unscreenedInput(context)
  return {
    messages: context.messages.map((message) => {
      if (message.role !== 'user' || !asked.includes(message)) return message
      const heard = screened(message, asked.indexOf(message), screenings)
      tell({ type: 'user_message', message: heard })
      return heard
    }),
  }
})

function screened(message: UserMessage, index: number, screenings: readonly InputScreening[]): UserMessage {
  const mine = screenings.filter((screening) => screening.index === index)
  // Nothing said of a message is a refusal: shields fail closed.
  if (mine.length === 0 || mine.some(({ action }) => action === 'block'))
    return withheldMessage(message, withheldInput)
  return {
    ...message,
    content: withTexts(message.content, mine),
    data: { ...message.data, screened: true },
  }
}

/** A message's content as shields let it through. */
export function withTexts(
  content: UserMessage['content'],
  screenings: readonly InputScreening[],
): UserMessage['content'] {
  if (typeof content === 'string') return screenings[0]?.content ?? content
  return content.flatMap((part, i): ContentPart[] => {
    const screening = screenings.find((one) => one.part === i)
    if (screening?.action !== 'redact') return [part]
    // What a file says goes on as a text, and a text that has gone into another one not at all.
    const { content: text } = screening
    if (text === '') return []
    return part.type === 'text' ? [{ ...part, text }] : [{ type: 'text', text }]
  })
}

/** A block is answered with the shield's own words; what was blocked is not repeated. */
export const keepShieldMessage = act((context, event, tell) => {
  const content = blockedBecause(event)
  const error = { code: 'shield', message: content, recoverable: false }
  const last = context.messages.at(-1)
  if (context.held !== null && last?.role === 'assistant') {
    const { refusal: _refusal, ...said } = last
    const message: AssistantMessage = { ...said, content, data: { reason: 'shield' } }
    const pieces = context.spoken?.ids ?? []
    const messages = [...context.messages.slice(0, -1).map((one) => withoutPiece(one, pieces)), message]
    const untold = context.untold ?? context.held.stepId
    const told = tellUntold({ ...context, messages, untold }, tell)
    return { messages, held: null, error, ...told, ...(pieces.length > 0 && noPieces) }
  }
  const message: AssistantMessage = {
    role: 'assistant',
    id: messageId(context.numbered + 1),
    createdAt: timeOf(event),
    content,
    data: { reason: 'shield' },
  }
  tell({ type: 'assistant_message', stepId: stepIdOf(context), message })
  return { messages: context.messages.concat(message), numbered: context.numbered + 1, error }
})

const noPieces = { pieces: '', spoken: null, output: '' }

/** A forbidden thing can begin in one piece of an answer and end in another: then no piece of it stays. */
function withoutPiece(message: Message, pieces: readonly string[]): Message {
  if (message.role !== 'assistant' || !pieces.includes(message.id)) return message
  const {
    refusal: _refusal,
    reasoning: _reasoning,
    reasoning_details: _details,
    provider_items: _items,
    media: _media,
    annotations: _annotations,
    ...said
  } = message
  return { ...said, content: refusedAnswer, data: { withheld: true } }
}

/** What the shields say of an answer is told, whatever becomes of it. */
export const tellOutputFindings = act((_context, event, tell) => {
  if (event.type === 'xstate.done.actor.outputShields') tellFindings(event.output, 'output', null, tell)
  return undefined
})

/** An answer that the shields have cleared takes its place in the transcript. */
export const releaseAnswer = act((context, event, tell) => {
  const last = context.messages.at(-1)
  if (event.type !== 'xstate.done.actor.outputShields' || context.held === null || last?.role !== 'assistant')
    return undefined
  const { isRefusal, isPiece, stepId, text, reasoning = {} } = context.held
  const { content } = event.output
  const { data: _withheld, ...said } = last
  const cleared: AssistantMessage = isRefusal
    ? { ...said, ...reasoning, content: '', refusal: content }
    : { ...said, ...reasoning, content }
  const message = withCalls(cleared, context.calls)
  const messages = [...context.messages.slice(0, -1), message]
  const { spoken } = context
  const heard = { text: (spoken?.text ?? '') + text, ids: [...(spoken?.ids ?? []), message.id] }
  const { outputProblem = context.held.outputProblem ?? context.outputProblem } = event.output
  const next = {
    outputProblem,
    messages,
    held: null,
    spoken: isPiece ? heard : null,
    ...words(context, isPiece, content),
  }
  const untold = context.untold ?? stepId
  // Shields are going to look at its calls, too.
  if (context.calls.some((call) => call.unchecked)) return { ...next, untold }
  return { ...next, ...tellUntold({ ...context, messages, untold }, tell) }
})

/**
 * A call whose arguments were refused has that as its result; the loop goes on. What the shields have made of the calls
 * takes its place in the transcript, and now they can be told.
 */
export const heedCallShields = act((context, event, tell) => {
  if (event.type !== 'xstate.done.actor.callShields') return undefined
  const screeningOf = screeningsIn(event.output)
  const screenings = new Map(
    uncheckedCalls(context).map((call) => [call.id, unchangeable(call, screeningOf(call))]),
  )
  const checked = context.calls.map((call): BatchCall => {
    const screening = screenings.get(call.id)
    if (screening === undefined) return call
    const looked = { ...lookedAt(call, screening), unchecked: true as const }
    if (looked.result !== undefined || screening.action !== 'block') return looked
    const why = screening.message ?? refusedCall
    const content = call.edited ? `${refusedEdit}: ${why}` : why
    return { ...looked, result: { status: 'blocked', content, durationMs: 0 }, settledAt: timeOf(event) }
  })
  const said = context.messages[context.batchAt]
  const known = checked.map(({ unchecked: _unchecked, ...call }) =>
    screenings.get(call.id)?.action === 'redact' ? writable(call) : call,
  )
  const message = said?.role === 'assistant' ? withCalls(said, known) : undefined
  const messages = message ? context.messages.with(context.batchAt, message) : context.messages
  const told = tellUntold({ ...context, messages, calls: checked }, tell, () => {
    for (const [id, screening] of screenings) tellFindings(screening, 'toolInput', id, tell)
  })
  return { ...told, messages, calls: told.calls.map(({ unchecked: _unchecked, ...call }) => call) }
})

/** A provider carries its call out as it is, or not at all: what must not be in it cannot be taken out. */
function unchangeable({ hosted }: BatchCall, screening: CallScreening): CallScreening {
  if (!hosted || screening.action !== 'redact') return screening
  return { ...screening, action: 'block', message: screening.message ?? refusedCall }
}

/** A call as the shields let it be seen. */
function lookedAt(call: BatchCall, { action, content, name }: Partial<CallScreening>): BatchCall {
  const named = { ...call, ...(name !== undefined && { name }) }
  if (action === 'redact') return { ...named, arguments: content ?? withheldArguments }
  if (action !== 'block') return named
  const { edited: _edited, ...refused } = named
  return { ...refused, arguments: withheldArguments }
}

/** What was redacted can be JSON no more, as when a number was: a message could not be sent with it. */
function writable(call: BatchCall): BatchCall {
  return isJson(call.arguments) ? call : { ...call, arguments: withheldArguments }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return text.trim() === ''
  }
}

/** Finds what the shields said of each call. Nothing said of a call is a refusal: shields fail closed. */
function screeningsIn(output: unknown): (call: BatchCall) => CallScreening {
  const known = new Map((listed(output) as readonly CallScreening[]).map((one) => [one.callId, one]))
  return ({ id }) =>
    known.get(id) ?? {
      callId: id,
      action: 'block',
      message: 'No shield has looked at this call.',
      content: '',
      findings: [],
    }
}

const refusedCall = 'A shield refused the arguments of this call.'
const refusedEdit = 'The user changed the arguments before approving, and they were refused'

/** Results as the shields let them through: now they can be told. */
export const heedResultShields = act((context, event, tell) => {
  if (event.type !== 'xstate.done.actor.resultShields') return undefined
  const screeningOf = screeningsIn(event.output)
  const calls = context.calls.map((call): BatchCall => {
    if (call.result === undefined || !call.unscreened) return call
    const screening = screeningOf(call)
    if (screening.asInput) tellFindings(screening.asInput, 'input', call.id, tell)
    tellFindings(screening, 'toolOutput', call.id, tell)
    const { unscreened: _unscreened, result, ...known } = call
    const now = call.settledAt ?? timeOf(event)
    if (screening.action !== 'block') {
      const { media, ...words } = { ...result, content: screening.content }
      const isKept = media !== undefined && !screening.withoutMedia
      return settled(known, isKept ? { ...words, media } : words, now, tell)
    }
    const { durationMs, status } = result
    if (status === 'rejected') return settled(known, { ...rejectedUnheard, durationMs }, now, tell)
    const content = screening.message ?? 'A shield withheld the result of this call.'
    return settled(known, { status: 'blocked', content, durationMs }, now, tell)
  })
  return { calls }
})

/** Of a refusal a shield can refuse the reason alone. */
const rejectedUnheard = {
  status: 'rejected' as const,
  content: 'Rejected by the user, for a reason that a shield has withheld.',
}

function tellFindings(
  { findings }: Pick<Screening, 'findings'>,
  point: ShieldPoint,
  callId: string | null,
  tell: Tell,
): void {
  for (const { shield, action, message, durationMs } of findings) {
    if (action === 'allow') continue
    tell({ type: 'shield', point, shield, action, message, durationMs, ...(callId !== null && { callId }) })
  }
}

function blockedBecause(event: AgentMachineEvent): string {
  const output: unknown = 'output' in event ? event.output : null
  const outputs: unknown[] = Array.isArray(output) ? output : [output]
  const block = outputs.find((one): one is Screening => (one as Screening | null)?.action === 'block')
  return block?.message ?? 'A shield refused the content.'
}
