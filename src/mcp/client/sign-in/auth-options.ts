import { optional, predicate, anyText, callable, nonEmptyText, record } from '../../../core/config/kind.js'
import { readProperty } from '../../../core/base/json.js'
import type { McpTokenStore } from './token-store.js'

/**
 * How the user signs in at a server that asks for it (OAuth 2.1). The client registers itself, uses PKCE, asks for tokens
 * of this server alone, and refreshes them.
 */
export interface McpAuth {
  /** Where the authorization server sends the user back to. */
  redirectUrl: string | URL
  /**
   * Sends the user to this address, and resolves with the URL that the user came back with. Undefined: the user comes back
   * elsewhere, where `finishMcpSignIn` is called; the server cannot be used until then.
   */
  signIn: (url: URL) => string | URL | undefined | Promise<string | URL | undefined>
  /** Where the tokens are kept. Default: in memory. */
  store?: McpTokenStore
  /** What the user sees as the client's name. Default `Statewright`. */
  clientName?: string
  /** Of a client that is registered already. */
  clientId?: string
  /** Of a client that is registered already, and has a secret. */
  clientSecret?: string
  /** The https URL of the client's metadata document, for authorization servers that take one in place of a registration. */
  clientMetadataUrl?: string | URL
  /** The scopes to ask for where the server names none. */
  scope?: string
}

const isUrl = (protocols: RegExp) => (url: unknown) =>
  (typeof url === 'string' || url instanceof URL) &&
  URL.canParse(String(url)) &&
  protocols.test(new URL(url).protocol)

export const authKind = record({
  redirectUrl: predicate<string | URL>(isUrl(/:$/), 'a URL'),
  signIn: callable<McpAuth['signIn']>(),
  store: optional(
    predicate<McpTokenStore>(
      (store) => ['get', 'set', 'delete'].every((name) => typeof readProperty(store, name) === 'function'),
      'an object with get, set and delete',
    ),
  ),
  clientName: optional(nonEmptyText()),
  clientId: optional(nonEmptyText()),
  clientSecret: optional(nonEmptyText()),
  clientMetadataUrl: optional(predicate<string | URL>(isUrl(/^https:$/), 'an https URL')),
  scope: optional(anyText()),
})
