// A film of a rehearsed run for the README: the token walks the overview, with the transcript beside it. Made of nothing
// but the picture, what the studio tells of each record, and CSS: it moves wherever an SVG is shown.
import { openStage } from './stage.mjs'

/** Seconds: for each record, the token's way within it, and at the end. */
const [each, walk, rest] = [1.5, 0.8, 3]
/** When the token is nearly there. */
const arrival = 0.7 * walk
const accent = '#0969da'
const font = 'font-family="Helvetica,Arial,sans-serif"'
const panel = { x: 640, y: 684, width: 346, lines: 11 }

export async function filmOf(overview) {
  const stage = await openStage()
  const session = 'paid'
  const [{ rows: all }, { transitions }] = [
    await stage.get(`/api/sessions/${session}`),
    await stage.get('/api/chart'),
  ]
  // Before the first run the machine is nowhere.
  const rows = all.filter(({ to }) => to.length > 0)
  const moments = []
  for (const { seq } of rows) moments.push(await stage.get(`/api/sessions/${session}/moments/${seq}`))
  await stage.close()
  return drawFilm(overview, { rows, transitions, moments })
}

function drawFilm(overview, { rows, transitions, moments }) {
  const total = rows.length * each + rest
  const percent = (seconds) => `${Number(((seconds / total) * 100).toFixed(2))}%`
  const boxes = boxesOf(overview)
  const lines = linesOf(overview)
  const told = wordsIn(overview)
  const targets = new Map(transitions.map(({ id, target }) => [id, target]))
  const rules = []
  const parts = []

  /** Parts that are there while one of these records is, or a little later. */
  function during(places, content, delay = 0) {
    const name = `f${rules.length}`
    const stretches = places.reduce((all, place) => {
      const last = all.at(-1)
      if (last && last[1] === place) last[1] = place + 1
      else all.push([place, place + 1])
      return all
    }, [])
    const isLast = stretches.some(([, end]) => end === rows.length)
    const frames = stretches.flatMap(([from, to]) => [
      [from * each + (from === 0 ? 0 : delay), 1],
      ...(to === rows.length ? [] : [[to * each + delay, 0]]),
    ])
    if (frames[0]?.[0] !== 0) frames.unshift([0, 0])
    const steps = frames.map(([at, shown]) => `${percent(at)}{opacity:${shown}}`)
    rules.push(`@keyframes ${name}{${steps.join('')}100%{opacity:${isLast ? 1 : 0}}}`)
    parts.push(`<g class="f" opacity="${isLast ? 1 : 0}" style="animation-name:${name}">${content}</g>`)
  }

  const placesBy = (keysOf) => {
    const places = new Map()
    for (const [place, row] of rows.entries()) {
      for (const key of keysOf(row)) places.set(key, [...(places.get(key) ?? []), place])
    }
    return places
  }
  for (const [line, places] of placesBy(({ taken }) =>
    lines.filter(({ ids }) => taken.some((id) => ids.includes(id))),
  )) {
    const path = `<path d="${line.d}" fill="none" stroke="${accent}" stroke-width="4"/>`
    during(places, `${path}<path d="${line.head}" fill="${accent}"/>`)
  }
  for (const [word, places] of placesBy(({ taken }) =>
    told.filter(({ ids }) => taken.some((id) => ids.includes(id))),
  )) {
    during(places, word.text.replace('fill="#1f2328"', `fill="${accent}"`))
  }
  for (const [path, places] of placesBy(({ to }) => to.filter((path) => boxes.has(path)))) {
    const { x, y, width, height, isChip } = boxes.get(path)
    during(
      places,
      isChip
        ? `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="7" fill="${accent}"/>${words(path.split('.').at(-1), x + 10, y + 17.5, { color: '#ffffff', size: 13, bold: true })}`
        : `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="10" fill="none" stroke="${accent}" stroke-width="3.5"/>`,
      arrival,
    )
  }
  // Under the states that are left of the transcript: what is told must not cover them.
  const left = [...boxes.values()].filter(({ x }) => x < panel.x)
  const below = Math.max(...left.map(({ y, height }) => y + height)) + 40
  for (const [text, places] of placesBy(({ label, to }) => [
    `${label}\n${to.join(', ').replaceAll('.', ' › ')}`,
  ])) {
    const [label, path] = text.split('\n')
    during(
      places,
      words(label, 24, below, { size: 18, bold: true }) +
        words(path, 24, below + 26, { size: 16, color: accent }),
    )
  }
  const pages = new Map()
  for (const [place, { transcript }] of moments.entries()) {
    const page = pageOf(transcript)
    pages.set(page, [...(pages.get(page) ?? []), place])
  }
  for (const [page, places] of pages) during(places, page, arrival)

  const frames = [`0%{${moved(boxes.get(rows[0]?.to[0]))}}`]
  for (const [place, { from, to, taken }] of rows.entries()) {
    const way = [from[0], ...taken.flatMap((id) => [id, targets.get(id)]), to[0]].flatMap((step) =>
      boxes.has(step) && (boxes.get(step).isChip || step === to[0])
        ? [centre(boxes.get(step))]
        : (lines.find(({ ids, isTold }) => !isTold && ids.includes(step))?.points ?? []),
    )
    const lengths = way.map((point, at) =>
      at === 0 ? 0 : Math.hypot(point[0] - way[at - 1][0], point[1] - way[at - 1][1]),
    )
    const length = lengths.reduce((sum, one) => sum + one, 0)
    let gone = 0
    for (const [at, point] of way.entries()) {
      gone += lengths[at]
      frames.push(`${percent(place * each + (length === 0 ? 0 : (gone / length) * walk))}{${moved(point)}}`)
    }
  }
  frames.push(`100%{${moved(boxes.get(rows.at(-1)?.to[0]))}}`)
  rules.push(`@keyframes token{${frames.join('')}}`)
  const token = `<g class="f" style="animation-name:token;animation-timing-function:ease-in-out;${moved(boxes.get(rows.at(-1)?.to[0]))}"><circle r="15" fill="${accent}" opacity="0.25"/><circle r="8" fill="${accent}" stroke="#ffffff" stroke-width="2.5"/></g>`
  const style = [
    '<style>',
    `.f{animation-duration:${total}s;animation-iteration-count:infinite;animation-timing-function:step-end}`,
    '@media (prefers-reduced-motion: reduce){.f{animation:none}}',
    ...rules,
    '</style>',
  ].join('\n')
  const frame = `<rect x="${panel.x}" y="${panel.y}" width="${panel.width}" height="${panel.lines * 19 + 26}" rx="10" fill="#fefefe" stroke="#c6cdd5"/>`
  return (
    overview
      // Only what is taken stands out.
      .replaceAll(/ (fill|stroke)="#0969da"/g, ' $1="#848d97"')
      .replace('agent, overview', 'A rehearsed run, on the chart of the agent')
      .replace('</svg>', `${style}\n${frame}\n${parts.join('\n')}\n${token}\n</svg>`)
  )
}

