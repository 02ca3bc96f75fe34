import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasToken, isForHere } from './loopback.js'
import { viewer, type ViewerConfig } from './viewer.js'

/** How long what is in the frame may take until our own chart is shown in its place, in milliseconds. */
const patienceMs = 9000

/** A page with somebody else's editor or inspector in a frame. */
export interface PageOptions {
  /** Where it is served. */
  port: number
  token: string
  /** Our own chart, as SVG. Without one, the states are shown as a list. */
  chart: string | undefined
  /** What is shown is for the frame alone: the page has a bar of its own only where the frame is not there. */
  isWatched: boolean
  config: Omit<ViewerConfig, 'chartUrl' | 'patienceMs'>
}

/** Answers for the page and its chart; false for what is neither, or is not to be answered. */
export function openPage({
  port,
  token,
  chart,
  isWatched,
  config,
}: PageOptions): (request: IncomingMessage, response: ServerResponse) => boolean {
  const chartUrl = chart === undefined ? null : `/chart?token=${token}`
  return (request, response) => {
    if (!isForHere(request, port)) return false
    if (hasToken(request, '/', token)) {
      const nonce = randomBytes(16).toString('base64')
      const whole = { ...config, chartUrl, patienceMs }
      response.writeHead(200, headersOf(whole, nonce)).end(htmlOf(whole, nonce, isWatched))
      return true
    }
    if (chart === undefined || !hasToken(request, '/chart', token)) return false
    response.writeHead(200, { ...pageHeaders([]), 'content-type': 'image/svg+xml' }).end(chart)
    return true
  }
}

/** To whoever has no token, or asks under another name. */
export function refuse(response: ServerResponse): void {
  response.writeHead(403, { 'content-type': 'text/plain' }).end('Open the address with its token.\n')
}

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --ink: #1f2328; --paper: #ffffff; --line: #d1d9e0; --mark: #0969da }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #3a424c; --mark: #58a6ff } }
html, body { height: 100%; margin: 0 }
body { display: flex; flex-direction: column; color: var(--ink); background: var(--paper) }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 14px; padding: 8px 16px; border-bottom: 1px solid var(--line) }
header strong { overflow-wrap: anywhere }
header input { flex: 1 1 160px; accent-color: var(--mark) }
header button { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: 6px; padding: 1px 10px }
header output { font-variant-numeric: tabular-nums }
#where { font-weight: 600; color: var(--mark) }
.watched:not(.alone) header { display: none }
#problem:empty, body:not(.alone) :is(#why, #chart), .alone iframe { display: none }
#why, #problem { margin: 0; padding: 8px 16px; border-bottom: 1px solid var(--line) }
iframe { flex: 1; border: 0; width: 100% }
#chart { flex: 1; min-height: 0; overflow: auto; padding: 16px; scroll-padding: 24px }
#chart > svg { display: block; width: 100%; height: max(100%, 700px) }
#chart > ul { line-height: 1.9 }
.active { color: var(--mark); font-weight: 600 }
svg .active { font-weight: inherit }
.state.active > :is(path, rect)[stroke]:not([stroke='none']) { stroke: var(--mark); stroke-width: 3.5 }
`

function headersOf({ frameUrl, feedUrl }: ViewerConfig, nonce: string): Record<string, string> {
  return pageHeaders([
    `script-src 'nonce-${nonce}'`,
    "style-src 'unsafe-inline'",
    `frame-src ${new URL(frameUrl).origin}`,
    `connect-src 'self' ${new URL(feedUrl).origin}`,
  ])
}

/** Only what the page needs; and its address, which holds the token, is told to nobody. */
function pageHeaders(policies: readonly string[]): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': [
      "default-src 'none'",
      ...policies,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  }
}

function htmlOf(config: ViewerConfig, nonce: string, isWatched: boolean): string {
  // No `<` of a value ends the script.
  const told = JSON.stringify(config).replaceAll('<', String.raw`\u003c`)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Statewright in ${config.frameName}</title>
<style>${style}</style>
<body${isWatched ? ' class="watched"' : ''}>
<header>
  <strong id="title">The run</strong>
  <button id="back" aria-label="One record back">‹</button>
  <button id="play">Play</button>
  <button id="next" aria-label="One record on">›</button>
  <input id="at" type="range" min="0" max="0" value="0" aria-label="Record">
  <output id="seq" for="at"></output>
  <span id="what"></span>
  <span id="where"></span>
</header>
<p id="problem" role="status"></p>
<p id="why" role="status"></p>
<iframe id="frame" title="${config.frameName}" src="${new URL(config.frameUrl).href}" referrerpolicy="no-referrer"></iframe>
<div id="chart"></div>
<script nonce="${nonce}">
(${viewer.toString()})(${told})
</script>
</body>
</html>
`
}
