import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { runInTurn } from '../../../core/base/maybe-promise.js'
import { createId } from '../../../core/base/platform.js'
import { parseJsonOr, readProperty } from '../../../core/base/json.js'
import { asObject } from '../../../core/base/values.js'
import { describeError, StatewrightError } from '../../../core/base/errors.js'
import { toBase64 } from '../../../core/models/media.js'
import { loadClientSdk } from '../server-wire.js'
import { createSignInFetch, type SignInFetch } from './sign-in-fetch.js'
import type { McpAuth } from './auth-options.js'
import { createMemoryTokens, type McpTokenStore } from './token-store.js'

interface SignInRecord {
  client?: StoredOAuthClientInformation
  tokens?: StoredOAuthTokens
  /** The first authorization server. The configured client id is valid only for this server. */
  issuer?: string
  pending?: Pending
}

/** A sign-in that has not been sent yet. */
interface Begun {
  state: string
  verifiers: string[]
  discovery?: OAuthDiscoveryState
  /** Resolves when the answer can arrive. */
  sent?: Promise<URL>
}

interface Pending {
  state: string
  verifier: string
  discovery?: OAuthDiscoveryState
}

/** Maximum number of verifiers for concurrent sign-ins. Only one of them is used. */
const maxVerifiers = 20

export type SignIn = ReturnType<typeof createSignIn>

export function createSignIn(url: string | URL, auth: McpAuth) {
  const address = new URL(url)
  const place = `${address.origin}${address.pathname}`
  const records = createRecords(auth.store ?? createMemoryTokens(), place)
  const fail = (why: string, cause?: unknown): StatewrightError =>
    new StatewrightError('mcp_sign_in', `Signing in to the MCP server '${place}': ${why}`, place, { cause })
  /** The sign-in in progress, which is shared by requests that are refused at the same time. */
  let begun: Begun | undefined
  let asking: Promise<void> | undefined
  /** The state of the last sign-in. Requests that were refused before that sign-in may still ask for one. */
  let endedState: string | undefined
  const refused = new Set<string>()
  const fetchFn = shareRefreshes(createSignInFetch(address), records, refused)

  const begin = (): Begun => (begun ??= { state: createId(), verifiers: [] })

  const provider: OAuthClientProvider = {
    ...createCredentials(records, auth, refused),
    state: () => begin().state,
    saveCodeVerifier: (verifier) => {
      const { verifiers } = begin()
      if (verifiers.push(verifier) > maxVerifiers) verifiers.shift()
    },
    codeVerifier: () => {
      throw fail('no sign-in is in progress.')
    },
    saveDiscoveryState: (discovery) => void (begin().discovery = discovery),
    discoveryState: () => undefined,
    redirectToAuthorization: async (to) => {
      if (!['http:', 'https:'].includes(to.protocol)) throw fail('the sign-in address is not an http(s) URL.')
      const sign = begin()
      // This sign-in has ended in the meantime.
      if (to.searchParams.get('state') === endedState || sign.discovery === undefined) return
      await (sign.sent ??= send(to, sign))
    },
  }

  /** Sends the user to the first address. Stores the verifier for the process that exchanges the answer. */
  const send = async (to: URL, { state: own, verifiers, discovery }: Begun): Promise<URL> => {
    const verifier = await findVerifier(verifiers, to.searchParams.get('code_challenge'))
    const state = to.searchParams.get('state') ?? own
    await records.change((record) => {
      record.pending = { state, verifier, ...(discovery && { discovery }) }
    })
    return to
  }

  /** @throws {StatewrightError} `mcp_sign_in` */
  const finish = async (callback: string | URL): Promise<void> => {
    const params = readCallback(callback)
    if (params === undefined) throw fail('the callback is not a URL.')
    const pending = await takePending(records, params.get('state'))
    if (pending === undefined)
      throw fail('the callback does not belong to a sign-in in progress. Start again.')
    const { verifier, discovery } = pending
    const { StreamableHTTPClientTransport } = await loadClientSdk()
    const authProvider: OAuthClientProvider = {
      ...createCredentials(records, auth, refused),
      redirectToAuthorization: () => undefined,
      saveCodeVerifier: () => undefined,
      codeVerifier: () => verifier,
      discoveryState: () => discovery,
      saveDiscoveryState: () => undefined,
    }
    try {
      await new StreamableHTTPClientTransport(address, { authProvider, fetch: fetchFn }).finishAuth(params)
    } catch (error) {
      throw fail(`it was refused. ${describeError(error)}`, error)
    }
  }

  const askOnce = async (): Promise<void> => {
    const sign = begun
    // Another process has signed in, so the SDK needs no sign-in.
    if (sign?.sent === undefined) return
    try {
      const callback = await auth.signIn(await sign.sent)
      if (callback === undefined)
        throw fail('the user must sign in. Pass the callback URL to finishMcpSignIn, then try again.')
      await finish(callback)
    } catch (error) {
      throw error instanceof StatewrightError ? error : fail(describeError(error), error)
    } finally {
      endedState = sign.state
      begun = undefined
    }
  }

  return {
    provider,
    /** Fetches addresses that the server names for the sign-in. */
    fetch: fetchFn,
    finish,
    /** Sends the user to the sign-in. Concurrent callers share it. @throws {StatewrightError} `mcp_sign_in` */
    ask: (): Promise<void> => (asking ??= askOnce().finally(() => (asking = undefined))),
  }
}

/** Refreshes in progress, across all connections and stores. */
const refreshes = new Map<string, Promise<Response>>()

/**
 * Uses each refresh token once. Stores the new tokens before the refresh ends, so that a request with the old token
 * finds either the refresh or its result.
 */
