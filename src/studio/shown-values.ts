import { truncate } from '../../guards/lib/words.js'
import { memoize } from '../core/base/values.js'
import { scrubSecrets } from '../core/shields/secrets.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { type MediaPart, type Message, readHandoff } from '../../machines/agent/messages.js'
import type { BatchCall } from '../../machines/agent/batch-calls.js'
import { withheldResult } from '../../machines/agent/screening.js'
import { maskMessages } from '../../machines/agent/mask-uncleared.js'
import { describeMedia } from '../core/models/media.js'
import type { LoggedEdit } from '../core/sessions/log/log-record.js'
import { redactEvent } from '../diagram/redact.js'
import type { Grant } from '../../machines/agent/grant.js'
import { isPicture } from './format.js'
import type { Moment } from './session-step.js'

export interface ShownMedia {
  words: string
  /** A `data:` address of a picture. Null if only the description is shown. */
  picture: string | null
}

export interface Decision {
  seq: number
  kind: 'approved' | 'rejected'
  by: string[]
  /** The edited arguments as JSON, or the reason for a rejection. Can be empty. */
  words: string
}

export interface ShownMessage {
  role: Message['role']
  /** The agent that spoke after a handoff. Absent for the session's first agent. */
  speaker?: string
  id: string
  at: number
  /** The record where a fork applies an edit of the message or of its calls' arguments. Null if unknown. */
  forkAt: number | null
  text: string
  media: ShownMedia[]
  reasoning: string
  calls: {
    id: string
    name: string
    arguments: string
    result: string | null
    /** The record where a fork applies another result. Null if there is no such record yet. */
    forkAt: number | null
    media: ShownMedia[]
    status: string | null
    durationMs: number | null
    decision: Decision | null
    edited?: 'arguments' | 'result'
  }[]
  /** `partial`, `internal`, `withheld`, `edited`, `steering`, … */
  marks: string[]
}

/** A tool result can be megabytes long. */
const maxTextLength = 20_000

/** Stands for content that no shield has cleared. */
export const withheldNote = '[withheld: pending shield review]'

/** Without secrets, and truncated. */
export function toShownText(text: string, length = maxTextLength): string {
  return scrubSecrets(truncate(text, length))
}

/** Why an edit is rejected: the user saw `before` truncated and without secrets, which the edit would lose. */
export function findGap(edited: string, before: string): string | null {
  if (before.length > maxTextLength) {
    const [whole, shown] = [before.length, maxTextLength].map((count) => count.toLocaleString('en-US'))
    return (
      `This text has ${whole} characters, and the studio shows only the first ${shown}, so an edit here would lose the rest. ` +
      'Edit it with agent.fork(session, record, { edit }).'
    )
  }
  const gaps = (text: string): number => text.split('[redacted]').length
  if (toShownText(before) === before || gaps(edited) <= gaps(before)) return null
  return (
    "A secret is hidden here. '[redacted]' would become part of the text: write that part out, or leave the text " +
    'unchanged.'
  )
}

/** Plain JSON without secrets, and with long texts and lists cut. */
export function toShownValue(value: unknown, options = { maxText: 4_000, maxItems: 200 }): unknown {
  return redactEvent({ event: value }, options).event
}

export interface GrantNote {
  seq: number
  /** Undefined if unlimited or unknown. */
  uses: number | undefined
  /** Undefined while the session still has the grant. */
  removed?: { grant: Grant; seq: number; at: number }
}

/** Facts about calls that are only in the log, by the message id of the result. */
export interface CallNotes {
  edit: LoggedEdit | undefined
  durations: Map<string, number>
  decisions: Map<string, Decision>
  grants: Map<string, GrantNote>
  /** Records where forks apply edits, by the id of a message or result, or by `run 1` for instructions. */
  forkPoints: Map<string, number>
}

/** Up to record `seq`. `latest` is the minimum number of messages from the end, and `earlier` the number before. */
export function createTranscript(
  { session }: Moment,
  notes: CallNotes,
  { seq = Infinity, latest = Infinity }: { seq?: number; latest?: number } = {},
): { earlier: number; transcript: ShownMessage[] } {
  const { edit } = notes
  const context = session.run?.context ?? null
  const messages = context ? maskMessages(context) : session.state.messages
  const { from, earlier } = findFirstShown(messages, latest)
  const shown: ShownMessage[] = []
  let speaker: string | undefined
  for (const [i, message] of messages.entries()) {
    const assistant = shown.at(-1)
    if (message.role === 'tool') {
      speaker = readHandoff(message.data?.['handoff']) ?? speaker
      if (assistant) shown[shown.length - 1] = addResult(assistant, message, notes)
      continue
    }
    if (i < from) continue
    const plain = addEditMark(toShownMessage(message, speaker, notes), edit)
    shown.push(context !== null && i === context.batchAt ? addBatch(plain, context, notes, seq) : plain)
  }
  return { earlier, transcript: shown }
}

/** Results are not counted. Up to half more than `latest`, so that neighboring moments start alike and pack well. */
function findFirstShown(messages: readonly Message[], latest: number): { from: number; earlier: number } {
  if (messages.length <= latest) return { from: 0, earlier: 0 }
  const visible = [...messages.keys()].filter((i) => messages[i]?.role !== 'tool')
  const over = Math.max(0, visible.length - latest)
  const earlier = over - (over % Math.ceil(latest / 2))
  return { from: earlier === 0 ? 0 : (visible[earlier] ?? 0), earlier }
}

