import type { Gap } from '../../../machines/agent/fit.js'
import { isBoundary, isInGap } from './gap.js'
import { findLandmarks } from './transcript-landmarks.js'
import type { FitSituation } from './fit-strategy.js'

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
  return { head: head + count, from, ...(count < kept.length && { kept: kept.slice(count) }) }
}

/** What a request has at least, under every strategy that leaves anything out. */
export function getLeastSize({ messages, sizes, fixed }: FitSituation): number {
  const { lead, said, latest } = findLandmarks(messages)
  return sizes.reduce(
    (sum, size, index) => (index < lead || index >= latest || said.includes(index) ? sum + size : sum),
    fixed,
  )
}
