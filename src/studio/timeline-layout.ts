import { formatDuration } from '../core/format/format-words.js'
import { listAncestors } from './format.js'
import type { Bar, ChartTransition, ChartView, RecordRow, SessionView } from './protocol.js'

export interface PlacedBar {
  bar: Bar
  from: number
  to: number
  line: number
}

/** Positions on the timeline, from 0 (left) to 1 (right). */
export interface Axis {
  at(place: number): number
  /** The left edge of the stretch that starts with this record. For the number of records, returns the right end. */
  edge(place: number): number
  span(placed: Pick<PlacedBar, 'bar' | 'from' | 'to'>): readonly [from: number, to: number]
  placeAt(x: number): number
  ticks: readonly { x: number; text: string }[]
  /** Idle periods that are drawn shorter. */
  cuts: readonly { from: number; to: number; ms: number }[]
}

export function createRecordAxis(rows: readonly RecordRow[]): Axis {
  const count = Math.max(1, rows.length)
  const share = (place: number): number => place / count
  return {
    at: (place) => share(place + 0.5),
    edge: share,
    span: ({ from, to }) => [share(from + 0.5), share(from + 0.5 + Math.max(0.5, to - from))],
    placeAt: (x) => clampPlace(Math.floor(x * count), rows),
    ticks: createTicks(
      rows.length < mostTicks ? rows.map((_, place) => place) : spreadPlaces(rows.length),
      rows,
      (place) => share(place + 0.5),
    ),
    cuts: [],
  }
}

/** The largest share of the width for one idle period. */
const shareOfRest = 0.1

/** Room after the last record for open bars. */
const roomAtEnd = 0.04

/** Waits for people and time without a process are shortened. `now` is the end of the axis of an active run. */
export function createTimeAxis(rows: readonly RecordRow[], gaps: SessionView['gaps'], now?: number): Axis {
  const last = rows.at(-1)
  const isActive = now !== undefined && last !== undefined && now > last.at && atWork.has(last.state)
  const points = isActive ? [...rows, { at: now, state: last.state }] : rows
  const lengths = points.slice(1).map((row, i) => {
    const before = points[i] ?? row
    const ms = Math.max(0, row.at - before.at)
    const isLost = gaps.some(({ from, to }) => from <= before.at && to >= row.at)
    return { ms, isRest: isLost || !atWork.has(before.state) }
  })
  const work = lengths.reduce((sum, { ms, isRest }) => sum + (isRest ? 0 : ms), 0)
  const longest = Math.max(1, work * shareOfRest)
  const widths = lengths.map(({ ms, isRest }) => (isRest ? Math.min(ms, longest) : ms))
  const whole = widths.reduce((sum, width) => sum + width, 0)
  if (whole === 0) return createRecordAxis(rows)
  const places = [0]
  for (const width of widths) places.push((places.at(-1) ?? 0) + (width / whole) * (1 - roomAtEnd))
  const at = (place: number): number => places[place] ?? 1
  let latest = 0
  const times = points.map((row) => (latest = Math.max(latest, row.at)))
  const timeAt = (time: number): number => {
    const place = Math.max(0, countUpTo(times, time) - 1)
    const [from, to] = [points[place], points[place + 1]]
    if (!from || !to || to.at <= from.at) return at(place)
    return at(place) + ((time - from.at) / (to.at - from.at)) * (at(place + 1) - at(place))
  }
  return {
    at,
    edge: (place) => (place >= rows.length ? 1 : at(place)),
    span: ({ bar }) => {
      const from = Math.max(0, timeAt(bar.from))
      return [from, bar.to === null ? 1 : Math.max(from, timeAt(bar.to))]
    },
    placeAt: (x) => clampPlace(findNearest(places, x), rows),
    ticks: createTicks(
      Array.from({ length: mostTicks }, (_, i) =>
        findNearest(places, (i / (mostTicks - 1)) * (1 - roomAtEnd)),
      ),
      points,
      at,
    ),
    cuts: lengths.flatMap(({ ms, isRest }, i) =>
      isRest && ms > longest ? [{ from: at(i), to: at(i + 1), ms }] : [],
    ),
  }
}