/** Cached, because a message is part of all later moments. */
const shownByMessage = new WeakMap<Message, ShownMessage>()

function toShownMessage(
  message: Exclude<Message, { role: 'tool' }>,
  speaker: string | undefined,
  { forkPoints }: CallNotes,
): ShownMessage {
  const before = shownByMessage.get(message)
  if (before) return before
  const { role, id, createdAt: at, internal, data = {} } = message
  const answer = role === 'assistant' ? message : null
  const refusal = answer?.refusal ?? ''
  const marks = [
    ...(internal ? ['internal'] : []),
    ...(data['partial'] === true ? ['partial'] : []),
    ...(data['withheld'] === true ? ['withheld'] : []),
    ...(refusal === '' ? [] : ['refusal']),
    ...(typeof data['reason'] === 'string' ? [data['reason']] : []),
  ]
  const text = getWords(message)
  const shown: ShownMessage = {
    role,
    ...(answer && speaker !== undefined && { speaker: toShownText(speaker, 200) }),
    id,
    at,
    forkAt: forkPoints.get(id) ?? null,
    text: toShownText(text === '' ? refusal : text),
    media: listMedia(message).map(toShownMedia),
    reasoning: toShownText(answer?.reasoning ?? ''),
    calls: (answer?.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: toShownText(call.function.name, 200),
      arguments: toShownText(call.function.arguments),
      result: null,
      forkAt: null,
      media: [],
      status: null,
      durationMs: null,
      decision: null,
    })),
    marks,
  }
  shownByMessage.set(message, shown)
  return shown
}

export function getWords({ content }: Pick<Message, 'content'>): string {
  if (typeof content === 'string') return content
  return (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function listMedia(message: Exclude<Message, { role: 'tool' }>): MediaPart[] {
  if (message.role === 'assistant') return message.media ?? []
  const parts = Array.isArray(message.content) ? message.content : []
  return parts.filter((part): part is MediaPart => part.type !== 'text')
}

/** Larger pictures are described in words, because a page contains all pictures of a session. */
const longestPicture = 300_000

function toShownMedia(part: MediaPart): ShownMedia {
  const address = part.type === 'image_url' ? part.image_url.url : ''
  const isShown = address.length <= longestPicture && isPicture(address)
  return { words: toShownText(describeMedia(part), 300), picture: isShown ? address : null }
}

function addEditMark(message: ShownMessage, edit: LoggedEdit | undefined): ShownMessage {
  if (edit === undefined || 'instructions' in edit) return message
  if ('message' in edit)
    return edit.message === message.id ? { ...message, marks: [...message.marks, 'edited'] } : message
  if (!message.calls.some(({ id }) => id === edit.call)) return message
  const edited = 'result' in edit ? 'result' : 'arguments'
  return {
    ...message,
    calls: message.calls.map((call) => (call.id === edit.call ? { ...call, edited } : call)),
  }
}

const getResultText = memoize(({ content }: { content: string }) => toShownText(content))

const shownByResult = new WeakMap<Message, { assistant: ShownMessage; shown: ShownMessage }>()

function addResult(
  assistant: ShownMessage,
  message: Extract<Message, { role: 'tool' }>,
  { durations, decisions, forkPoints }: CallNotes,
): ShownMessage {
  const before = shownByResult.get(message)
  if (before?.assistant === assistant) return before.shown
  const status = message.data?.['status']
  const outcome = {
    result: getResultText(message),
    media: (message.media ?? []).map(toShownMedia),
    status: typeof status === 'string' ? status : 'ok',
    durationMs: durations.get(message.id) ?? null,
    decision: decisions.get(message.id) ?? null,
    forkAt: forkPoints.get(message.id) ?? null,
  }
  const shown = {
    ...assistant,
    calls: assistant.calls.map((call) => (call.id === message.tool_call_id ? { ...call, ...outcome } : call)),
  }
  shownByResult.set(message, { assistant, shown })
  return shown
}

function addBatch(
  assistant: ShownMessage,
  { calls, batchNumber }: AgentContext,
  { decisions, forkPoints }: CallNotes,
  seq: number,
): ShownMessage {
  const byId = new Map(calls.map((call, place) => [call.id, { call, place }]))
  return {
    ...assistant,
    calls: assistant.calls.map((call) => {
      const now = byId.get(call.id)
      if (!now) return call
      const id = `m${batchNumber + 1 + now.place}`
      const decision = decisions.get(id)
      // The decision may belong to a later record than the one shown.
      const isMade = decision !== undefined && decision.seq <= seq
      const outcome = toOutcome(now.call)
      const forkAt = outcome.result === undefined ? null : (forkPoints.get(id) ?? null)
      return { ...call, ...outcome, forkAt, decision: isMade ? decision : null }
    }),
  }
}

function toOutcome(call: BatchCall): Partial<ShownMessage['calls'][number]> {
  const { result, unscreenedResult, started, needs } = call
  if (result === undefined) {
    const waits = needs === 'nobody' || needs === 'child' ? 'waits' : `waiting for ${needs}`
    return { status: started ? 'running' : waits }
  }
  if (unscreenedResult) return { status: 'withheld', result: withheldResult, durationMs: result.durationMs }
  return {
    status: result.status,
    result: getResultText(result),
    media: (result.media ?? []).map(toShownMedia),
    durationMs: result.durationMs,
  }
}
