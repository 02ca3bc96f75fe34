import type { DayView, SessionRow } from './protocol.js'

const maxDays = 30

const failedStates = new Set(['ERROR', 'BLOCKED', 'TIMED_OUT', 'MAX_STEPS', 'BUDGET_EXCEEDED'])

/** Why a session failed: it ended without an answer, a guard halted it, or its log is damaged. */
function findFailure({ state, reason, wakeAt, standing }: SessionRow): string | null {
  if (standing === 'damaged') return 'damaged'
  const isHalted = state === 'PAUSED' && reason !== 'paused' && wakeAt === null
  return isHalted || failedStates.has(state ?? '') ? (reason ?? 'unknown') : null
}

/** What sessions did by day of UTC, the last 30 days in which one was written: their cost, and why they failed. */
export function countDays(found: readonly { row: SessionRow }[]): DayView[] {
  const dayMs = 86_400_000
  const days = new Map<number, DayView>()
  let newest = -Infinity
  for (const { row } of found) newest = Math.max(newest, Math.floor(row.updatedAt / dayMs))
  if (newest === -Infinity) return []
  for (const { row } of found) {
    const number = Math.floor(row.updatedAt / dayMs)
    // What a sub-agent costs is in what its session costs.
    if (number <= newest - maxDays || row.parent !== null) continue
    const day = days.get(number) ?? createDay(number * dayMs)
    days.set(number, day)
    day.sessions += 1
    day.cost += row.cost ?? 0
    const failure = findFailure(row)
    if (failure !== null) day.failures[failure] = (day.failures[failure] ?? 0) + 1
  }
  if (days.size === 0) return []
  const first = newest - maxDays + 1
  return Array.from({ length: maxDays }, (_, i) => days.get(first + i) ?? createDay((first + i) * dayMs))
}

const createDay = (at: number): DayView => ({
  day: new Date(at).toISOString().slice(0, 10),
  sessions: 0,
  cost: 0,
  failures: {},
})
