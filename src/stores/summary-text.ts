import type { SessionSummary } from './store.js'

export const summaryText = (summary: SessionSummary | undefined): string | null =>
  summary === undefined ? null : JSON.stringify(summary)

/** A summary that cannot be read is none: one bad row must not hide all sessions. */
export function summaryOf(text: unknown): SessionSummary | null {
  if (typeof text !== 'string') return null
  try {
    return JSON.parse(text) as SessionSummary
  } catch {
    return null
  }
}