/** The boxes of states, by path. */
function boxesOf(svg) {
  const found = svg.matchAll(
    /<g class="state ([^"]*)" data-state="([^"]*)">\n(?:<title>[^<]*<\/title>\n)?<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/g,
  )
  return new Map(
    Array.from(found, ([, kind, path, ...numbers]) => {
      const [x, y, width, height] = numbers.map(Number)
      return [path, { x, y, width, height, isChip: kind.startsWith('chip') }]
    }),
  )
}

/** The lines with the ids of their transitions, and the points at which they begin, bend and end. */
function linesOf(svg) {
  const found = svg.matchAll(
    /<g class="way[^"]*" data-from="[^"]*" data-to="[^"]*" data-transition="([^"]*)">\n<path class="line" d="([^"]*)"[^>]*\/>\n<path class="head" d="([^"]*)"/g,
  )
  return Array.from(found, ([, ids, d, head]) => ({
    ids: ids.split('&#10;').map(plain),
    d,
    head,
    points: Array.from(d.matchAll(/(-?[\d.]+),(-?[\d.]+)/g), ([, x, y]) => [Number(x), Number(y)]),
  }))
}

/** The words beside lines, with the ids of the transitions that they tell of. */
function wordsIn(svg) {
  const found = svg.matchAll(/<g class="word" data-transition="([^"]*)">(<text .*?<\/text>)<\/g>/g)
  return Array.from(found, ([, ids, text]) => ({ ids: ids.split('&#10;').map(plain), text }))
}

function plain(text) {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

function centre({ x, y, width, height, isChip }) {
  return isChip ? [x + width - 15, y + height / 2] : [x + width - 22, y + 22]
}

function moved(place) {
  const [x, y] = Array.isArray(place) ? place : centre(place)
  return `transform:translate(${Number(x.toFixed(1))}px,${Number(y.toFixed(1))}px)`
}

/** The end of the transcript, as much as there is room for. */
function pageOf(transcript) {
  const lines = transcript.flatMap(({ role, text, calls }) => [
    ...wrapped(text).map((line, at) => ({ line, bold: role === 'user', isFirst: at === 0 })),
    ...calls.flatMap(({ name, arguments: given, result, status }) => [
      { line: cut(`${name} ${given === '{}' ? '' : given}`), color: accent },
      ...(result === null
        ? status === 'waits for approval'
          ? [{ line: '   waits for approval', color: '#9a6700' }]
          : []
        : [{ line: cut(`   ${result.replaceAll(/\s+/g, ' ')}`), color: '#59636e' }]),
    ]),
  ])
  return lines
    .slice(-panel.lines)
    .map(({ line, color = '#1f2328', bold = false }, at) =>
      words(line, panel.x + 14, panel.y + 27 + at * 19, { color, size: 14, bold }),
    )
    .join('')
}

const room = 48

function cut(text) {
  return text.length > room ? `${text.slice(0, room - 1)}…` : text
}

function wrapped(text) {
  const lines = []
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < room) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

function words(text, x, y, { color = '#1f2328', size, bold = false }) {
  const safe = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return `<text xml:space="preserve" x="${x}" y="${y}" fill="${color}" ${font} font-size="${size}"${bold ? ' font-weight="bold"' : ''}>${safe}</text>`
}