function shareRefreshes(load: SignInFetch, records: Records, refused: Set<string>): SignInFetch {
  const refresh = async (token: string, ...[to, init]: Parameters<SignInFetch>): Promise<Response> => {
    const { tokens } = await records.read()
    if (tokens !== undefined && tokens.refresh_token !== token) return Response.json(tokens)
    const response = await load(to, init)
    if (response.status === 400 || response.status === 401) refused.add(token)
    const json = (body: Response): Promise<unknown> => body.json().catch(() => null)
    const fresh = response.ok ? await json(response.clone()) : null
    if (typeof readProperty(fresh, 'access_token') === 'string')
      await records.change((record) => {
        if (record.tokens?.refresh_token === token) record.tokens = { ...record.tokens, ...(fresh as object) }
      })
    return response
  }

  return async (to, init) => {
    const token = init?.body instanceof URLSearchParams ? init.body.get('refresh_token') : null
    if (token === null) return load(to, init)
    const key = `${String(to)} ${token}`
    const work = refreshes.get(key) ?? refresh(token, to, init).finally(() => refreshes.delete(key))
    refreshes.set(key, work)
    return (await work).clone()
  }
}

/** Shared by all stores, because an authorization server revokes tokens if a code is used twice. */
const exchanged = new Set<string>()
const maxExchanged = 1_000

/** Takes a pending sign-in. An answer counts once, even if its exchange fails. */
async function takePending(records: Records, state: string | null): Promise<Pending | undefined> {
  if (state === null || exchanged.has(state)) return undefined
  let pending: Pending | undefined
  await records.change((record) => {
    if (record.pending?.state !== state) return
    pending = record.pending
    delete record.pending
  })
  // Several stores may belong to one user, so the process also remembers the state.
  if (pending === undefined || exchanged.has(state)) return undefined
  exchanged.add(state)
  const [oldest = ''] = exchanged
  if (exchanged.size > maxExchanged) exchanged.delete(oldest)
  return pending
}

/** The credentials must not change between the start and the end of a sign-in. */
function createCredentials(
  records: Records,
  { redirectUrl, clientName = 'Statewright', clientId, clientSecret, clientMetadataUrl, scope }: McpAuth,
  refused: ReadonlySet<string>,
): Omit<OAuthClientProvider, 'redirectToAuthorization' | 'saveCodeVerifier' | 'codeVerifier'> {
  const clientMetadata: OAuthClientMetadata = {
    client_name: clientName,
    redirect_uris: [String(redirectUrl)],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    ...(clientSecret === undefined && { token_endpoint_auth_method: 'none' }),
    ...(scope !== undefined && { scope }),
  }
  return {
    redirectUrl: String(redirectUrl),
    clientMetadata,
    ...(clientMetadataUrl !== undefined && { clientMetadataUrl: String(clientMetadataUrl) }),
    clientInformation: async () => {
      const { client, issuer } = await records.read()
      if (clientId === undefined) return client
      const secret = clientSecret !== undefined && { client_secret: clientSecret }
      return { client_id: clientId, ...secret, ...(issuer !== undefined && { issuer }) }
    },
    saveClientInformation: (client) => {
      const { issuer } = client
      if (clientId !== undefined && client.client_id !== clientId)
        throw new Error(
          `The client id '${clientId}' belongs to an authorization server other than '${issuer}'.`,
        )
      return records.change((record) => {
        if (clientId === undefined) record.client = client
        else if (issuer !== undefined) record.issuer = issuer
      })
    },
    tokens: async () => (await records.read()).tokens,
    saveTokens: (tokens) =>
      records.change((record) => {
        record.tokens = tokens
        delete record.pending
      }),
    invalidateCredentials: (what) =>
      records.change((record) => {
        const isClient = what === 'all' || what === 'client'
        if (isClient) delete record.client
        // Another request or process may have stored fresh tokens, which were not refused.
        const isRefused = what === 'tokens' && refused.has(record.tokens?.refresh_token ?? '')
        if (isClient || isRefused) delete record.tokens
        if (what === 'all' || what === 'verifier') delete record.pending
      }),
  }
}

/** Serializes changes to each store that has no `update`. */
const changes = new WeakMap<McpTokenStore, Promise<unknown>>()

type Records = ReturnType<typeof createRecords>

/** The record of a server. It is always read anew, because other connections and processes write to it. */
function createRecords(store: McpTokenStore, key: string) {
  return {
    read: async (): Promise<SignInRecord> => parseSignInRecord(await store.get(key)),
    async change(edit: (record: SignInRecord) => void): Promise<void> {
      const toText = (text: string | undefined): string => {
        const record = parseSignInRecord(text)
        edit(record)
        return JSON.stringify(record)
      }
      if (store.update) return store.update(key, toText)
      return runInTurn(changes, store, async () => store.set(key, toText(await store.get(key))))
    },
  }
}

/** Parses a record. Invalid text is ignored, because an error would reveal a secret. */
function parseSignInRecord(text: string | undefined): SignInRecord {
  return (asObject(parseJsonOr(text ?? '', null)) ?? {}) as SignInRecord
}

/** Finds the verifier that matches the challenge (RFC 7636, S256). */
async function findVerifier(verifiers: readonly string[], challenge: string | null): Promise<string> {
  const hash = (verifier: string) => crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const digests = await Promise.all(verifiers.map(hash))
  const texts = digests.map((digest) => toBase64(new Uint8Array(digest)))
  const found = texts.findIndex(
    (text) => text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') === challenge,
  )
  return verifiers[found] ?? verifiers.at(-1) ?? ''
}

function readCallback(callback: string | URL): URLSearchParams | undefined {
  if (callback instanceof URL) return callback.searchParams
  if (callback.startsWith('?')) return new URLSearchParams(callback)
  return URL.canParse(callback) ? new URL(callback).searchParams : undefined
}
