import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { createId } from '../../../core/base/create-id.js'
import { describeError } from '../../../core/base/describe-error.js'
import { StatewrightError } from '../../../core/base/errors.js'
import { loadClientSdk } from '../mcp-sdk.js'
import { createSignInFetch } from './sign-in-fetch.js'
import type { McpAuth } from './auth-options.js'
import { createMemoryTokens, type McpTokenStore } from './token-store.js'

/** What the store has of one server. */
interface Kept {
  client?: StoredOAuthClientInformation
  tokens?: StoredOAuthTokens
  /** The authorization server that a client id of the user's is for: the first one that was met. */
  issuer?: string
  /** The sign-in that the user has been sent to. */
  pending?: Pending
}

interface Pending {
  state: string
  verifier: string
  discovery?: OAuthDiscoveryState
}

/** Verifiers of sign-ins that began at one time; one of them is the one that the user is sent with. */
const maxVerifiers = 20

/** The sign-in at one server, for all the connections to it. */
export interface SignIn {
  /** What the SDK's transports take. */
  readonly provider: OAuthClientProvider
  /**
   * Sends the user to sign in, and exchanges what comes back. Those who ask while the user is away wait for the same.
   * @throws {StatewrightError} `mcp_sign_in`
   */
  ask(): Promise<void>
  /** Exchanges what the user came back with. @throws {StatewrightError} `mcp_sign_in` */
  finish(callback: string | URL): Promise<void>
}

export function createSignIn(url: string | URL, auth: McpAuth): SignIn {
  const address = new URL(url)
  const place = `${address.origin}${address.pathname}`
  const records = new Records(auth.store ?? createMemoryTokens(), place)
  const fail = (why: string, cause?: unknown): StatewrightError =>
    new StatewrightError('mcp_sign_in', `Signing in at the MCP server '${place}': ${why}`, place, { cause })
  /** The sign-in that is about to begin: several requests may be refused at once. */
  let begun: { state: string; verifiers: string[]; discovery?: OAuthDiscoveryState; to?: URL } | undefined
  let asking: Promise<void> | undefined

  const begin = (): NonNullable<typeof begun> => (begun ??= { state: createId(), verifiers: [] })

  const provider: OAuthClientProvider = {
    ...createCredentials(records, auth),
    state: () => begin().state,
    saveCodeVerifier: (verifier) => {
      const { verifiers } = begin()
      if (verifiers.push(verifier) > maxVerifiers) verifiers.shift()
    },
    codeVerifier: () => {
      throw fail('there is no sign-in under way.')
    },
    saveDiscoveryState: (discovery) => {
      begin().discovery = discovery
    },
    discoveryState: () => undefined,
    redirectToAuthorization: async (to) => {
      const { state, verifiers, discovery } = begin()
      if (begun === undefined || begun.to !== undefined) return
      if (!['http:', 'https:'].includes(to.protocol))
        throw fail('the address to sign in at is no http(s) URL.')
      begun.to = to
      const verifier = await findVerifier(verifiers, to.searchParams.get('code_challenge'))
      await records.change((kept) => {
        kept.pending = { state, verifier, ...(discovery && { discovery }) }
      })
    },
  }

  const finish = async (callback: string | URL): Promise<void> => {
    const params = readCallback(callback)
    if (params === undefined) throw fail('what came back is no URL.')
    let pending: Pending | undefined
    // An answer counts once, whatever comes of it.
    await records.change((kept) => {
      if (kept.pending === undefined || kept.pending.state !== params.get('state')) return
      pending = kept.pending
      delete kept.pending
    })
    if (pending === undefined)
      throw fail('what came back belongs to no sign-in that is under way. Begin again.')
    const { verifier, discovery } = pending
    const { StreamableHTTPClientTransport } = await loadClientSdk()
    const authProvider: OAuthClientProvider = {
      ...createCredentials(records, auth),
      redirectToAuthorization: () => undefined,
      saveCodeVerifier: () => undefined,
      codeVerifier: () => verifier,
      discoveryState: () => discovery,
      saveDiscoveryState: () => undefined,
    }
    const fetchFn = createSignInFetch(address)
    try {
      await new StreamableHTTPClientTransport(address, { authProvider, fetch: fetchFn }).finishAuth(params)
    } catch (error) {
      throw fail(`it was refused. ${describeError(error)}`, error)
    }
  }

  const askOnce = async (): Promise<void> => {
    try {
      const to = begun?.to
      // The SDK had what it needs after all: another has signed in meanwhile.
      if (to === undefined) return
      const callback = await auth.signIn(to)
      if (callback === undefined)
        throw fail('the user has to. Pass what comes back to finishMcpSignIn, and try again then.')
      await finish(callback)
    } catch (error) {
      throw error instanceof StatewrightError ? error : fail(describeError(error), error)
    } finally {
      begun = undefined
    }
  }

  return {
    provider,
    finish,
    ask: () =>
      (asking ??= askOnce().finally(() => {
        asking = undefined
      })),
  }
}

