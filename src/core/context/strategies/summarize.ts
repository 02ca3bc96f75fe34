import type { Fit, Gap } from '../../../../machines/agent/fit.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { isGapOf, leftOut } from '../gap.js'
import { marker } from '../marker.js'
import { planGap } from '../plan-gap.js'
import type { Situation } from '../situation.js'
import { compact, withNote } from './plain.js'

/** A summary to be made: of what is newly left out, and of the summary before it. */
export interface SummaryPlan {
  readonly gap: Gap
  /** What no summary holds yet. */
  readonly fresh: readonly Message[]
  /** The summary of what was left out before. */
  readonly earlier: string | null
  /** Tokens that the summary may have: an eighth of the window, at most 4,096. */
  readonly limit: number
}

/**
 * As `compact`, with room for a summary in place of the marker; null when there is none. Incremental: nothing that is
 * summed up already is read again.
 */
export function planSummary(situation: Situation): SummaryPlan | null {
  const limit = Math.min(4_096, Math.floor(situation.window / 8))
  const note = limit + situation.noteSize(titleOf(situation.messages.length))
  const gap = planGap(situation, { keepFirst: true, note }) ?? planGap(situation, { keepFirst: false, note })
  if (gap === null) return null
  return { gap, fresh: freshIn(situation, gap), earlier: earlierIn(situation), limit }
}

/** The fit with its summary. */
export function withSummary({ messages }: Situation, gap: Gap, summary: string): Fit {
  const note = `${titleOf(leftOut(messages, gap).length)}${summary}`
  return { ...gap, note, summary: { ...gap, length: note.length } }
}

/** What is done when there is no summary: as `compact`, but what was summed up before stays so. */
export function withoutSummary(situation: Situation): Fit | null {
  const earlier = earlierIn(situation)
  const summary = situation.previous?.summary
  if (earlier === null || summary === undefined) return compact(situation)
  const fit = withNote(situation, { keepFirst: true }, (gap) => {
    const fresh = freshIn(situation, gap)
    return fresh.length === 0 ? earlier : `${earlier}\n\n${marker(fresh)}`
  })
  return fit ? { ...fit, summary } : compact(situation)
}

function titleOf(count: number): string {
  return `[Notes on ${count} earlier messages of this conversation, which are left out here to fit the context window:]\n`
}

function earlierIn({ messages, previous }: Situation): string | null {
  const summary = previous?.summary
  return summary && isGapOf(messages, summary) ? (previous?.note?.slice(0, summary.length) ?? null) : null
}

function freshIn(situation: Situation, gap: Gap): Message[] {
  const { messages, previous } = situation
  const held = earlierIn(situation) !== null && previous?.summary ? leftOut(messages, previous.summary) : []
  const known = new Set(held)
  return leftOut(messages, gap).filter((message) => !known.has(message))
}
