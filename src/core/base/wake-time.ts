/** A Date, or milliseconds since the epoch, as the latter; null for anything else, and for a date that is none. */
export function readTime(given: unknown): number | null {
  const at = given instanceof Date ? given.getTime() : given
  return typeof at === 'number' && Math.abs(at) <= 8.64e15 ? at : null
}

/** `2026-05-01 12:00:03 UTC` */
export function formatWakeTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
