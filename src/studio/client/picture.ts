import type { ChartTransition, RecordRow } from '../protocol.js'
import { groupBy } from '../../../guards/lib/json.js'
import { listAncestors } from '../format.js'

const allowedElements = new Set(
  'g path rect circle ellipse polygon polyline line text tspan title'.split(' '),
)
const svgSpace = 'http://www.w3.org/2000/svg'

export interface Highlights {
  /** Paths of the active states. Their outer states are also highlighted. */
  active: readonly string[]
  transitionIds: readonly string[]
  markOf: (id: string) => Mark | ''
}

/** Marks in ascending order of precedence. */
const marks = [
  'was',
  'heat1',
  'heat2',
  'heat3',
  'heat4',
  'tested',
  'never',
  'only-a',
  'only-b',
  'both',
] as const

export type Mark = (typeof marks)[number]

export class Picture {
  readonly svg: SVGSVGElement
  /** Whether the picture is drawn at text size for a narrow pane. Other pictures are overviews. */
  readonly isNarrow: boolean
  readonly size: { readonly width: number; readonly height: number }
  readonly #ownStyle: string
  readonly #states: ReadonlyMap<string, readonly Element[]>
  readonly #ways = new Map<Element, string[]>()
  /** The original class of an element, and the classes added to it. */
  readonly #lit = new Map<Element, { own: string; lit: string }>()
  /** Cached points. Reading them from the DOM forces a layout. */
  readonly #spots = new Map<string, Point>()
  readonly #lines = new Map<string, readonly Point[]>()
  readonly #trail: SVGPathElement
  readonly #token: SVGElement
  #stop: (() => void) | null = null