/** Who the client is, and what it was given: the same at the beginning of a sign-in and at its end. */
function createCredentials(
  records: Records,
  { redirectUrl, clientName = 'Statewright', clientId, clientSecret, clientMetadataUrl, scope }: McpAuth,
): Omit<OAuthClientProvider, 'redirectToAuthorization' | 'saveCodeVerifier' | 'codeVerifier'> {
  const clientMetadata: OAuthClientMetadata = {
    client_name: clientName,
    redirect_uris: [String(redirectUrl)],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    ...(clientSecret === undefined && { token_endpoint_auth_method: 'none' }),
    ...(scope !== undefined && { scope }),
  }
  /** The tokens that this process saw last: those that a server may refuse. */
  let seen: string | undefined
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
        throw new Error(`The client id '${clientId}' is for another authorization server than '${issuer}'.`)
      return records.change((kept) => {
        if (clientId === undefined) kept.client = client
        else if (issuer !== undefined) kept.issuer = issuer
      })
    },
    tokens: async () => {
      const { tokens } = await records.read()
      seen = JSON.stringify(tokens)
      return tokens
    },
    saveTokens: (tokens) =>
      records.change((kept) => {
        kept.tokens = tokens
        delete kept.pending
      }),
    invalidateCredentials: (what) =>
      records.change((kept) => {
        if (what === 'all' || what === 'client') delete kept.client
        // Another process may have refreshed them: those that it got are not refused.
        if ((what === 'all' || what === 'tokens') && JSON.stringify(kept.tokens) === seen) delete kept.tokens
        if (what === 'all' || what === 'verifier') delete kept.pending
      }),
  }
}

/** What the store has of a server, read anew each time: other processes write there, too. */
class Records {
  readonly #store: McpTokenStore
  readonly #key: string
  #last: Promise<unknown> = Promise.resolve()

  constructor(store: McpTokenStore, key: string) {
    this.#store = store
    this.#key = key
  }

  async read(): Promise<Kept> {
    try {
      const text = await this.#store.get(this.#key)
      const kept: unknown = text === undefined ? {} : JSON.parse(text)
      return typeof kept === 'object' && kept !== null ? (kept as Kept) : {}
    } catch (error) {
      // A text that is none of ours is as good as none; its words would show a secret.
      if (error instanceof SyntaxError) return {}
      throw error
    }
  }

  change(edit: (kept: Kept) => void): Promise<void> {
    const edited = async (): Promise<void> => {
      const kept = await this.read()
      edit(kept)
      await this.#store.set(this.#key, JSON.stringify(kept))
    }
    const work = this.#last.then(edited)
    this.#last = work.catch(() => undefined)
    return work
  }
}

/** The one whose digest the user is sent with (RFC 7636, S256). */
async function findVerifier(verifiers: readonly string[], challenge: string | null): Promise<string> {
  const digests = await Promise.all(
    verifiers.map((verifier) => crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))),
  )
  const found = digests.findIndex((digest) => toBase64Url(new Uint8Array(digest)) === challenge)
  return verifiers[found] ?? verifiers.at(-1) ?? ''
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

/** The parameters of a URL, or of its query alone. */
function readCallback(callback: string | URL): URLSearchParams | undefined {
  if (callback instanceof URL) return callback.searchParams
  if (callback.startsWith('?')) return new URLSearchParams(callback)
  return URL.canParse(callback) ? new URL(callback).searchParams : undefined
}
