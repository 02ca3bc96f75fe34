import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closeServer, hasToken, isForHere, isFromHere, listenHere, newSecret } from './loopback.js'
import { openPage, refuse } from './page.js'
import { SentMessages } from './sent.js'
import type { MachineStates, StatelyMessage } from './viewer.js'

/** Where Stately's editor can be embedded, without an account. */
export const editorUrl = 'https://editor.stately.ai/embed?auth=message'

export interface StatelyOptions {
  /** The machine as its editor imports it. */
  machine: MachineStates
  /** Our own chart, as SVG. */
  chart: string
  /** Another place of the editor. */
  editor?: string
  /** The port on 127.0.0.1. Default 0: any that is free. */
  port?: number
}

/** A page on this machine with Stately's editor in it. */
export interface StatelyView {
  /** Whoever knows it can watch: it holds a token. */
  url: string
  /** To everybody who watches, and to those who come later. A session begins anew. */
  tell(message: StatelyMessage): void
  close(): Promise<void>
}

/**
 * Serves a page on 127.0.0.1, behind a token, which hands what it is told to Stately's editor in a frame. It keeps the
 * process alive until it is closed.
 *
 * @throws {StatewrightError} `cannot_listen`
 */
export async function startStately(options: StatelyOptions): Promise<StatelyView> {
  const token = newSecret()
  const viewers = new Set<ServerResponse>()
  /** The machine, the session, then its frames. */
  const sent = new SentMessages(2)
  const server = createServer(answer)
  const port = await listenHere(server, options.port ?? 0, 'The page')
  const origin = `http://127.0.0.1:${port}`
  const sendPage = openPage({
    port,
    token,
    chart: options.chart,
    isWatched: false,
    config: {
      frameUrl: options.editor ?? editorUrl,
      frameName: "Stately's editor",
      greeting: '@statelyai.ready',
      feedUrl: `${origin}/feed?token=${token}`,
    },
  })

  function answer(request: IncomingMessage, response: ServerResponse): void {
    if (sendPage(request, response)) return
    if (isForHere(request, port) && isFromHere(request, port) && hasToken(request, '/feed', token))
      feed(response)
    else refuse(response)
  }

  function feed(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    for (const message of sent) response.write(message)
    viewers.add(response)
    response.on('close', () => viewers.delete(response))
  }

  const tell = (message: StatelyMessage): void => {
    const text = `data: ${JSON.stringify(message)}\n\n`
    if (message.type === 'session') {
      sent.clear()
      sent.add(first)
    }
    sent.add(text)
    for (const viewer of viewers) viewer.write(text)
  }
  const first = `data: ${JSON.stringify({ type: 'machine', machine: options.machine })}\n\n`
  sent.add(first)

  return { url: `${origin}/?token=${token}`, tell, close: () => closeServer(server) }
}
