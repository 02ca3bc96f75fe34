import fc from 'fast-check'
import {
  createRecordAxis,
  createTimeAxis,
  findPlayDelay,
  listSeenBars,
  zoomAxis,
  zoomBy,
} from '../../src/studio/timeline-layout.js'
import type { Bar, RecordRow } from '../../src/studio/protocol.js'

const row = (seq: number, at: number, state: string): RecordRow => ({
  seq,
  at,
  state,
  type: 'event',
  label: '',
  from: [],
  to: [],
  transitionIds: [],
  step: 1,
  run: 1,
  tokens: 0,
  cost: null,
  paid: 0,
  flags: [],
  started: [],
  calls: [],
})

const states = ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED', 'COMPLETED']

/** Logs with clocks that move forward and occasionally stand still. */
const logs = fc
  .array(fc.record({ ms: fc.nat(1_000_000), state: fc.constantFrom(...states) }), {
    minLength: 1,
    maxLength: 40,
  })
  .map((steps) => {
    let at = 1_000
    return steps.map(({ ms, state }, i) => row(i + 1, (at += ms), state))
  })

describe.each([
  ['by record', (rows: RecordRow[]) => createRecordAxis(rows)],
  ['by time', (rows: RecordRow[]) => createTimeAxis(rows, [])],
])('a timeline %s', (_, axisOf) => {
  it('contains every record in order, and maps each position back to its record', () => {
    fc.assert(
      fc.property(logs, (rows) => {
        const axis = axisOf(rows)
        const places = rows.map((_row, place) => axis.at(place))
        expect(places.every((x) => x >= 0 && x <= 1)).toBe(true)
        expect(places).toEqual(places.toSorted((a, b) => a - b))
        for (const [place, x] of places.entries()) {
          // Records of the same instant share a position. The result is one of them.
          expect(places[axis.placeAt(x)]).toBeCloseTo(x, 9)
          expect(axis.edge(place)).toBeLessThanOrEqual(x)
        }
        expect(axis.edge(rows.length)).toBe(1)
        const [first, last] = [axis.placeAt(-1), axis.placeAt(2)]
        expect([first >= 0, last]).toEqual([true, rows.length - 1])
        expect(axis.ticks.map(({ x }) => x)).toEqual(axis.ticks.map(({ x }) => x).toSorted((a, b) => a - b))
      }),
    )
  })
})

it('a timeline is proportional to time, except for waits, which are shortened', () => {
  const rows = [
    row(1, 0, 'RUNNING'),
    row(2, 1_000, 'WAITING_FOR_TOOL'),
    row(3, 4_000, 'WAITING_FOR_INPUT'),
    row(4, 3_604_000, 'RUNNING'),
    row(5, 3_605_000, 'COMPLETED'),
  ]
  const axis = createTimeAxis(rows, [])
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = rows.map((_row, place) => axis.at(place))
  expect((c - b) / (b - a)).toBeCloseTo(3)
  expect((e - d) / (b - a)).toBeCloseTo(1)
  expect(d - c).toBeLessThan(b - a)
  expect(axis.cuts).toEqual([{ from: c, to: d, ms: 3_600_000 }])
  const bar = { id: 1, lane: 'tools', label: 'x', fromSeq: 2, toSeq: 3, status: 'ok' } as const
  // A call that waited for its turn has its bar at the time of its execution.
  const [from, to] = axis.span({ bar: { ...bar, from: 2_500, to: 4_000 }, from: 1, to: 2 })
  expect([from, to]).toEqual([expect.closeTo((b + c) / 2), expect.closeTo(c)])
  expect(axis.span({ bar: { ...bar, from: 4_000, to: null }, from: 2, to: 5 })[1]).toBe(1)
})

it('a timeline omits times without a process, and spaces records evenly if no time has passed', () => {
  const rows = [row(1, 0, 'RUNNING'), row(2, 1_000, 'RUNNING'), row(3, 901_000, 'RUNNING')]
  expect(createTimeAxis(rows, [{ from: 1_000, to: 901_000 }]).cuts).toMatchObject([{ ms: 900_000 }])
  expect(createTimeAxis(rows, []).cuts).toEqual([])
  const still = [row(1, 5, 'RUNNING'), row(2, 5, 'RUNNING')]
  expect(createTimeAxis(still, []).at(1)).toBe(createRecordAxis(still).at(1))
})

