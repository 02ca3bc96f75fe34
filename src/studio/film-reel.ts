import type { RecordRow } from './protocol.js'

/** What a scene of a film needs to be drawn. */
export interface Shown {
  row: Pick<RecordRow, 'from' | 'to' | 'taken'>
  /** Where records led that the film leaves out before it. */
  passed?: Pick<RecordRow, 'to' | 'taken'>
  seconds: number
}

export type Point = readonly [x: number, y: number]

/** Seconds: how long something walks at most, and how long the end is shown. */
const [longestWalk, rest] = [0.8, 3]
/** When it is nearly there, as a part of its way. */
const arrival = 0.7

/**
 * Makes parts of a picture move by CSS alone, wherever an SVG is shown: parts that are there in some of the scenes, and one that
 * walks. Where nothing may move, the end is there.
 */
export class FilmReel<Scene extends Shown = Shown> {
  readonly scenes: readonly Scene[]
  /** When each scene begins, and the end. */
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

  /** A part that is there in these scenes, in ascending order. `late`: only when what walks nearly arrives. */
  showDuring(places: readonly number[], content: string, late = false): string {
    const stretches: [from: number, to: number][] = []
    for (const place of places) {
      const last = stretches.at(-1)
      if (last?.[1] === place) last[1] = place + 1
      else stretches.push([place, place + 1])
    }
    return this.#show(stretches, content, late)
  }

  /** A part that is there from this scene on. */
  showFrom(place: number, content: string, late = false): string {
    return this.#show([[place, this.scenes.length]], content, late)
  }

  /** A part for each scene; those that are the same are one. */
  showEach(draw: (scene: Scene) => string, late = false): string[] {
    const places = new Map<string, number[]>()
    for (const [place, scene] of this.scenes.entries()) {
      const content = draw(scene)
      places.set(content, [...(places.get(content) ?? []), place])
    }
    return [...places].map(([content, at]) => this.showDuring(at, content, late))
  }

  /** A part that walks a way in each scene, and stays at its end until the next. */
  walk(ways: readonly (readonly Point[])[], content: string): string {
    const last = ways.findLast((way) => way.length > 0)?.at(-1)
    if (!last) return ''
    let before = ways[0]?.at(-1) ?? last
    const frames = [`0%{${toMove(before)}}`]
    for (const [place, way] of ways.entries()) {
      const start = this.#startOf(place, false)
      const [begin] = way
      // It jumps to where a scene begins elsewhere.
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

  /** The style sheet of all that has been shown. */
  get style(): string {
    return [
      '<style>',
      `.f{animation-duration:${Number(this.#total.toFixed(3))}s;animation-iteration-count:infinite;animation-timing-function:step-end}`,
      '@media (prefers-reduced-motion: reduce){.f{animation:none}}',
      ...this.#rules,
      '</style>',
    ].join('\n')
  }

  #show(stretches: readonly (readonly [from: number, to: number])[], content: string, late: boolean): string {
    const last = this.scenes.length
    const end = stretches.some(([, to]) => to === last) ? 1 : 0
    const frames = stretches.flatMap(([from, to]): [at: number, shown: 0 | 1][] => [
      [this.#startOf(from, late && from > 0), 1],
      ...(to === last ? [] : [[this.#startOf(to, late), 0] as [number, 0]]),
    ])
    if (frames[0]?.[0] !== 0) frames.unshift([0, 0])
    const steps = frames.map(([at, shown]) => `${this.#toPercent(at)}{opacity:${shown}}`)
    const name = this.#addRule([...steps, `100%{opacity:${end}}`])
    return `<g class="f" opacity="${end}" style="animation-name:${name}">${content}</g>`
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

/** Seconds: too short to be seen. */
const jump = 0.01

const measure = ([x, y]: Point, [u, v]: Point): number => Math.hypot(u - x, v - y)

const toMove = ([x, y]: Point): string =>
  `transform:translate(${Number(x.toFixed(1))}px,${Number(y.toFixed(1))}px)`