export interface Zoom {
  from: number
  to: number
}

export const narrowestZoom = 1e-4

/** Positions outside the zoomed part are below 0 or above 1. */
export function zoomAxis(axis: Axis, { from, to }: Zoom, rows: readonly RecordRow[]): Axis {
  const scale = (x: number): number => (x - from) / (to - from)
  const at = (place: number): number => scale(axis.at(place))
  const seen = rows.flatMap((_row, place) => (at(place) >= 0 && at(place) <= 1 ? [place] : []))
  return {
    at,
    edge: (place) => scale(axis.edge(place)),
    span: (placed) => {
      const [left, right] = axis.span(placed)
      return [scale(left), scale(right)]
    },
    placeAt: (x) => axis.placeAt(from + x * (to - from)),
    ticks: createTicks(
      seen.length < mostTicks ? seen : spreadPlaces(seen.length).map((index) => seen[index] ?? 0),
      rows,
      at,
    ),
    cuts: axis.cuts.map((cut) => ({ ...cut, from: scale(cut.from), to: scale(cut.to) })),
  }
}

export function zoomBy(factor: number, around: number, { from, to }: Zoom): Zoom {
  const width = Math.min(1, Math.max(narrowestZoom, (to - from) * factor))
  const left = Math.min(1 - width, Math.max(0, around - ((around - from) / (to - from)) * width))
  return { from: left, to: left + width }
}

/** Counts the leading values of a sorted list that are at most `value`. */
function countUpTo(ascending: readonly number[], value: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? 0) <= value) low = middle + 1
    else high = middle
  }
  return low
}

const atWork = new Set(['', 'RUNNING', 'WAITING_FOR_TOOL'])

const mostTicks = 9

function spreadPlaces(count: number): number[] {
  return Array.from({ length: mostTicks }, (_, i) => Math.round((i / (mostTicks - 1)) * (count - 1)))
}

function findNearest(places: readonly number[], x: number): number {
  const next = countUpTo(places, x)
  const before = Math.max(0, next - 1)
  return next === places.length || x - (places[before] ?? 0) < (places[next] ?? 0) - x ? before : next
}

/** Omits labels that overlap or repeat. */
function createTicks(
  places: readonly number[],
  rows: readonly Pick<RecordRow, 'at'>[],
  at: (place: number) => number,
): Axis['ticks'] {
  const start = rows[0]?.at ?? 0
  const ticks: { x: number; text: string }[] = []
  for (const place of places) {
    const row = rows[place]
    if (!row) continue
    const [x, text] = [at(place), `+${formatDuration(Math.max(0, row.at - start))}`]
    const last = ticks.at(-1)
    if (!last || (x - last.x > 0.075 && text !== last.text)) ticks.push({ x, text })
  }
  // The last label is right-aligned.
  const [before, last] = ticks.slice(-2)
  if (before && last && isAtEnd(last) && last.x - before.x < 0.15) ticks.splice(-2, 1)
  return ticks
}

export const isAtEnd = ({ x }: { x: number }): boolean => x > 0.93

function clampPlace(place: number, rows: readonly RecordRow[]): number {
  return Math.max(0, Math.min(rows.length - 1, place))
}

export interface Stretch {
  /** At most two parts of the state, such as `RUNNING.asking`. `SLEEPING` means paused until a date. */
  state: string
  /** Record indexes, `to` exclusive. */
  from: number
  to: number
}

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

/** The real delay before the next record, within bounds, in milliseconds. */
export function findPlayDelay(rows: readonly Pick<RecordRow, 'at'>[], place: number): number {
  const gap = (rows[place + 1]?.at ?? 0) - (rows[place]?.at ?? 0)
  return Math.min(slowestMs, Math.max(fastestMs, gap))
}

