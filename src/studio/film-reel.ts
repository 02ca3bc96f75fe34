import { groupBy } from '../../guards/lib/json.js'
import { listAncestors } from './format.js'
import { listStates } from './timeline-layout.js'
import { accent } from './session-card.js'
import type { ChartTransition, RecordRow } from './protocol.js'
import {
  type Arrow,
  type Box,
  drawChipName,
  drawWords,
  type Part,
  type PlacedChart,
} from './visited-chart.js'

export type Point = readonly [x: number, y: number]

export interface Scene {
  row: RecordRow
  /** The number of records. Of repeated records, the last is shown. */
  count: number
  /** The number of records that the film skips before the scene, and their states. */
  skipped: number
  passed: Pick<RecordRow, 'to' | 'transitionIds'>
  seconds: number
}

/** Maximum duration of a walk, and duration of the end, in seconds. */
const [longestWalk, rest] = [0.8, 3]
/** The fraction of the walk after which late parts appear. */
const arrival = 0.7

/** Animates an SVG with CSS alone. Viewers who prefer reduced motion see the last scene. */
export class FilmReel {
  readonly scenes: readonly Scene[]
  readonly #starts: readonly number[]
  readonly #total: number
  readonly #rules: string[] = []

  constructor(scenes: readonly Scene[]) {
    this.scenes = scenes
    const starts = [0]
    for (const { seconds } of scenes) starts.push((starts.at(-1) ?? 0) + seconds)
    this.#starts = starts
    this.#total = (starts.at(-1) ?? 0) + rest
  }

  /** Shows what `draw` returns for each scene, once per text. `late` parts appear when the token has nearly arrived. */
  showEach(draw: (scene: Scene, place: number) => string, late = false): string[] {
    const { length } = this.scenes
    const groups = groupBy([...this.scenes.entries()], ([place, scene]) => draw(scene, place))
    groups.delete('')
    return [...groups].map(([content, scenes]) => {
      const places = scenes.map(([place]) => place)
      const end = places.at(-1) === length - 1 ? 1 : 0
      const frames = places.flatMap((place, i): string[] => [
        ...(places[i - 1] === place - 1 ? [] : [this.#toFrame(place, late && place > 0, 1)]),
        ...(places[i + 1] === place + 1 || place === length - 1 ? [] : [this.#toFrame(place + 1, late, 0)]),
      ])
      const hidden = places[0] === 0 ? [] : ['0%{opacity:0}']
      const name = this.#addRule([...hidden, ...frames, `100%{opacity:${end}}`])
      return `<g class="f" opacity="${end}" style="animation-name:${name}">${content}</g>`
    })
  }

  /** Adds a part that walks in each scene and then stays until the next one. */
  walk(ways: readonly (readonly Point[])[], content: string): string {
    const last = ways.findLast((way) => way.length > 0)?.at(-1)
    if (!last) return ''
    let before = ways[0]?.at(-1) ?? last
    const frames = [`0%{${toMove(before)}}`]
    for (const [place, way] of ways.entries()) {
      const start = this.#startOf(place, false)
      const [begin] = way
      if (begin && measure(before, begin) > 1) frames.push(`${this.#toPercent(start)}{${toMove(before)}}`)
      const lengths = way.map((point, at) => measure(way[at - 1] ?? point, point))
      const length = lengths.reduce((sum, one) => sum + one, 0)
      let gone = 0
      for (const [at, point] of way.entries()) {
        gone += lengths[at] ?? 0
        const walked = length === 0 ? 0 : (gone / length) * this.#walkOf(place)
        frames.push(`${this.#toPercent(start + jump + walked)}{${toMove(point)}}`)
      }
      before = way.at(-1) ?? before
    }
    const name = this.#addRule([...frames, `100%{${toMove(last)}}`])
    return `<g class="f" style="animation-name:${name};animation-timing-function:ease-in-out;${toMove(last)}">${content}</g>`
  }

  get style(): string {
    return [
      '<style>',
      `.f{animation-duration:${Number(this.#total.toFixed(3))}s;animation-iteration-count:infinite;animation-timing-function:step-end}`,
      '@media (prefers-reduced-motion: reduce){.f{animation:none}}',
      ...this.#rules,
      '</style>',
    ].join('\n')
  }

  #toFrame(place: number, late: boolean, opacity: 0 | 1): string {
    return `${this.#toPercent(this.#startOf(place, late))}{opacity:${opacity}}`
  }

  #addRule(frames: readonly string[]): string {
    const name = `f${this.#rules.length}`
    this.#rules.push(`@keyframes ${name}{${frames.join('')}}`)
    return name
  }

  #startOf(place: number, late: boolean): number {
    return (this.#starts[place] ?? 0) + (late ? arrival * this.#walkOf(place) : 0)
  }

  #walkOf(place: number): number {
    return Math.min(longestWalk, (this.scenes[place]?.seconds ?? 0) * 0.55)
  }

  #toPercent(seconds: number): string {
    return `${Number(((seconds / this.#total) * 100).toFixed(2))}%`
  }
}

/** A duration too short to be seen, in seconds. */
const jump = 0.01

const measure = ([x, y]: Point, [u, v]: Point): number => Math.hypot(u - x, v - y)

