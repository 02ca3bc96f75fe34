import type { Fit, Gap } from '../../../../machines/agent/fit.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { type FitSituation, formatGapMarker, isValidGap, listLeftOut, planGap } from '../gap.js'
import { fitCompact, fitWithNote } from '../strategies.js'
export interface SummaryPlan {
  readonly gap: Gap
  readonly fresh: readonly Message[]
  readonly earlier: string | null
  /** Maximum tokens of the summary: an eighth of the window, but at most 4,096. */
  readonly limit: number
}

/** Reserves space for a summary instead of the marker. Messages already summarized are not sent again. */
export function planSummary(situation: FitSituation): SummaryPlan | null {
  const limit = Math.min(4_096, Math.floor(situation.window / 8))
  const note = limit + situation.noteSize(formatTitle(situation.messages.length))
  const gap = planGap(situation, { keepFirst: true, note }) ?? planGap(situation, { keepFirst: false, note })
  if (gap === null) return null
  return { gap, fresh: listFresh(situation, gap), earlier: findEarlierSummary(situation), limit }
}

export function fitWithSummary({ messages }: FitSituation, gap: Gap, summary: string): Fit {
  const note = `${formatTitle(listLeftOut(messages, gap).length)}${summary}`
  return { ...gap, note, summary: { ...gap, length: note.length } }
}

/** The fallback if no new summary was written. Works like `compact`, but keeps the previous summary. */
export function fitWithoutSummary(situation: FitSituation): Fit | null {
  const earlier = findEarlierSummary(situation)
  const summary = situation.previous?.summary
  if (earlier === null || summary === undefined) return fitCompact(situation)
  const fit = fitWithNote(situation, { keepFirst: true }, (gap) => {
    const fresh = listFresh(situation, gap)
    return fresh.length === 0 ? earlier : `${earlier}\n\n${formatGapMarker(fresh)}`
  })
  return fit ? { ...fit, summary } : fitCompact(situation)
}

function formatTitle(count: number): string {
  return `[Notes on ${count} earlier messages of this conversation, which are omitted here to fit the context window:]\n`
}

function findEarlierSummary({ messages, previous }: FitSituation): string | null {
  const summary = previous?.summary
  return summary && isValidGap(messages, summary) ? (previous?.note?.slice(0, summary.length) ?? null) : null
}

function listFresh(situation: FitSituation, gap: Gap): Message[] {
  const { messages, previous } = situation
  const held =
    findEarlierSummary(situation) !== null && previous?.summary ? listLeftOut(messages, previous.summary) : []
  const known = new Set(held)
  return listLeftOut(messages, gap).filter((message) => !known.has(message))
}