const maxLines = 4

/** The lanes that have bars. Overlapping bars are on separate lines. The last line takes the remaining bars. */
export function placeLanes<Lane extends Bar['lane']>(
  { rows, bars }: Pick<SessionView, 'rows' | 'bars'>,
  lanes: readonly Lane[],
): { lane: Lane; placed: PlacedBar[]; lines: number }[] {
  const places = new Map(rows.map(({ seq }, place) => [seq, place]))
  const placeOf = (seq: number): number => places.get(seq) ?? 0
  return lanes.flatMap((lane) => {
    const ends: number[] = []
    const placed = bars
      .filter((bar) => bar.lane === lane)
      .map((bar) => ({
        bar,
        from: placeOf(bar.fromSeq),
        to: bar.toSeq === null ? rows.length : Math.max(placeOf(bar.toSeq), placeOf(bar.fromSeq) + 0.6),
      }))
      .toSorted((a, b) => a.from - b.from)
      .map((one) => {
        const free = ends.findIndex((end) => end <= one.from)
        const line = free === -1 ? Math.min(ends.length, maxLines - 1) : free
        ends[line] = Math.max(ends[line] ?? 0, one.to)
        return { ...one, line }
      })
    return placed.length === 0 ? [] : [{ lane, placed, lines: ends.length }]
  })
}

/** The smallest visible width, as a share of the timeline. */
export const grain = 1 / 1600

/** Narrower bars have no room for a label. */
const narrow = 6 / 1000

/** A drawn bar. `merged` lists the bars that it represents, or is null for a single bar. */
export interface SeenBar extends PlacedBar {
  left: number
  right: number
  merged: Bar[] | null
}

/** Visible bars. Narrow bars that touch are merged. Failed bars merge only with each other. */
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

export function findStepStart(rows: readonly RecordRow[], place: number, by: 1 | -1): number {
  const isStart = (at: number): boolean => {
    const [row, before] = [rows[at], rows[at - 1]]
    return row !== undefined && (before === undefined || before.step !== row.step || before.run !== row.run)
  }
  for (let at = place + by; at > 0 && at < rows.length; at += by) if (isStart(at)) return at
  return by > 0 ? rows.length - 1 : 0
}

export function mergeRows(rows: readonly RecordRow[], came: readonly RecordRow[]): RecordRow[] {
  const [first] = came
  if (!first) return [...rows]
  return [...rows.filter(({ seq }) => seq < first.seq), ...came]
}

/** A bar with the same id replaces the earlier one. */
export function mergeBars(bars: readonly Bar[], came: readonly Bar[]): Bar[] {
  const newer = new Map(came.map((bar) => [bar.id, bar]))
  const merged = bars.map((bar) => {
    const other = newer.get(bar.id)
    newer.delete(bar.id)
    return other ?? bar
  })
  return [...merged, ...newer.values()]
}

/** All states of a record, including outer states and states passed through. */
export function listStates(
  { to, transitionIds }: Pick<RecordRow, 'to' | 'transitionIds'>,
  transitions: ReadonlyMap<string, ChartTransition>,
): Set<string> {
  const passed = transitionIds.flatMap((id) => [
    transitions.get(id)?.source ?? '',
    transitions.get(id)?.target ?? '',
  ])
  return new Set([...to, ...passed].flatMap(listAncestors))
}

/** The place of the first record that entered a state or took a transition. */
export function findFirstPlaces(
  rows: readonly RecordRow[],
  { transitions }: Pick<ChartView, 'transitions'>,
): ReadonlyMap<string, number> {
  const known = new Map(transitions.map((one) => [one.id, one]))
  const first = new Map<string, number>()
  for (const [place, row] of rows.entries()) {
    for (const id of [...listStates(row, known), ...row.transitionIds])
      if (!first.has(id)) first.set(id, place)
  }
  return first
}
