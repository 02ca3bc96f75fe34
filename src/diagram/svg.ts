import type { Graphviz } from '@hpcc-js/wasm-graphviz'
import { loadPeer } from '../core/base/load.js'
import { text } from './card.js'
import type { Chart } from './chart.js'
import { type DotOptions, type Places, toDot } from './dot.js'
import { DiagramError } from './errors.js'
import type { Look } from './look.js'
import { drawOverview } from './overview-svg.js'
import { themeStyle } from './theme.js'

/**
 * Graphviz measures text as Helvetica, and not every machine has a font of its widths. Text is laid out larger than it
 * is drawn, so that a wider one still fits.
 */
const shrink = 0.87

/**
 * Draws a machine, without a browser. It is laid out twice: once to see where the cards come to lie, then with each
 * line leaving on the side of its target.
 * Needs the optional package `@hpcc-js/wasm-graphviz`. The picture follows a dark theme.
 *
 * @example const svg = await toSvg(chartOf(agentMachine), { state: 'RUNNING' })
 * @throws {DiagramError} `layout_failed`, `unknown_state`
 * @throws {StatewrightError} `missing_package`
 */
export async function toSvg(chart: Chart, options: DotOptions = {}): Promise<string> {
  const layout = await loadLayout()
  const places = placesOf(layout(toDot(chart, options), 'plain'))
  return finish(layout(toDot(chart, { ...options, places }), 'svg'), options.state ?? chart.id)
}

/**
 * Draws the top-level states and what leads from one to another; or those inside `state`, and what leads out of it. Needs
 * no further package. The picture follows a dark theme.
 *
 * @example await writeFile('overview.svg', await toOverviewSvg(chartOf(machine)))
 * @throws {DiagramError} `unknown_state`
 */
export async function toOverviewSvg(chart: Chart, look?: Look, state?: string): Promise<string> {
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

/** Reads the lines `node NAME x y …` of Graphviz's plain format. */
function placesOf(plain: string): Places {
  const nodes = plain.matchAll(/^node (\S+) ([\d.e+-]+) ([\d.e+-]+) /gm)
  return new Map([...nodes].map(([, name = '', x, y]) => [name, { x: Number(x), y: Number(y) }]))
}

function finish(svg: string, title: string): string {
  return (
    svg
      .replaceAll(/^<title>.*<\/title>\n/gm, '')
      .replace(
        /font-size="([\d.]+)"/g,
        (_, size: string) => `font-size="${(Number(size) * shrink).toFixed(2)}"`,
      )
      // The gaps have done their work in the layout.
      .replaceAll(/(?:&#160;|[ \u00a0])+<\/text>/g, '</text>')
      .replaceAll(/font-family="Helvetica[^"]*"/g, 'font-family="Helvetica,Arial,sans-serif"')
      .replace(
        /<svg [^>]*>/,
        (svg) => `${svg.replace('<svg ', `<svg role="img" aria-label="${text(title)}" `)}\n${themeStyle}`,
      )
  )
}
