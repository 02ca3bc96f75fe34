/** A relative time: `just now`, `5 min ago`, `3 h ago`, `2 days ago`; the date (UTC) after a week. */
export function formatAgo(at: number, now: number): string {
  const minutes = Math.floor((now - at) / 60_000)
  if (minutes < 1) return 'just now'
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return `${hours} h ago`
  const days = Math.floor(hours / 24)
  if (days < 7) return days === 1 ? 'yesterday' : `${days} days ago`
  return formatIsoTime(at)?.slice(0, 10) ?? '?'
}

/** `2026-05-01 12:00:03` (UTC) */
export function formatTimestamp(at: number): string {
  return formatIsoTime(at)?.slice(0, 19).replace('T', ' ') ?? '?'
}

/** `2026-05-01T12:00:03.120Z`; null for an invalid time, which only a damaged store has. */
export function formatIsoTime(at: number): string | null {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
