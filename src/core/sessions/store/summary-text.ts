import { isTags } from './session-tags.js'
import type { SessionSummary } from './store.js'

export const stringifySummary = (summary: SessionSummary | undefined): string | null =>
  summary === undefined ? null : JSON.stringify(summary)

/** A summary that cannot be read is none: one bad row must not hide all sessions. */
export function parseSummary(text: unknown): SessionSummary | null {
  if (typeof text !== 'string') return null
  try {
    const summary: unknown = JSON.parse(text)
    return isSummary(summary) ? summary : null
  } catch {
    return null
  }
}

function isSummary(value: unknown): value is SessionSummary {
  if (typeof value !== 'object' || value === null) return false
  const { name, agent, tags, parent, title, state, reason, wakeAt, runs, messages, totalTokens, cost } =
    value as Record<string, unknown>
  return (
    [name, agent, parent].every((word) => word === undefined || typeof word === 'string') &&
    (tags === undefined || isTags(tags)) &&
    typeof title === 'string' &&
    [state, reason].every((word) => word === null || typeof word === 'string') &&
    [runs, messages, totalTokens].every(Number.isFinite) &&
    (wakeAt === undefined || Number.isFinite(wakeAt)) &&
    (cost === null || Number.isFinite(cost))
  )
}
