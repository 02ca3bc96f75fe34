import { anyOptions, expectArgument } from '../core/base/expect-argument.js'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InspectionEvent, Observer } from 'xstate'
import { loadPeer } from '../core/base/load.js'
import { closeServer, hasToken, isForHere, isFromHere, listenHere, newSecret } from './loopback.js'
import { openPage, refuse } from './page.js'
import { redacted, type RedactOptions } from './redact.js'
import { SentMessages } from './sent.js'

export interface LocalInspectorOptions extends RedactOptions {
  /** The port on 127.0.0.1. Default 0: any that is free. */
  port?: number
  /**
   * The machine drawn as SVG, for the page to show where stately.ai does not answer within 9 seconds. Whatever has a
   * `data-state="PATH"` in it is marked while the machine is there, as in what `toOverviewSvg` draws. Default: its states as
   * a list.
   */
  chart?: string | undefined
}

export interface LocalInspector {
  /** For `createAgent`, for `run()`, or for XState's `createActor`. */
  inspect: Observer<InspectionEvent>
  /** The page to open in a browser on this machine. Whoever knows it can watch: it holds a token. */
  url: string
  /** The same events for programs: `createWebSocketReceiver({ server: socketUrl })`. */
  socketUrl: string
  /** Settles when the first viewer is connected. */
  viewed: Promise<void>
  /** Sends what is still to be sent, and stops listening. May be called more than once. */
  close(): Promise<void>
}

/** How long `close` waits for a viewer who does not take what he is sent, in milliseconds. */
const farewellMs = 2000

/**
 * Shows the runs of a Node program in Stately's inspector: a page on 127.0.0.1, behind a token. Contents are cut and
 * secrets scrubbed before anything is sent. It does not keep the process alive.
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
  expectArgument('startInspector(options)', options, anyOptions)
  const { createInspector } = await loadPeer<StatelyInspect>('@statelyai/inspect', 'Inspecting runs')
  const { WebSocketServer } = await loadPeer<Ws>('ws', 'Inspecting runs from Node')
  const token = newSecret()
  const server = createServer(answer)
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 })
  const log = new SentMessages(1)

  const port = await listenHere(server, options.port ?? 0, 'The inspector')
  server.unref()
  const query = `?token=${token}`
  const socketUrl = `ws://127.0.0.1:${port}/${query}`
  const sendPage = openPage({
    port,
    token,
    chart: options.chart,
    isWatched: true,
    config: {
      frameUrl: 'https://stately.ai/inspect',
      frameName: "Stately's inspector",
      greeting: '@statelyai.connected',
      feedUrl: socketUrl,
    },
  })

  function answer(request: IncomingMessage, response: ServerResponse): void {
    if (!sendPage(request, response)) refuse(response)
  }

  const viewed = new Promise<void>((resolve) => {
    server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      if (!isForHere(request, port) || !isFromHere(request, port) || !hasToken(request, '/', token)) {
        stream.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
        return
      }
      sockets.handleUpgrade(request, stream, head, (socket) => {
        if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
        socket.on('error', () => {
          socket.terminate()
        })
        for (const message of log) socket.send(message)
        resolve()
      })
    })
  })

  const { inspect } = createInspector(
    {
      send: (event) => {
        const message = JSON.stringify(event)
        log.add(message)
        for (const socket of sockets.clients) socket.send(message)
      },
    },
    redacted(options),
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

async function close(server: Server, sockets: WebSocketServer): Promise<void> {
  // The inspector converts each event a moment after it has happened.
  await sleep(1)
  const left = [...sockets.clients].map(
    (socket) =>
      new Promise<void>((resolve) => {
        socket.on('close', resolve)
        // Comes after all that was sent before.
        socket.close(1000)
      }),
  )
  const patience = new AbortController()
  await Promise.race([
    Promise.all(left),
    sleep(farewellMs, undefined, { signal: patience.signal }).catch(() => undefined),
  ])
  patience.abort()
  for (const socket of sockets.clients) socket.terminate()
  await closeServer(server)
}

/** The parts of the optional packages that are used. */
interface StatelyInspect {
  createInspector: (
    adapter: { send(event: object): void },
    options: ReturnType<typeof redacted>,
  ) => { inspect: Observer<InspectionEvent> }
}

interface Ws {
  WebSocketServer: new (options: { noServer: true; maxPayload: number }) => WebSocketServer
}

interface WebSocketServer {
  clients: ReadonlySet<WebSocketClient>
  handleUpgrade(
    request: IncomingMessage,
    stream: Duplex,
    head: Buffer,
    done: (socket: WebSocketClient) => void,
  ): void
}

interface WebSocketClient {
  send(message: string): void
  close(code: number): void
  terminate(): void
  on(event: 'error' | 'close', listener: () => void): void
}
