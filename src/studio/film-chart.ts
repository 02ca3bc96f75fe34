import { listStates } from './client/timeline-layout.js'
import type { FilmReel, Point, Shown } from './film-reel.js'
import { accent } from './picture-parts.js'
import type { ChartTransition } from './protocol.js'
import { unescapeXml } from './visited-chart.js'

type Way = Pick<Shown['row'], 'to' | 'taken'>

/**
 * The parts of a chart that light up as a run takes them, and the token on its way over them. `svg`: the overview, or what a run
 * visited of it. `hasTrail`: what was taken once stays lit.
 */
export function lightChart(
  reel: FilmReel,
  svg: string,
  { transitions, hasTrail }: { transitions: readonly ChartTransition[]; hasTrail: boolean },
): string[] {
  const { scenes } = reel
  const { boxes, lines, words } = readChart(svg)
  const known = new Map(transitions.map((one) => [one.id, one]))
  const passes = ({ row, passed }: Shown, isOn: (way: Way) => boolean): boolean =>
    isOn(row) || (passed !== undefined && isOn(passed))
  const trail = (content: string, isOn: (way: Way) => boolean, late = false): string[] => {
    const place = scenes.findIndex((scene) => passes(scene, isOn))
    return place === -1 || !hasTrail ? [] : [reel.showFrom(place, content, late)]
  }
  const showWhere = (isOn: (scene: Shown) => boolean, content: string, late = false): string[] => {
    const places = scenes.flatMap((scene, place) => (isOn(scene) ? [place] : []))
    return places.length === 0 ? [] : [reel.showDuring(places, content, late)]
  }
  const light = (content: string, isOn: (way: Way) => boolean, late = false): string[] =>
    showWhere(({ row }) => isOn(row), content, late)
  const isTakenBy =
    (ids: readonly string[]) =>
    ({ taken }: Way): boolean =>
      taken.some((id) => ids.includes(id))
  return [
    ...lines.flatMap((line) => trail(drawLine(line, 2.2), isTakenBy(line.ids))),
    ...[...boxes].flatMap(([path, box]) =>
      box.isChip ? trail(drawFrame(box, 1.4), (way) => listStates(way, known).has(path), true) : [],
    ),
    ...lines.flatMap((line) => light(drawLine(line, 4), isTakenBy(line.ids))),
    // Also what led on in the part that a film leaves out: its lines are lit from here on.
    ...words.flatMap(({ ids, text }) =>
      showWhere((scene) => passes(scene, isTakenBy(ids)), drawLitWord(text)),
    ),
    ...[...boxes].flatMap(([path, box]) =>
      light(
        box.isChip ? drawLitChip(box) : drawFrame(box, 3.5),
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

/** From state to state, along the lines of the transitions that were taken. */
function listWay(
  { from, to, taken }: Shown['row'],
  { boxes, lines }: Pick<ReadChart, 'boxes' | 'lines'>,
  known: ReadonlyMap<string, ChartTransition>,
): Point[] {
  const place = (path = ''): Point[] => {
    const box = boxes.get(findDrawn(path, boxes))
    return box ? [getPlace(box)] : []
  }
  return [
    ...place(from[0]),
    ...taken.flatMap((id) => {
      const target = boxes.get(known.get(id)?.target ?? '')
      const line = lines.find(({ ids }) => ids.includes(id))
      return [...(line?.points ?? []), ...(target?.isChip ? [getPlace(target)] : [])]
    }),
    ...place(to[0]),
  ]
}

interface Box {
  x: number
  y: number
  width: number
  height: number
  isChip: boolean
  /** Its name, as it is drawn. */
  text: string
}

interface Line {
  ids: string[]
  d: string
  head: string
  /** Where it begins, bends and ends. */
  points: Point[]
}

interface ReadChart {
  /** By path. */
  boxes: Map<string, Box>
  lines: Line[]
  words: { ids: string[]; text: string }[]
}

/** The states, lines and words of a picture: servers have no parser of pictures. */
function readChart(svg: string): ReadChart {
  const boxes = svg.matchAll(
    /<g class="state ([^"]*)" data-state="([^"]*)">\s*(?:<title>[^<]*<\/title>\s*)?<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"[^>]*\/>\s*(<text [^>]*>[^<]*<\/text>)?/g,
  )
  const lines = svg.matchAll(
    /<g class="way[^"]*"[^>]* data-transition="([^"]*)">\s*<path class="line" d="([^"]*)"[^>]*\/>\s*<path class="head" d="([^"]*)"/g,
  )
  const words = svg.matchAll(
    /<g class="(?:told )?word" data-transition="([^"]*)">(<text [^>]*>[^<]*<\/text>)<\/g>/g,
  )
  return {
    boxes: new Map(
      Array.from(boxes, ([, kind = '', path = '', x, y, width, height, text = '']) => [
        unescapeXml(path),
        {
          x: Number(x),
          y: Number(y),
          width: Number(width),
          height: Number(height),
          isChip: kind.startsWith('chip'),
          text,
        },
      ]),
    ),
    lines: Array.from(lines, ([, ids = '', d = '', head = '']) => ({
      ids: readIds(ids),
      d,
      head,
      points: listPoints(d),
    })),
    words: Array.from(words, ([, ids = '', text = '']) => ({ ids: readIds(ids), text })),
  }
}

const readIds = (ids: string): string[] => unescapeXml(ids).split('\n')

/** The points of a path. */
function listPoints(d: string): Point[] {
  const points: Point[] = []
  let [x, y] = [0, 0]
  for (const [, step = '', numbers = ''] of d.matchAll(/([A-Z])([^A-Z]*)/g)) {
    const given = numbers.split(/[\s,]+/).map(Number)
    if (step === 'H') points.push([(x = given[0] ?? x), y])
    else if (step === 'V') points.push([x, (y = given[0] ?? y)])
    else
      for (let at = 0; at + 1 < given.length; at += 2)
        points.push([(x = given[at] ?? x), (y = given[at + 1] ?? y)])
  }
  return points
}

/** The path of the state itself, or of its nearest outer state that is drawn. */
function findDrawn(path: string, boxes: ReadonlyMap<string, Box>): string {
  let at = path
  while (at !== '' && !boxes.has(at)) at = at.slice(0, Math.max(0, at.lastIndexOf('.')))
  return at
}

const drawLine = ({ d, head }: Line, width: number): string =>
  `<path d="${d}" fill="none" stroke="${accent}" stroke-width="${width}"/><path d="${head}" fill="${accent}"/>`

const drawFrame = ({ x, y, width, height, isChip }: Box, line: number): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${isChip ? 6 : 10}" fill="none" stroke="${accent}" stroke-width="${line}"/>`

const drawLitChip = ({ x, y, width, height, text }: Box): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${accent}"/>${text.replace(' font-weight="bold"', '').replace(/fill="[^"]*"/, 'fill="#ffffff" font-weight="bold"')}`

const drawLitWord = (text: string): string => text.replace(/fill="#(?:1f2328|59636e)"/, `fill="${accent}"`)

/** Where the token stands in a state. */
const getPlace = ({ x, y, width, height, isChip }: Box): Point =>
  isChip ? [x + width - 15, y + height / 2] : [x + width - 22, y + Math.min(22, height / 2)]
