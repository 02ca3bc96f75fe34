import type { Graphviz } from '@hpcc-js/wasm-graphviz'
import { loadPeer } from '../core/base/platform.js'
import { escapeXml, formatTransitions } from './svg-parts.js'
import { type Chart, expectChart, flattenStates, DiagramError } from './chart.js'
import { type DotOptions, createNodeNames, type Places, toDot } from './dot.js'
import { type Look, themeStyle } from './look.js'
import { drawOverview } from './overview-svg.js'

/** Helvetica, which Graphviz measures, may not be installed. Text is laid out larger so that a wider font fits. */
const fontScale = 0.87

/**
 * Draws a machine as SVG without a browser, using the optional package `@hpcc-js/wasm-graphviz`. The chart is laid out
 * twice. The second pass knows the card positions and routes each edge from the side facing its target. The picture
 * supports dark mode. Groups have `data-state` with a state's path, or `data-transition` with transition ids, one per
 * line.
 *
 * @example const svg = await toSvg(toChart(agentMachine), { state: 'RUNNING' })
 * @throws {DiagramError} `layout_failed`, `unknown_state`
 * @throws {StatewrightError} `missing_package`
 */
export async function toSvg(chart: Chart, options: DotOptions = {}): Promise<string> {
  expectChart('toSvg', chart, 'options', options)
  const layout = await loadLayout()
  const places = parsePlaces(layout(toDot(chart, options), 'plain'))
  const drawn = layout(toDot(chart, { ...options, places, isNamed: true }), 'svg')
  return finishSvg(addStateAttributes(drawn, chart), options.state ?? chart.id)
}

/**
 * Draws the top-level states, or the states inside `state`, and the transitions between them. Needs no optional
 * package. The picture supports dark mode and has the same data attributes as `toSvg`.
 *
 * @example await writeFile('overview.svg', await toOverviewSvg(toChart(machine)))
 * @throws {DiagramError} `unknown_state`
 */
export async function toOverviewSvg(chart: Chart, look?: Look, state?: string): Promise<string> {
  expectChart('toOverviewSvg', chart, 'look', look)
  return drawOverview(chart, look, state)
}

async function loadLayout(): Promise<(dot: string, format: 'svg' | 'plain') => string> {
  const peer = await loadPeer<{ Graphviz: typeof Graphviz }>('@hpcc-js/wasm-graphviz', 'Drawing an SVG')
  const graphviz = await peer.Graphviz.load()
  return (dot, format) => {
    try {
      return graphviz.layout(dot, format, 'dot')
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      throw new DiagramError('layout_failed', `Graphviz could not draw the diagram: ${why}`, undefined, {
        cause: error,
      })
    }
  }
}

function parsePlaces(plain: string): Places {
  const nodes = plain.matchAll(/^node (\S+) ([\d.e+-]+) ([\d.e+-]+) /gm)
  return new Map([...nodes].map(([, name = '', x, y]) => [name, { x: Number(x), y: Number(y) }]))
}

/** Replaces Graphviz's ids with data attributes and removes the links. */
function addStateAttributes(svg: string, chart: Chart): string {
  const states = flattenStates(chart.root)
  const getName = createNodeNames(chart)
  const ids = new Map(states.map(({ id }) => [getName(id), id]))
  const transitions = states.flatMap((state) => state.transitions.map(({ id }) => id))
  const attribute = (places: string): string =>
    formatTransitions(places.split(',').map((place) => transitions[Number(place)] ?? ''))
  return svg
    .replaceAll(/<g id="(n\d+)" class="(?:node|cluster)">/g, (_, name: string) => {
      return `<g class="state" data-state="${escapeXml(ids.get(name) ?? '')}">`
    })
    .replaceAll(
      /<g id="t([\d,]+)" class="edge">/g,
      (_, places: string) => `<g class="way" ${attribute(places)}>`,
    )
    .replaceAll(/<g id="a_[^"]*"><a xlink:href="#t(\d+)"[^>]*>/g, (_, place: string) => {
      return `<g class="row" ${attribute(place)}><g>`
    })
    .replaceAll('</a>', '</g>')
}

function finishSvg(svg: string, title: string): string {
  return (
    svg
      .replaceAll(/^<title>.*<\/title>\n/gm, '')
      .replace(
        /font-size="([\d.]+)"/g,
        (_, size: string) => `font-size="${(Number(size) * fontScale).toFixed(2)}"`,
      )
      // The padding was needed only for the layout.
      .replaceAll(/(?:&#160;|[ \u00a0])+<\/text>/g, '</text>')
      .replaceAll(/font-family="Helvetica[^"]*"/g, 'font-family="Helvetica,Arial,sans-serif"')
      .replace(
        /<svg [^>]*>/,
        (svg) =>
          `${svg.replace('<svg ', `<svg role="img" aria-label="${escapeXml(title)}" `)}\n${themeStyle}`,
      )
  )
}