const toMove = ([x, y]: Point): string =>
  `transform:translate(${Number(x.toFixed(1))}px,${Number(y.toFixed(1))}px)`

type Way = Pick<RecordRow, 'to' | 'transitionIds'>

/** Visited parts stay lit. */
export function lightChart(
  reel: FilmReel,
  placed: PlacedChart,
  transitions: readonly ChartTransition[],
): string[] {
  const { scenes } = reel
  const { rows } = placed
  const boxes = new Map(
    placed.boxes.flatMap((box) => [box, ...box.parts]).map((box) => [box.path, box] as const),
  )
  const arrows = [...placed.boxes.flatMap((box) => box.arrows), ...rows.flatMap(({ arrow }) => arrow ?? [])]
  const lines = arrows.map((arrow) => ({ ...arrow, points: listPoints(arrow.d) }))
  const known = new Map(transitions.map((one) => [one.id, one]))
  const passes = ({ row, passed }: Scene, isOn: (way: Way) => boolean): boolean => isOn(row) || isOn(passed)
  const trail = (content: string, isOn: (way: Way) => boolean, late = false): string[] => {
    const first = scenes.findIndex((scene) => passes(scene, isOn))
    return reel.showEach((_, place) => (first !== -1 && place >= first ? content : ''), late)
  }
  const light = (content: string, isOn: (way: Way) => boolean, late = false): string[] =>
    reel.showEach(({ row }) => (isOn(row) ? content : ''), late)
  const isTakenBy =
    (ids: readonly string[]) =>
    ({ transitionIds }: Way): boolean =>
      transitionIds.some((id) => ids.includes(id))
  return [
    ...lines.flatMap((line) => trail(drawLine(line, 2.2), isTakenBy(line.ids))),
    ...[...boxes].flatMap(([path, box]) =>
      box.kind === 'chip' ? trail(drawFrame(box, 1.4), (way) => listStates(way, known).has(path), true) : [],
    ),
    ...lines.flatMap((line) => light(drawLine(line, 4), isTakenBy(line.ids))),
    // Includes transitions in the part that the film skips.
    ...rows.flatMap((row) =>
      reel.showEach((scene) => (passes(scene, isTakenBy(row.ids)) ? drawWords(row, accent) : '')),
    ),
    ...[...boxes].flatMap(([path, box]) =>
      light(
        box.kind === 'chip' ? drawLitChip(box) : drawFrame(box, 3.5),
        ({ to }) => to.some((one) => findDrawn(one, boxes) === path),
        true,
      ),
    ),
    reel.walk(
      scenes.map(({ row }) => listWay(row, { boxes, lines }, known)),
      `<circle r="15" fill="${accent}" opacity="0.25"/><circle r="8" fill="${accent}" stroke="#ffffff" stroke-width="2.5"/>`,
    ),
  ]
}

function listWay(
  { from, to, transitionIds }: RecordRow,
  { boxes, lines }: { boxes: Boxes; lines: readonly (Arrow & { points: Point[] })[] },
  known: ReadonlyMap<string, ChartTransition>,
): Point[] {
  const place = (path = ''): Point[] => {
    const box = boxes.get(findDrawn(path, boxes))
    return box ? [getPlace(box)] : []
  }
  return [
    ...place(from[0]),
    ...transitionIds.flatMap((id) => {
      const target = boxes.get(known.get(id)?.target ?? '')
      const line = lines.find(({ ids }) => ids.includes(id))
      return [...(line?.points ?? []), ...(target?.kind === 'chip' ? [getPlace(target)] : [])]
    }),
    ...place(to[0]),
  ]
}

function listPoints(d: string): Point[] {
  const points: Point[] = []
  let [x, y] = [0, 0]
  for (const [, step = '', numbers = ''] of d.matchAll(/([A-Z])([^A-Z]*)/g)) {
    const values = numbers.split(/[\s,]+/).map(Number)
    if (step === 'H') points.push([(x = values[0] ?? x), y])
    else if (step === 'V') points.push([x, (y = values[0] ?? y)])
    else
      for (let at = 0; at + 1 < values.length; at += 2)
        points.push([(x = values[at] ?? x), (y = values[at + 1] ?? y)])
  }
  return points
}

type Boxes = ReadonlyMap<string, Box | Part>

/** The path of the state, or of its nearest outer state in the picture. */
function findDrawn(path: string, boxes: Boxes): string {
  return listAncestors(path).findLast((one) => boxes.has(one)) ?? ''
}

const drawLine = ({ d, head }: Arrow, width: number): string =>
  `<path d="${d}" fill="none" stroke="${accent}" stroke-width="${width}"/><path d="${head}" fill="${accent}"/>`

const drawFrame = ({ x, y, width, height, kind }: Box | Part, line: number): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${kind === 'chip' ? 6 : 10}" fill="none" stroke="${accent}" stroke-width="${line}"/>`

function drawLitChip(chip: Part): string {
  const { x, y, width, height } = chip
  const rect = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${accent}"/>`
  return rect + drawChipName(chip, '#ffffff', ' font-weight="bold"')
}

const getPlace = ({ x, y, width, height, kind }: Box | Part): Point =>
  kind === 'chip' ? [x + width - 15, y + height / 2] : [x + width - 22, y + Math.min(22, height / 2)]
