import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describeError, StatewrightError } from '../core/base/errors.js'
import { closeServer, isForHere, isFromHere, isSecret, listenHere, newSecret, readToken } from './loopback.js'
import type { LiveFeed } from './live-feed.js'
import {
  type ClientCode,
  commonHeaders,
  pageHtml,
  pagePolicy,
  readClient,
  unbuiltPageHtml,
} from './studio-page.js'
import type { Refusal } from './protocol.js'
import { findRoute, resolvers, type RouteParts } from './resolvers.js'
import { toShownText } from './shown-values.js'

const maxBodyBytes = 1_000_000

interface ServerParts extends RouteParts {
  feed: LiveFeed
  editor: string | undefined
}

/**
 * Accepts only the browser that opened the address with the token, and only requests from the studio's pages.
 * @throws {StatewrightError} `cannot_listen`
 */
export async function serveStudio(parts: ServerParts, wanted: number) {
  const [place, visitor] = [newSecret(), newSecret()]
  const tokens = createTokens()
  const client = await readClient()
  const server = createServer((request, response) => {
    handleRequest(request, response).catch((error: unknown) => sendError(response, error))
  })
  const port = await listenHere(server, wanted, 'The studio')
  // Cookies ignore ports, so a server on another port would receive ours and could replace it. A secret path prevents
  // both.
  const base = `/${place}/`
  const cookie = `statewright-${port}`

  async function handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    if (!isForHere(request, port) || !isFromHere(request, port)) return sendForbidden(response)
    const token = method === 'GET' ? readToken(request) : null
    if (token !== null) {
      const use = tokens.use(token)
      if (use === 'unknown') return sendForbidden(response)
      const setCookie = `${cookie}=${visitor}; HttpOnly; SameSite=Strict; Path=${base}`
      const welcome = use === 'first' ? { 'set-cookie': setCookie } : {}
      response.writeHead(303, { ...commonHeaders, location: base, ...welcome }).end()
      return
    }
    if (!url.startsWith(base)) return sendForbidden(response)
    const path = url.slice(base.length - 1)
    if (!listCookies(request, cookie).some((one) => isSecret(one, visitor)))
      return sendForbidden(response, 'opened')
    if (path !== '/' && isCrossSite(request)) return sendForbidden(response)
    const file = method === 'GET' ? findFile(path, client, parts.editor) : null
    if (file) {
      response.writeHead(200, { ...commonHeaders, ...file.headers }).end(file.body)
      return
    }
    const route = findRoute(method, path)
    if (route?.name === 'GET live') {
      response.writeHead(200, { ...commonHeaders, 'content-type': 'text/event-stream; charset=utf-8' })
      // Reconnection delay in milliseconds.
      response.write('retry: 1000\n\n')
      const { params } = route
      return parts.feed.addViewer(response, params.get('session'), Number(params.get('after')) || 0)
    }
    const body = route && method === 'POST' ? await readBody(request) : undefined
    parts.prefetcher.noteRequest()
    const value = route && (await resolvers[route.name](parts, { ...route, body }))
    parts.prefetcher.noteRequest()
    if (value === null)
      throw new StatewrightError('not_found', `Nothing found at ${method} ${toShownText(path, 200)}.`)
    if (method === 'POST') parts.feed.pollSoon()
    response
      .writeHead(200, { ...commonHeaders, 'content-type': 'application/json; charset=utf-8' })
      .end(JSON.stringify(value))
  }

  return {
    url: () => `http://127.0.0.1:${port}/?token=${tokens.getFresh()}`,
    close: () => {
      parts.prefetcher.close()
      parts.feed.close()
      return closeServer(server)
    },
  }
}

function findFile(
  url: string,
  client: ClientCode | null,
  editor: string | undefined,
): { headers: Record<string, string>; body: string } | null {
  const toFile = (kind: string, body: string | undefined, more = {}) =>
    body === undefined ? null : { headers: { 'content-type': `text/${kind}; charset=utf-8`, ...more }, body }
  if (url === '/')
    return toFile('html', client ? pageHtml : unbuiltPageHtml, {
      'content-security-policy': pagePolicy(editor),
    })
  if (url === '/client.css') return toFile('css', client?.style)
  return toFile('javascript', client?.scripts.get(url))
}

/** A page on another port is same-site: the browser sends the cookie, and omits the origin for plain loads. */
function isCrossSite({ headers }: IncomingMessage): boolean {
  return !['same-origin', 'none', undefined].includes(headers['sec-fetch-site'] as string | undefined)
}

/** Another server may also have set a cookie with this name. */
function listCookies({ headers: { cookie = '' } }: IncomingMessage, name: string): string[] {
  const all = cookie.split(';').map((one) => one.trim())
  return all.filter((one) => one.startsWith(`${name}=`)).map((one) => one.slice(name.length + 1))
}

/** Each token works for one browser only, so a token found later in a terminal or a log is useless. */
function createTokens() {
  const used: string[] = []
  let fresh = newSecret()
  return {
    getFresh: (): string => fresh,
    use(token: string): 'first' | 'again' | 'unknown' {
      if (!isSecret(token, fresh)) return used.some((one) => isSecret(token, one)) ? 'again' : 'unknown'
      used.push(fresh)
      fresh = newSecret()
      return 'first'
    },
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const { origin, 'content-type': type = '' } = request.headers
  if (origin === undefined || !/^application\/json(;|$)/i.test(type)) {
    throw new StatewrightError('forbidden', 'Only studio pages can post, and only JSON.')
  }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes) {
      throw new StatewrightError('too_large', `A request can have at most ${maxBodyBytes} bytes.`)
    }
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch (cause) {
    throw new StatewrightError('invalid_input', 'The request is not valid JSON.', undefined, { cause })
  }
}

const forbiddenMessages = {
  stranger: 'Open the address that the studio printed, including its token.\n',
  opened:
    'This address works once, and another browser has already opened it. Get a new address where the studio was started: ' +
    'in the terminal of statewright studio, press Enter.\n',
}

function sendForbidden(response: ServerResponse, why: keyof typeof forbiddenMessages = 'stranger'): void {
  response
    .writeHead(403, { ...commonHeaders, 'content-type': 'text/plain; charset=utf-8' })
    .end(forbiddenMessages[why])
}

const statusByCode: Record<string, number> = {
  forbidden: 403,
  read_only: 403,
  not_found: 404,
  unknown_session: 404,
  too_large: 413,
  invalid_input: 400,
  invalid_answer: 400,
  invalid_option: 400,
  store_unavailable: 503,
}

function sendError(response: ServerResponse, error: unknown): void {
  const isTyped = error instanceof StatewrightError
  const code = isTyped ? error.code : 'internal'
  const refusal: Refusal = {
    error: {
      code,
      message: toShownText(isTyped ? error.message : describeError(error), 2_000),
      ...(isTyped && error.subject !== undefined && { key: toShownText(error.subject, 200) }),
    },
  }
  if (response.headersSent) {
    response.destroy()
    return
  }
  // Closes the connection, because the rest of the body is not read.
  const closing = code === 'too_large' ? { connection: 'close' } : {}
  response
    .writeHead(statusByCode[code] ?? (isTyped ? 409 : 500), {
      ...commonHeaders,
      ...closing,
      'content-type': 'application/json; charset=utf-8',
    })
    .end(JSON.stringify(refusal))
}
