/** `2026-05-01 12:00:03` (UTC) */
export function formatTimestamp(at: number): string {
  return formatIsoTime(at)?.slice(0, 19).replace('T', ' ') ?? '?'
}

/** `2026-05-01T12:00:03.120Z`; null for an invalid time, which only a damaged store has. */
export function formatIsoTime(at: number): string | null {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
