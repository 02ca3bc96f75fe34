import type { Gap, Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'
import { truncate } from '../../../guards/lib/cut.js'

/** A request that has outgrown the window, as a strategy sees it. */
export interface FitSituation {
  readonly messages: readonly Message[]
  /** Tokens of each message. */
  readonly sizes: readonly number[]
  /** Tokens of what is no message of the transcript: instructions, tools, nudges. */
  readonly fixed: number
  /** Tokens that a request may have. */
  readonly window: number
  /** The fit that the request has outgrown. What it left out never comes back. */
  readonly previous: Fit | null
  /** Tokens of a note, as a message. */
  readonly noteSize: (note: string) => number
}

/** Whether a gap, which may come from a stored session, can be cut out of a transcript without breaking it. */
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

/** Whether a transcript can be parted before a message: a tool result stays with its call and the other results. */
export function isBoundary(messages: readonly Message[], index: number): boolean {
  return messages[index]?.role !== 'tool'
}

/** Whether a gap leaves a message out. */
export function isInGap({ head, from, keep = [] }: Gap, index: number): boolean {
  return index >= head && index < from && !keep.includes(index)
}

/** The messages that a gap leaves out. */
export function listLeftOut(messages: readonly Message[], gap: Gap): Message[] {
  return messages.filter((_, index) => isInGap(gap, index))
}

/** Tools that a marker names; of the others it says how many there are. */
const maxNames = 8
const maxNameLength = 64

/** What stands in place of dropped messages: how many there were, of whom, which tools were called, and when. */
export function formatGapMarker(dropped: readonly Message[]): string {
  const nouns = { user: 'user message', assistant: 'answer', tool: 'tool result', system: 'system message' }
  const whose = Object.entries(nouns).flatMap(([role, noun]) => {
    const count = dropped.filter((message) => message.role === role).length
    return count === 0 ? [] : [formatCount(count, noun)]
  })
  const tools = formatToolCounts(dropped)
  const said = [
    `${formatCount(dropped.length, 'message')} of this conversation left out here to fit the context window`,
    whose.join(', '),
    ...(tools === '' ? [] : [`tools called: ${tools}`]),
    formatTimeSpan(dropped),
  ]
  return `[${said.join('; ')}.]`
}

function formatToolCounts(dropped: readonly Message[]): string {
  const times = new Map<string, number>()
  for (const message of dropped) {
    const calls = (message.role === 'assistant' && message.tool_calls) || []
    for (const { function: called } of calls) times.set(called.name, (times.get(called.name) ?? 0) + 1)
  }
  const named = [...times].slice(0, maxNames).map(([name, n]) => `${truncate(name, maxNameLength)} ×${n}`)
  const others = times.size - maxNames
  return [...named, ...(others > 0 ? [formatCount(others, 'other tool')] : [])].join(', ')
}

function formatTimeSpan(dropped: readonly Message[]): string {
  const [first, last] = [dropped[0], dropped.at(-1)].map((message) => formatTime(message?.createdAt ?? 0))
  return first === last ? `at ${first}` : `from ${first} to ${last}`
}

/** A time that is no valid date (in a session from elsewhere) is shown as it is. */
function formatTime(createdAt: number): string {
  const date = new Date(createdAt)
  return Number.isNaN(date.getTime()) ? String(createdAt) : date.toISOString()
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export interface GapDemands {
  /** Whether the first user message stays, unless it was left out before. */
  keepFirst: boolean
  /** Tokens for a note in place of the gap; 0: there is none. */
  note: number
}

/** How much of the window a new fit fills: the rest is room to grow, so that caches and summaries last some steps. */
const fill = 3 / 4

/**
 * The smallest gap that brings a request down to three quarters of its window; null when no gap makes it fit.
 *
 * System messages at the beginning, the newest user message (with what steered it since) and the newest unit always
 * stay. What comes after the newest user message is touched only when there is no other way to fit, and then the oldest
 * goes first, a call always with its results. The rest of the request never begins with an answer or a result.
 */
export function planGap(situation: FitSituation, { keepFirst, note }: GapDemands): Gap | null {
  const { messages, sizes, fixed, window, previous } = situation
  const { lead, first, opening, said, latest } = findLandmarks(messages)
  const withFirst = keepFirst && (previous === null || !isInGap(previous, first))
  const head = withFirst && first === lead ? lead + 1 : lead
  const staying = [...new Set(withFirst ? [first, ...said] : said)].filter((index) => index >= head)
  const fewest = Math.max(head + 1, Math.min(previous?.from ?? 0, latest))

  let size = fixed + note + sizes.reduce((sum, tokens) => sum + tokens, 0)
  let fitting: Gap | null = null
  for (let from = head + 1; from <= latest; from++) {
    if (!staying.includes(from - 1)) size -= sizes[from - 1] ?? 0
    if (from < fewest || size > window || !isBoundary(messages, from)) continue
    const isInTurn = opening !== -1 && from > opening
    if (isInTurn && fitting !== null && fitting.from <= opening) return fitting
    const kept = staying.filter((index) => index < from)
    const opensWell = note > 0 || head > lead || kept.length > 0 || messages[from]?.role === 'user'
    if (!opensWell) continue
    fitting = toGap(head, from, kept)
    if (size <= window * fill) return fitting
  }
  return fitting
}

/** Kept messages right after the head belong to it. */
function toGap(head: number, from: number, kept: readonly number[]): Gap {
  const joining = kept.findIndex((index, i) => index !== head + i)
  const count = joining === -1 ? kept.length : joining
  return { head: head + count, from, ...(count < kept.length && { keep: kept.slice(count) }) }
}

/** What a request has at least, under every strategy that leaves anything out. */
export function getLeastSize({ messages, sizes, fixed }: FitSituation): number {
  const { lead, said, latest } = findLandmarks(messages)
  return sizes.reduce(
    (sum, size, index) => (index < lead || index >= latest || said.includes(index) ? sum + size : sum),
    fixed,
  )
}

/** The messages of a transcript that a fit is built around. */
export interface Landmarks {
  /** How many system messages it begins with; they are never left out. */
  lead: number
  /** The first user message; -1: there is none. */
  first: number
  /** The newest user message that opened a turn; -1: there is none. Steering and the loop's own words open none. */
  opening: number
  /** The opening, and what the user has steered with since. */
  said: readonly number[]
  /** Where the newest unit begins: a message, or a message with calls and all their results. */
  latest: number
}

export function findLandmarks(messages: readonly Message[]): Landmarks {
  const firstOther = messages.findIndex(({ role }) => role !== 'system')
  const opensTurn = messages.findLastIndex((message) => isFromUser(message) && !isSteering(message))
  const opening = opensTurn >= 0 ? opensTurn : messages.findLastIndex(({ role }) => role === 'user')
  const steering = messages.flatMap((message, i) => (i > opening && isFromUser(message) ? [i] : []))
  return {
    lead: firstOther === -1 ? messages.length : firstOther,
    first: messages.findIndex(({ role }) => role === 'user'),
    opening,
    said: opening === -1 ? steering : [opening, ...steering],
    latest: messages.findLastIndex(({ role }) => role !== 'tool'),
  }
}

function isFromUser({ role, internal }: Message): boolean {
  return role === 'user' && internal !== true
}

function isSteering({ data }: Message): boolean {
  return data?.['reason'] === 'steering'
}
