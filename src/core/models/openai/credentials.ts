import { ConfigError } from '../../base/errors.js'
import type { ModelProvider } from '../provider.js'
import { isHttpUrl, hasUserInfo, noUserPhrase, type OpenAIOptions } from './openai-options.js'

export const officialURL = 'https://api.openai.com/v1'

/**
 * Refuses what no request could be made with, before one is made: a key that is missing, or one that a page would show
 * to everybody. A client of the user's own answers for itself.
 * @throws ConfigError `missing_api_key`, `browser_key`
 */
export function checkCredentials(options: OpenAIOptions): void {
  if (options.client !== undefined) return
  if (isKeyMissing(options)) {
    throw new ConfigError(
      'missing_api_key',
      'There is no API key. Set OPENAI_API_KEY, or the option apiKey; for a server that needs none, set baseURL.',
      'apiKey',
    )
  }
  if (isBrowser() && options.dangerouslyAllowBrowser !== true && hasSecret(options)) {
    throw new ConfigError(
      'browser_key',
      'The model was given a key in a browser, where everyone who opens the page can read it. Leave it out and set ' +
        'baseURL to a server of your own that adds it, or accept the risk with dangerouslyAllowBrowser: true.',
      'dangerouslyAllowBrowser',
    )
  }
}

/** Whether a page may hold the client: it says so, or there is nothing to be stolen. */
export function isAllowedInBrowser(options: OpenAIOptions): boolean {
  return options.dangerouslyAllowBrowser ?? !hasSecret(options)
}

/** The base URL of a client that is not built yet: the option, the environment, OpenAI's. */
export function getBaseURL({ client, baseURL }: OpenAIOptions): string {
  if (client !== undefined) return isHttpUrl(client.baseURL) ? client.baseURL : officialURL
  if (baseURL !== undefined) return baseURL
  const fromEnvironment = getEnvironment().OPENAI_BASE_URL?.trim()
  if (!fromEnvironment) return officialURL
  const refuse = (what: string): never => {
    throw new ConfigError('invalid_option', `OPENAI_BASE_URL ${what}`, 'OPENAI_BASE_URL')
  }
  if (!isHttpUrl(fromEnvironment)) return refuse('must be an http(s) URL.')
  return hasUserInfo(fromEnvironment) ? refuse(noUserPhrase) : fromEnvironment
}

/** The server behind the base URL; undefined for a client that does not say where it asks. */
export function findEndpoint(options: OpenAIOptions): ModelProvider['endpoint'] {
  const { client } = options
  if (client !== undefined && !isHttpUrl(client.baseURL)) return undefined
  const { hostname, port, protocol } = new URL(getBaseURL(options))
  const usual = protocol === 'http:' ? 80 : 443
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? usual : Number(port) }
}

/** OpenAI wants a key; a server of one's own may need none. */
function isKeyMissing(options: OpenAIOptions): boolean {
  const { OPENAI_API_KEY, OPENAI_ADMIN_KEY } = getEnvironment()
  const isThere = Boolean(options.apiKey || OPENAI_API_KEY?.trim() || OPENAI_ADMIN_KEY?.trim())
  return !isThere && new URL(getBaseURL(options)).host === new URL(officialURL).host
}

function hasSecret({ apiKey, headers = {} }: OpenAIOptions): boolean {
  return Boolean(apiKey) || Object.keys(headers).some((name) => /auth|key|token|secret|cookie/i.test(name))
}

/** As the `openai` client sees it. */
function isBrowser(): boolean {
  const scope: { window?: { document?: unknown }; navigator?: unknown } = globalThis
  return scope.window?.document !== undefined && scope.navigator !== undefined
}

/** A variable without blanks around it; undefined where it is empty, or there is no environment. */
export function getEnvironmentVariable(name: string): string | undefined {
  return getEnvironment()[name]?.trim() || undefined
}

/** The environment where there is one; browsers and workers have none. */
function getEnvironment(): Record<string, string | undefined> {
  const scope: { process?: { env?: Record<string, string | undefined> } } = globalThis
  return scope.process?.env ?? {}
}