test('a part of a timeline is as wide as the whole, and each of its records has a position', () => {
  const share = fc.double({ min: 0, max: 0.9, noNaN: true })
  fc.assert(
    fc.property(logs, share, fc.double({ min: 0.01, max: 0.1, noNaN: true }), (rows, from, width) => {
      const plain = createTimeAxis(rows, [])
      const axis = zoomAxis(plain, { from, to: from + width }, rows)
      expect(axis.at(0)).toBeCloseTo((plain.at(0) - from) / width, 6)
      for (const place of rows.keys()) {
        const x = axis.at(place)
        if (x >= 0 && x <= 1) expect(axis.at(axis.placeAt(x))).toBeCloseTo(x, 6)
      }
      expect(axis.ticks.every(({ x }) => x >= 0 && x <= 1)).toBe(true)
      // At 1024 pixels, a label is up to 60 pixels wide.
      for (const [at, { x }] of axis.ticks.slice(1).entries())
        expect(x - (axis.ticks[at]?.x ?? 0)).toBeGreaterThan(0.07)
      const out = zoomBy(2, from, { from, to: from + width })
      expect(out.from).toBeGreaterThanOrEqual(0)
      expect(out.to).toBeLessThanOrEqual(1 + 1e-9)
      expect(out.to - out.from).toBeCloseTo(Math.min(1, width * 2), 9)
    }),
  )
})

describe('adjacent bars of a lane', () => {
  const bar = (id: number, from: number, to: number, status: Bar['status'] = 'ok'): Bar => ({
    id,
    lane: 'tools',
    label: 'look_up',
    from,
    to,
    fromSeq: id,
    toSeq: id,
    status,
  })
  const see = (bars: readonly Bar[], whole: number) =>
    listSeenBars(
      bars.map((one) => ({ bar: one, from: 0, to: 0, line: 0 })),
      { span: ({ bar: { from, to } }) => [from / whole, (to ?? whole) / whole] },
    )

  it('are merged if they are too narrow for a word, and separate otherwise', () => {
    const bars = Array.from({ length: 300 }, (_, i) => bar(i + 1, i, i + 1))
    const [all, ...others] = see(bars, 300)
    expect(others).toEqual([])
    expect(all).toMatchObject({ left: 0, right: 1, merged: { length: 300 } })
    expect(see(bars, 30).filter(({ merged }) => merged !== null)).toEqual([])
  })

  it('stay separate if time passes between them', () => {
    const bars = Array.from({ length: 10 }, (_, i) => bar(i + 1, i * 100, i * 100 + 1))
    expect(see(bars, 1000).map(({ merged }) => merged)).toEqual(Array(10).fill(null))
  })

  it('hide no failure, and represent each bar once', () => {
    const statuses = fc.array(fc.constantFrom<Bar['status'][]>('ok', 'failed', 'interrupted'), {
      maxLength: 80,
    })
    fc.assert(
      fc.property(statuses, fc.integer({ min: 1, max: 5_000 }), (input, whole) => {
        const bars = input.map((status, i) => bar(i + 1, i, i + 1, status))
        const seen = see(bars, Math.max(whole, bars.length))
        const stoodFor = seen.flatMap(({ bar: first, merged }) => merged ?? [first])
        expect(stoodFor.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(bars.map(({ id }) => id))
        for (const { bar: first, merged } of seen)
          expect(new Set((merged ?? [first]).map(({ status }) => status))).toEqual(new Set([first.status]))
      }),
    )
  })
})

describe('a record during playback', () => {
  it('stays for its duration, but long enough to be seen and not for a whole wait', () => {
    const rows = [0, 5, 405, 60_405].map((at) => ({ at }))
    expect(rows.slice(1).map((_, place) => findPlayDelay(rows, place))).toEqual([120, 400, 900])
  })
})
