import type { Gap } from '../../../machines/agent/fit.js'
import { isBoundary, isInGap } from './gap.js'
import type { FitSituation } from './fit-strategy.js'
import type { Message } from '../../../machines/agent/messages.js'

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
