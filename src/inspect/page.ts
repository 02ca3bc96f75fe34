/** Where Stately's inspector lives; the page shows it in a frame and hands it what arrives. */
export const inspectorUrl = 'https://stately.ai/inspect'

/** The page that a person opens: the inspector in a frame, fed from the socket on this machine. */
export function inspectorPage(socketUrl: string, nonce: string): string {
  const origin = JSON.stringify(new URL(inspectorUrl).origin)
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Statewright in Stately's inspector</title>
<style>html, body, iframe { width: 100%; height: 100%; margin: 0; border: 0; display: block }</style>
<iframe src="${inspectorUrl}"></iframe>
<script nonce="${nonce}">
  const frame = document.querySelector('iframe').contentWindow
  const waiting = []
  let ready = false
  const pass = (event) => ready ? frame.postMessage(event, ${origin}) : waiting.push(event)
  addEventListener('message', ({ source, data }) => {
    if (source !== frame || data?.type !== '@statelyai.connected') return
    ready = true
    waiting.splice(0).forEach(pass)
  })
  new WebSocket(${JSON.stringify(socketUrl)}).onmessage = ({ data }) => pass(JSON.parse(data))
</script>
`
}

/** Only what the page needs; and its address, which holds the token, is told to nobody. */
export function pageHeaders(socketOrigin: string, nonce: string): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': [
      "default-src 'none'",
      `script-src 'nonce-${nonce}'`,
      "style-src 'unsafe-inline'",
      `frame-src ${new URL(inspectorUrl).origin}`,
      `connect-src ${socketOrigin}`,
      "frame-ancestors 'none'",
    ].join('; '),
  }
}
