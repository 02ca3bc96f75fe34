import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type * as StatelyInspect from '@statelyai/inspect'
import type * as Ws from 'ws'
import type { InspectionEvent, Observer } from 'xstate'
import { limitTime } from '../core/base/abort.js'
import { optionsRule, expectArgument } from '../core/base/values.js'
import { loadPeer } from '../core/base/platform.js'
import { createInspectorOptions, type RedactOptions } from '../diagram/redact.js'
import { closeServer, hasToken, isForHere, isFromHere, listenHere, newSecret } from './loopback.js'
import { commonHeaders } from './studio-page.js'

export interface LocalInspectorOptions extends RedactOptions {
  /** Port on 127.0.0.1. Defaults to 0, which is any free port. */
  port?: number
}

export interface LocalInspector {
  /** The observer to pass to `createAgent`, to `run()`, or to XState's `createActor`. */
  inspect: Observer<InspectionEvent>
  /**
   * The page to open in a browser on this machine. The address contains a token, and anyone who has the address can
   * watch.
   */
  url: string
  /** The address of the inspector's events for programs: `createWebSocketReceiver({ server: socketUrl })`. */
  socketUrl: string
  /** Resolves when the first viewer connects. */
  viewed: Promise<void>
  /** Sends all pending messages and stops listening. Can be called more than once. */
  close(): Promise<void>
}

const frameUrl = 'https://stately.ai/inspect'

/** Buffer size for late viewers, in characters. The oldest messages are dropped first. */
const maxKept = 16_000_000

/** Maximum time that `close` waits for a slow viewer, in milliseconds. */
const farewellMs = 2000

/**
 * Shows the runs of a Node program in Stately's inspector, a page on 127.0.0.1 behind a token. Contents are truncated
 * and secrets are removed before anything is sent. The inspector does not keep the process alive.
 *
 * Needs the optional packages `@statelyai/inspect` and `ws`.
 *
 * ```ts
 * const inspector = await startInspector()
 * console.log(inspector.url)
 * await agent.run('Hello', { inspect: inspector.inspect }).result
 * await inspector.close()
 * ```
 *
 * @throws {StatewrightError} `missing_package`, `cannot_listen`
 */
export async function startInspector(options: LocalInspectorOptions = {}): Promise<LocalInspector> {
  expectArgument('startInspector(options)', options, optionsRule)
  const { createInspector } = await loadPeer<typeof StatelyInspect>('@statelyai/inspect', 'Inspecting runs')
  const { WebSocketServer } = await loadPeer<typeof Ws>('ws', 'Inspecting runs from Node')
  const token = newSecret()
  const server = createServer(answer)
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 })
  const sent = new SentMessages()

  const port = await listenHere(server, options.port ?? 0, 'The inspector')
  server.unref()
  const query = `?token=${token}`
  const socketUrl = `ws://127.0.0.1:${port}/${query}`

  function answer(request: IncomingMessage, response: ServerResponse): void {
    if (isForHere(request, port) && hasToken(request, token)) sendPage(response, socketUrl)
    else response.writeHead(403, { 'content-type': 'text/plain' }).end('Open the address with its token.\n')
  }

  const viewed = new Promise<void>((resolve) => {
    server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      if (!isForHere(request, port) || !isFromHere(request, port) || !hasToken(request, token)) {
        stream.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
        return
      }
      sockets.handleUpgrade(request, stream, head, (socket) => {
        if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
        socket.on('error', () => socket.terminate())
        for (const message of sent.messages) socket.send(message)
        resolve()
      })
    })
  })

  const { inspect } = createInspector(
    {
      send: (event) => {
        const message = JSON.stringify(event)
        sent.add(message)
        for (const socket of sockets.clients) socket.send(message)
      },
    },
    createInspectorOptions(options),
  )

  let closing: Promise<void> | undefined
  return {
    inspect,
    url: `http://127.0.0.1:${port}/${query}`,
    socketUrl,
    viewed,
    close: () => (closing ??= close(server, sockets)),
  }
}

/** Messages for late viewers. The first one contains the machine and is never dropped. */
export class SentMessages {
  readonly messages: string[] = []
  #size = 0

  add(message: string): void {
    this.messages.push(message)
    this.#size += message.length
    while (this.#size > maxKept && this.messages.length > 2)
      this.#size -= this.messages.splice(1, 1)[0]?.length ?? 0
  }
}

function sendPage(response: ServerResponse, socketUrl: string): void {
  const nonce = randomBytes(16).toString('base64')
  const { origin } = new URL(frameUrl)
  const headers = {
    ...commonHeaders,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [
      "default-src 'none'",
      `script-src 'nonce-${nonce}'`,
      "style-src 'unsafe-inline'",
      `frame-src ${origin}`,
      `connect-src ${new URL(socketUrl).origin}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  }
  response.writeHead(200, headers).end(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Statewright in Stately's inspector</title>
<style>
html, body { height: 100%; margin: 0 }
body { display: flex; flex-direction: column; font: 15px/1.5 system-ui, sans-serif; color-scheme: light dark }
p { margin: 0; padding: 8px 16px }
p:empty { display: none }
iframe { flex: 1; border: 0 }
</style>
<p id="why" role="status"></p>
<iframe id="frame" title="Stately's inspector" src="${frameUrl}" referrerpolicy="no-referrer"></iframe>
<script nonce="${nonce}">
const [frame, why] = ['frame', 'why'].map((id) => document.getElementById(id))
const waiting = []
let isReady = false
const post = (event) => frame.contentWindow.postMessage(event, '${origin}')
addEventListener('message', ({ source, origin, data }) => {
  if (source !== frame.contentWindow || origin !== '${origin}' || data?.type !== '@statelyai.connected') return
  isReady = true
  why.textContent = ''
  waiting.splice(0).forEach(post)
})
setTimeout(() => {
  if (!isReady) why.textContent = "Stately's inspector (${origin}) has not responded for 9 seconds. It cannot be reached " +
    'from here, or has changed. Without it, use statewright run --studio or startStudio().'
}, 9000)
new WebSocket(${JSON.stringify(socketUrl)}).addEventListener('message', ({ data }) => {
  const event = JSON.parse(data)
  if (isReady) post(event)
  else waiting.push(event)
})
</script>
`)
}

async function close(server: Server, sockets: Ws.WebSocketServer): Promise<void> {
  // The inspector converts each event asynchronously.
  await sleep(1)
  const left = [...sockets.clients].map(
    (socket) =>
      new Promise<void>((resolve) => {
        socket.on('close', resolve)
        // The close frame is sent after all pending messages.
        socket.close(1000)
      }),
  )
  await limitTime({ ms: farewellMs }, Promise.all(left)).catch(() => undefined)
  for (const socket of sockets.clients) socket.terminate()
  await closeServer(server)
}
