import { createHash, randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { McpAuth } from '../../src/mcp/index.js'
import { startServer } from './http-server.js'

interface AuthServer {
  url: string
  /** The sign-in requests received: paths and bodies. */
  requests: { path: string; headers: IncomingHttpHeaders; body: string }[]
  calls: number
  /** Rejects all current access tokens from now on. With `all`, also rejects refresh tokens. */
  expire: (all?: boolean) => void
  /** Changes the metadata of the resource or of the authorization server. */
  metadata: { resource: Record<string, unknown>; server: Record<string, unknown> }
}

/**
 * A server that rejects every request without a token, and the authorization server that issues tokens, at
 * one address.
 */
export async function authServer(): Promise<AuthServer> {
  const codes = new Map<string, { challenge: string; resource: string | null }>()
  const access = new Set<string>()
  const refresh = new Set<string>()
  const { url } = await startServer((message, response) => {
    let body = ''
    message.on('data', (chunk) => (body += String(chunk)))
    message.on('end', () => {
      const to = new URL(message.url ?? '/', state.url)
      if (to.pathname === '/mcp') serve(message.headers, body, response)
      else {
        state.requests.push({ path: to.pathname, headers: message.headers, body })
        authorize(to, new URLSearchParams(body), response)
      }
    })
  })
  const { origin } = new URL(url)
  const state: AuthServer = {
    url,
    requests: [],
    calls: 0,
    expire: (all) => {
      access.clear()
      if (all === true) refresh.clear()
    },
    metadata: {
      resource: { resource: `${origin}/mcp`, authorization_servers: [origin] },
      server: {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      },
    },
  }

  const json = (response: ServerResponse, value: unknown, status = 200, headers = {}): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
  }

  const giveTokens = (response: ServerResponse): void => {
    const [token, again] = [randomUUID(), randomUUID()]
    access.add(token)
    refresh.add(again)
    json(response, { access_token: token, token_type: 'Bearer', expires_in: 3600, refresh_token: again })
  }

  const authorize = (to: URL, form: URLSearchParams, response: ServerResponse): void => {
    if (to.pathname.startsWith('/.well-known/oauth-protected-resource'))
      json(response, state.metadata.resource)
    else if (to.pathname === '/.well-known/oauth-authorization-server') json(response, state.metadata.server)
    else if (to.pathname === '/register') {
      const redirects = ['http://127.0.0.1/callback']
      json(response, { client_id: 'registered', redirect_uris: redirects }, 201)
    } else if (to.pathname === '/authorize') {
      const query = to.searchParams
      const code = randomUUID()
      codes.set(code, { challenge: query.get('code_challenge') ?? '', resource: query.get('resource') })
      const back = new URL(query.get('redirect_uri') ?? '')
      back.search = String(new URLSearchParams({ code, state: query.get('state') ?? '' }))
      response.writeHead(302, { location: back.href }).end()
    } else if (to.pathname === '/token' && form.get('grant_type') === 'authorization_code') {
      const grant = codes.get(form.get('code') ?? '')
      codes.delete(form.get('code') ?? '')
      const digest = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url')
      const isRight = grant?.challenge === digest && grant.resource === form.get('resource')
      if (isRight) giveTokens(response)
      else json(response, { error: 'invalid_grant', error_description: 'Not this code.' }, 400)
    } else if (to.pathname === '/token') {
      if (refresh.delete(form.get('refresh_token') ?? '')) giveTokens(response)
      else json(response, { error: 'invalid_grant', error_description: 'Not this token.' }, 400)
    } else response.writeHead(404).end()
  }

  const serve = (headers: IncomingHttpHeaders, body: string, response: ServerResponse): void => {
    const token = headers.authorization?.replace('Bearer ', '') ?? ''
    if (!access.has(token)) {
      const where = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`
      json(response, { error: 'invalid_token' }, 401, { 'www-authenticate': where })
      return
    }
    if (body === '') {
      response.writeHead(405).end()
      return
    }
    const { id, method, params } = JSON.parse(body)
    if (id === undefined) response.writeHead(202).end()
    else if (method === 'initialize') {
      const { protocolVersion } = params
      const serverInfo = { name: 'safe', version: '1' }
      json(response, {
        jsonrpc: '2.0',
        id,
        result: { protocolVersion, capabilities: { tools: {} }, serverInfo },
      })
    } else if (method === 'tools/list')
      json(response, {
        jsonrpc: '2.0',
        id,
        result: { tools: [{ name: 'go', inputSchema: { type: 'object' } }] },
      })
    else if (method === 'tools/call') {
      state.calls += 1
      json(response, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'ok' }] } })
    } else json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Unknown.' } })
  }

  return state
}

/** A user who signs in at once. `visits` lists the addresses that the user was sent to. */
export function willing(more: Partial<McpAuth> = {}): McpAuth & { visits: URL[] } {
  const visits: URL[] = []
  return {
    redirectUrl: 'http://127.0.0.1:1/callback',
    visits,
    signIn: async (url) => {
      visits.push(url)
      return (await fetch(url, { redirect: 'manual' })).headers.get('location') ?? undefined
    },
    ...more,
  }
}