  constructor(text: string) {
    const [style = '', css = ''] = /<style>([^]*?)<\/style>/.exec(text) ?? []
    const parsed = new DOMParser().parseFromString(text.replace(style, ''), 'image/svg+xml').documentElement
    this.svg = document.importNode(parsed, true) as unknown as SVGSVGElement
    adoptStyles(css)
    // A picture of a custom machine could contain scripts or links.
    for (const element of this.svg.querySelectorAll('*')) {
      if (!allowedElements.has(element.localName)) element.remove()
      else
        for (const { name } of element.attributes) if (/^on|href$/.test(name)) element.removeAttribute(name)
    }
    const own = this.svg.getAttribute('data-width')
    this.isNarrow = own !== null
    const [, , width = 0, height = 0] = (this.svg.getAttribute('viewBox') ?? '').split(' ').map(Number)
    // Smaller text would be unreadable.
    if (own !== null) this.svg.style.cssText = `min-width:${own}px;max-width:${Number(own) * 1.15}px`
    else {
      for (const heading of this.svg.querySelectorAll(':scope > text')) heading.remove()
      this.svg.setAttribute('viewBox', `8 52 ${width - 16} ${height - 56}`)
    }
    this.svg.removeAttribute('width')
    this.svg.removeAttribute('height')
    this.size = { width: Math.max(1, width), height: Math.max(1, height) }
    this.#ownStyle = this.svg.style.cssText
    const read = (element: Element, name: string): string => element.getAttribute(name) ?? ''
    const states = [...this.svg.querySelectorAll('[data-state]')]
    this.#states = groupBy(states, (element) => read(element, 'data-state'))
    for (const element of this.svg.querySelectorAll('[data-transition]'))
      this.#ways.set(element, read(element, 'data-transition').split('\n'))
    this.#trail = document.createElementNS(svgSpace, 'path')
    this.#trail.setAttribute('class', 'trail')
    this.#token = document.createElementNS(svgSpace, 'g')
    this.#token.setAttribute('class', 'token')
    this.#token.innerHTML = '<circle class="halo" r="13"/><circle class="core" r="6.5"/>'
    this.svg.append(this.#trail, this.#token)
  }

  setZoom(zoom: number | null): void {
    this.svg.style.cssText =
      zoom === null
        ? this.#ownStyle
        : `width:${Math.round(this.size.width * zoom)}px;height:auto;min-width:0;max-width:none`
  }

  highlight({ active, transitionIds, markOf }: Highlights): void {
    const around = new Set(active.flatMap(listAncestors))
    const inner = new Set(active.map((path) => this.#findDrawnPath(path)))
    for (const [id, elements] of this.#states) {
      const lit = `${around.has(id) ? 'around ' : ''}${inner.has(id) ? 'active ' : ''}${markOf(id)}`
      for (const element of elements) this.#light(element, lit)
    }
    const now = new Set(transitionIds)
    const raised: Element[] = []
    for (const [element, ids] of this.#ways) {
      const mark = ids
        .map(markOf)
        .reduce((one, other) => (marks.indexOf(other as Mark) > marks.indexOf(one as Mark) ? other : one), '')
      const isTaken = ids.some((id) => now.has(id))
      const isNew = this.#light(element, `${isTaken ? 'taken ' : ''}${mark}`)
      if (element.parentNode !== this.svg) continue
      if (isTaken) raised.push(element)
      else if (isNew && mark) this.#trail.before(element)
    }
    // Lines share lanes. Marked lines are drawn above unmarked ones, and taken lines above all others.
    this.#trail.before(...raised)
  }

  /** Writes only changed classes to the DOM, because a step changes few elements. Returns whether it wrote. */
  #light(element: Element, lit: string): boolean {
    const known = this.#lit.get(element)
    if (known?.lit === lit) return false
    const own = known?.own ?? element.getAttribute('class') ?? ''
    this.#lit.set(element, { own, lit })
    element.setAttribute('class', `${own} ${lit}`.trim())
    return true
  }

  moveToken(
    { from, to, transitionIds }: Pick<RecordRow, 'from' | 'to' | 'transitionIds'>,
    { transitions, ms }: { transitions: ReadonlyMap<string, ChartTransition>; ms: number },
  ): void {
    this.#stop?.()
    this.#stop = null
    const end = this.#locate(to[0])
    this.#token.toggleAttribute('hidden', end === null)
    if (!end) {
      this.#trail.setAttribute('d', '')
      return
    }
    const points = [
      this.#locate(from[0]),
      ...transitionIds.flatMap((id) => this.#listPointsAlong(id, transitions)),
      end,
    ].filter((point) => point !== null)
    this.#trail.setAttribute('d', toPath(points))
    this.#stop = walkToken(this.#trail, this.#token, end, ms)
  }

  findBox(state: string): DOMRect | null {
    return this.#states.get(this.#findDrawnPath(state))?.[0]?.getBoundingClientRect() ?? null
  }

  findFirstBox(): DOMRect | null {
    return this.svg.querySelector('text')?.getBoundingClientRect() ?? null
  }

  /** The path of the state, or of its nearest outer state in the picture. */
  #findDrawnPath(path: string): string {
    return listAncestors(path).findLast((one) => this.#states.has(one)) ?? path
  }

  #locate(path: string | undefined): Point | null {
    const drawn = path === undefined ? '' : this.#findDrawnPath(path)
    const known = this.#spots.get(drawn)
    if (known) return known
    const element = this.#states.get(drawn)?.[0]
    const shape = element?.querySelector('rect')
    if (!element || !shape) return null
    const { x, y, width, height } = shape.getBBox()
    const spot: Point = element.classList.contains('chip')
      ? [x + width - 15, y + height / 2]
      : [x + width - 18, y + 18]
    // A hidden picture has no size yet.
    if (width > 0) this.#spots.set(drawn, spot)
    return spot
  }

  #followLine(id: string): readonly Point[] {
    const known = this.#lines.get(id)
    if (known) return known
    const points: Point[] = []
    for (const [element, ids] of this.#ways) {
      if (!ids.includes(id) || !element.matches('.way:not(.told)')) continue
      const line = element.querySelector<SVGPathElement>('path')
      if (!line) continue
      const length = line.getTotalLength()
      for (let at = 0; at <= 12; at++) {
        const { x, y } = line.getPointAtLength((length * at) / 12)
        points.push([x, y])
      }
      break
    }
    this.#lines.set(id, points)
    return points
  }

  #listPointsAlong(id: string, transitions: ReadonlyMap<string, ChartTransition>): (Point | null)[] {
    const points: (Point | null)[] = [...this.#followLine(id)]
    const target = transitions.get(id)?.target
    const element = typeof target === 'string' ? this.#states.get(target)?.[0] : undefined
    if (target && element && (this.isNarrow || element.classList.contains('chip')))
      points.push(this.#locate(target))
    return points
  }
}

const adopted = new Set<string>()

/** The content security policy forbids style elements. */
function adoptStyles(css: string): void {
  if (adopted.has(css)) return
  adopted.add(css)
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(css)
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
}

type Point = readonly [x: number, y: number]

function toPath(points: readonly Point[]): string {
  const apart = points.filter(([x, y], index) => {
    const before = points[index - 1]
    return before === undefined || Math.hypot(x - before[0], y - before[1]) > 1
  })
  const [first] = apart
  if (!first) return ''
  let path = `M${first[0]},${first[1]}`
  for (let at = 1; at < apart.length; at++) {
    const [here, next] = [apart[at], apart[at + 1]]
    if (!here) break
    if (!next) path += `L${here[0]},${here[1]}`
    else path += `Q${here[0]},${here[1]} ${(here[0] + next[0]) / 2},${(here[1] + next[1]) / 2}`
  }
  return path
}

/** Returns a function that skips to the end. */
function walkToken(trail: SVGPathElement, token: SVGElement, end: Point, ms: number): (() => void) | null {
  const put = (x: number, y: number): void => token.setAttribute('transform', `translate(${x},${y})`)
  trail.removeAttribute('stroke-dasharray')
  trail.removeAttribute('stroke-dashoffset')
  trail.classList.remove('walked')
  const length = ms > 0 ? trail.getTotalLength() : 0
  if (length < 2) {
    trail.classList.add('walked')
    put(...end)
    return null
  }
  const time = Math.min(ms, 220 + length * 0.7)
  const start = performance.now()
  trail.setAttribute('stroke-dasharray', String(length))
  let frame = requestAnimationFrame(function step(now) {
    const part = Math.min(1, Math.max(0, now - start) / time)
    const eased = part < 0.5 ? 2 * part * part : 1 - (2 - 2 * part) ** 2 / 2
    const { x, y } = trail.getPointAtLength(length * eased)
    put(x, y)
    trail.setAttribute('stroke-dashoffset', String(length * (1 - eased)))
    if (part < 1) frame = requestAnimationFrame(step)
    else trail.classList.add('walked')
  })
  return () => {
    cancelAnimationFrame(frame)
    trail.removeAttribute('stroke-dasharray')
    trail.removeAttribute('stroke-dashoffset')
    put(...end)
  }
}
