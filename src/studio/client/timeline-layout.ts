import type { Bar, ChartTransition, RecordRow } from '../protocol.js'
import type { Axis, PlacedBar } from './timeline-axis.js'

/** Consecutive records in one state. */
export interface Stretch {
  /** `RUNNING.asking`: two parts at most. `SLEEPING` for a run that is paused until a date. */
  state: string
  /** Record indexes, `to` excluded. */
  from: number
  to: number
}

/** Splits the records into stretches of one state, by its regions. */
export function listStretches(rows: readonly RecordRow[]): Stretch[] {
  const stretches: Stretch[] = []
  for (const [index, row] of rows.entries()) {
    const state = (row.to[0] ?? row.state).split('.').slice(0, 2).join('.')
    const isAsleep = row.wakeAt !== undefined
    const name = isAsleep ? 'SLEEPING' : state.startsWith('RUNNING') ? state : (state.split('.')[0] ?? state)
    const last = stretches.at(-1)
    if (last?.state === name) last.to = index + 1
    else stretches.push({ state: name, from: index, to: index + 1 })
  }
  return stretches
}

const [fastestMs, slowestMs] = [120, 900]

/** Milliseconds until the record after `place` is played: as much time as went by, within bounds. */
export function findPlayDelay(rows: readonly Pick<RecordRow, 'at'>[], place: number): number {
  const gap = (rows[place + 1]?.at ?? 0) - (rows[place]?.at ?? 0)
  return Math.min(slowestMs, Math.max(fastestMs, gap))
}

const maxLines = 4

/** Puts overlapping bars of a lane on different lines; more than four share the last line. */
export function placeBars(
  bars: readonly Bar[],
  placeOf: (seq: number) => number,
  count: number,
): PlacedBar[] {
  const ends: number[] = []
  return bars
    .map((bar) => ({
      bar,
      from: placeOf(bar.fromSeq),
      to: bar.toSeq === null ? count : Math.max(placeOf(bar.toSeq), placeOf(bar.fromSeq) + 0.6),
    }))
    .toSorted((a, b) => a.from - b.from)
    .map((placed) => {
      const free = ends.findIndex((end) => end <= placed.from)
      const line = free === -1 ? Math.min(ends.length, maxLines - 1) : free
      ends[line] = Math.max(ends[line] ?? 0, placed.to)
      return { ...placed, line }
    })
}

/** The width of what can be told apart, as a share of the timeline. */
export const grain = 1 / 1600

/** Bars that are narrower have no room for a word. */
const narrow = 6 / 1000

/** A bar as it is drawn. `merged`: the bars that it stands for; null for one. */
export interface SeenBar extends PlacedBar {
  left: number
  right: number
  merged: Bar[] | null
}

/**
 * The bars in sight. Narrow ones that touch on a line are drawn as one: they cannot be told apart. Those that have failed merge
 * with one another only.
 */
export function listSeenBars(placed: readonly PlacedBar[], { span }: Pick<Axis, 'span'>): SeenBar[] {
  const seen: SeenBar[] = []
  const lastOf = new Map<string, SeenBar>()
  for (const one of placed) {
    const [left, right] = span(one)
    if (right < 0 || left > 1) continue
    const isNarrow = right - left < narrow
    const kind = `${one.line} ${one.bar.status}`
    const last = lastOf.get(kind)
    if (isNarrow && last && left <= last.right + grain) {
      last.right = Math.max(last.right, right)
      last.merged ??= [last.bar]
      last.merged.push(one.bar)
      continue
    }
    const bar: SeenBar = { ...one, left, right, merged: null }
    seen.push(bar)
    if (isNarrow) lastOf.set(kind, bar)
    else lastOf.delete(kind)
  }
  return seen
}

/** The index of the first record of the next or previous step. */
export function findStepStart(rows: readonly RecordRow[], place: number, by: 1 | -1): number {
  const isStart = (at: number): boolean => {
    const [row, before] = [rows[at], rows[at - 1]]
    return row !== undefined && (before === undefined || before.step !== row.step || before.run !== row.run)
  }
  for (let at = place + by; at > 0 && at < rows.length; at += by) if (isStart(at)) return at
  return by > 0 ? rows.length - 1 : 0
}

/** Replaces records by newer ones, from the first new one on. */
export function mergeRows(rows: readonly RecordRow[], came: readonly RecordRow[]): RecordRow[] {
  const [first] = came
  if (!first) return [...rows]
  return [...rows.filter(({ seq }) => seq < first.seq), ...came]
}

/** Replaces bars by newer ones with the same id, and appends the others. */
export function mergeBars(bars: readonly Bar[], came: readonly Bar[]): Bar[] {
  const newer = new Map(came.map((bar) => [bar.id, bar]))
  const kept = bars.map((bar) => {
    const other = newer.get(bar.id)
    newer.delete(bar.id)
    return other ?? bar
  })
  return [...kept, ...newer.values()]
}

/** All states of a record, including passed and outer states. */
export function listStates(
  { to, taken }: Pick<RecordRow, 'to' | 'taken'>,
  transitions: ReadonlyMap<string, ChartTransition>,
): Set<string> {
  const passed = taken.flatMap((id) => [transitions.get(id)?.source ?? '', transitions.get(id)?.target ?? ''])
  return new Set([...to, ...passed].flatMap(listAncestors))
}

/** `a.b.c`, `a.b` and `a`; none for the machine itself. */
export function listAncestors(path: string): string[] {
  if (path === '' || path === '(root)') return []
  return path.split('.').map((_, index, parts) => parts.slice(0, index + 1).join('.'))
}
