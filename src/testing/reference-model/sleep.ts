import { type Json, type Moment, type Run, isEnd } from '../../../spec/run.js'
import type { Row } from './walk-table.js'

/** Until when a run sleeps, and what its calls have asked for. */
export interface Sleep {
  wakeAt: number | null
  /** The dates of results and of sub-agents that sleep, by their calls. */
  asked: Record<string, number>
}

export const noSleep: Sleep = { wakeAt: null, asked: {} }

/** As a snapshot has it. */
export function readSleep({ wakeAt = null, calls }: Json): Sleep {
  const dates = calls.flatMap(({ id, result, wakeAt: child }: Json) => {
    const at = result === undefined ? child : result.status === 'ok' ? result.wakeAt : undefined
    return at === undefined ? [] : [[id, at]]
  })
  return { wakeAt, asked: Object.fromEntries(dates) as Sleep['asked'] }
}

export const isAsleep = ({ wakeAt }: Sleep, now: number): boolean => wakeAt !== null && now < wakeAt
export const isForLater = ({ event, now }: Moment): boolean => typeof event.at === 'number' && event.at > now

/** What a row does to the sleep of a run. */
export function moveSleep(before: Sleep, run: Run, next: Run, moment: Moment, row: Row): Sleep {
  const { event, now } = moment
  let { wakeAt } = before
  const asked = { ...before.asked }
  const later = (at: number): number => Math.max(wakeAt ?? at, at)
  if (row.changes.includes('takeReport')) {
    const at =
      row.event === 'CHILD_RESTS' ? event.wakeAt : event.result?.status === 'ok' && event.result.wakeAt
    delete asked[event.callId]
    if (typeof at === 'number') asked[event.callId] = at
  }
  if (row.event === 'done resultShields')
    for (const call of run.calls)
      if (call.unscreened && next.calls.some(({ id, failed }) => id === call.id && failed === true))
        delete asked[call.id]
  const isOver = row.place === 'batchOver' && row.to === 'checkingLimits'
  const isForChildren = row.place === 'dispatching' && row.to === 'PAUSED'
  if (isOver || isForChildren)
    for (const { id, done } of run.calls) {
      const at = asked[id]
      if (at !== undefined && (done ? at > now : isForChildren)) wakeAt = later(at)
    }
  if (row.changes.includes('tellSteering') && run.steering > next.steering) wakeAt = null
  if (run.place === 'PAUSED' && next.place !== 'PAUSED') wakeAt = null
  // A run that rests is put off to that date, whether it is sooner or later than the one before.
  if (row.event === 'RESUME' && isForLater(moment))
    wakeAt = run.place === 'PAUSED' ? event.at : later(event.at)
  if (row.conditions.includes('waitsForBudget')) wakeAt = later(event.error.wakeAt)
  const isOthers = next.place === 'PAUSED' && row.event !== 'RESUME' && (run.pausing || run.stop !== null)
  if (isEnd(next.place) || isOthers || (row.event === 'PAUSE' && run.place === 'backingOff')) wakeAt = null
  return { wakeAt, asked: next.calls.length === 0 ? {} : asked }
}
