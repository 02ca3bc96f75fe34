import type { Gap, Fit } from '../../../machines/agent/fit.js'
import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import { truncate } from '../../../guards/lib/words.js'
import { readTime } from '../base/clock.js'
import { isTurnOpening } from '../sessions/find-turn.js'

export interface FitSituation {
  readonly messages: readonly Message[]
  readonly sizes: readonly number[]
  readonly fixed: number
  readonly window: number
  /** The fit that the request has outgrown. Messages that it omitted stay omitted. */
  readonly previous: Fit | null
  readonly noteSize: (note: string) => number
}

/** Whether a gap can be removed from a transcript without breaking it. The gap may come from a stored session. */
export function isValidGap(messages: readonly Message[], { head, from, keep = [] }: Gap): boolean {
  return (
    [head, from].every(Number.isInteger) &&
    head >= 0 &&
    head <= from &&
    from <= messages.length &&
    isBoundary(messages, head) &&
    isBoundary(messages, from) &&
    Array.isArray(keep) &&
    keep.every((index, i) => index > (keep[i - 1] ?? head - 1) && index < from) &&
    keep.every((index) => messages[index]?.role === 'user')
  )
}

/** Whether a transcript can be split before a message. Tool results must stay with their call and the other results. */
function isBoundary(messages: readonly Message[], index: number): boolean {
  return messages[index]?.role !== 'tool'
}

export function isInGap({ head, from, keep = [] }: Gap, index: number): boolean {
  return index >= head && index < from && !keep.includes(index)
}

export function listLeftOut(messages: readonly Message[], gap: Gap): Message[] {
  return messages.filter((_, index) => isInGap(gap, index))
}

/** Maximum number of tools that a marker names. Further tools are only counted. */
const maxNames = 8
const maxNameLength = 64

export function formatGapMarker(dropped: readonly Message[]): string {
  const nouns = { user: 'user message', assistant: 'answer', tool: 'tool result', system: 'system message' }
  const whose = Object.entries(nouns).flatMap(([role, noun]) => {
    const count = dropped.filter((message) => message.role === role).length
    return count === 0 ? [] : [formatCount(count, noun)]
  })
  const tools = formatToolCounts(dropped)
  const parts = [
    `${formatCount(dropped.length, 'message')} of this conversation omitted here to fit the context window`,
    whose.join(', '),
    ...(tools === '' ? [] : [`tools called: ${tools}`]),
    formatTimeSpan(dropped),
  ]
  return `[${parts.join('; ')}.]`
}

export function listCalls(message: Message): readonly ToolCall[] {
  return (message.role === 'assistant' && message.tool_calls) || []
}

function formatToolCounts(dropped: readonly Message[]): string {
  const times = new Map<string, number>()
  for (const { function: called } of dropped.flatMap(listCalls))
    times.set(called.name, (times.get(called.name) ?? 0) + 1)
  const named = [...times].slice(0, maxNames).map(([name, n]) => `${truncate(name, maxNameLength)} ×${n}`)
  const others = times.size - maxNames
  return [...named, ...(others > 0 ? [formatCount(others, 'other tool')] : [])].join(', ')
}

function formatTimeSpan(dropped: readonly Message[]): string {
  const [first, last] = [dropped[0], dropped.at(-1)].map((message) => formatTime(message?.createdAt ?? 0))
  return first === last ? `at ${first}` : `from ${first} to ${last}`
}

/** Formats a time. An invalid date, possible in an external session, is shown unchanged. */
function formatTime(createdAt: number): string {
  return readTime(createdAt) === null ? String(createdAt) : new Date(createdAt).toISOString()
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export interface GapDemands {
  /** Whether to keep the first user message, unless it was already omitted. */
  keepFirst: boolean
  note: number
}

/** A new fit fills this share of the window. The remaining space keeps caches and summaries valid for several steps. */
const fill = 3 / 4

/**
 * The smallest gap that reduces a request to three quarters of its window, or null if no gap makes it fit.
 *
 * Leading system messages, the newest user message (with its steering messages) and the newest unit are never removed.
 * Messages after the newest user message are removed only as a last resort, oldest first, with calls removed together
 * with their results. The remaining messages never start with an answer or a result.
 */
export function planGap(situation: FitSituation, { keepFirst, note }: GapDemands): Gap | null {
  const { messages, sizes, fixed, window, previous } = situation
  const { lead, first, opening, userIndices, latest } = findLandmarks(messages)
  const withFirst = keepFirst && (previous === null || !isInGap(previous, first))
  const head = withFirst && first === lead ? lead + 1 : lead
  const wanted = new Set(withFirst ? [first, ...userIndices] : userIndices)
  const staying = [...wanted].filter((index) => index >= head)
  const fewest = Math.max(head + 1, Math.min(previous?.from ?? 0, latest))

  let size = fixed + note + sizes.reduce((sum, tokens) => sum + tokens, 0)
  let fitting: Gap | null = null
  for (let from = head + 1; from <= latest; from++) {
    if (!staying.includes(from - 1)) size -= sizes[from - 1] ?? 0
    if (from < fewest || size > window || !isBoundary(messages, from)) continue
    const isInTurn = opening !== -1 && from > opening
    if (isInTurn && fitting !== null && fitting.from <= opening) return fitting
    const keep = staying.filter((index) => index < from)
    const opensWell = note > 0 || head > lead || keep.length > 0 || messages[from]?.role === 'user'
    if (!opensWell) continue
    fitting = toGap(head, from, keep)
    if (size <= window * fill) return fitting
  }
  return fitting
}

function toGap(head: number, from: number, keep: readonly number[]): Gap {
  const joining = keep.findIndex((index, i) => index !== head + i)
  const count = joining === -1 ? keep.length : joining
  return { head: head + count, from, ...(count < keep.length && { keep: keep.slice(count) }) }
}

/** The minimum size of a request under any strategy that omits messages. */
export function getLeastSize({ messages, sizes, fixed }: FitSituation): number {
  const { lead, userIndices, latest } = findLandmarks(messages)
  return sizes.reduce(
    (sum, size, index) => (index < lead || index >= latest || userIndices.includes(index) ? sum + size : sum),
    fixed,
  )
}

export function findLandmarks(messages: readonly Message[]) {
  const firstOther = messages.findIndex(({ role }) => role !== 'system')
  const opensTurn = messages.findLastIndex(isTurnOpening)
  const opening = opensTurn >= 0 ? opensTurn : messages.findLastIndex(({ role }) => role === 'user')
  const steering = messages.flatMap(({ role, internal }, i) =>
    i > opening && role === 'user' && !internal ? [i] : [],
  )
  return {
    /** Number of leading system messages, which are never omitted. */
    lead: firstOther === -1 ? messages.length : firstOther,
    first: messages.findIndex(({ role }) => role === 'user'),
    /** Index of the newest user message that started a turn, or -1. Steering and internal messages do not start turns. */
    opening,
    /** Indices of the opening message and of the steering messages after it. */
    userIndices: opening === -1 ? steering : [opening, ...steering],
    /** The start of the newest unit. A unit is a message together with the results of its calls. */
    latest: messages.findLastIndex(({ role }) => role !== 'tool'),
  }
}
