import type { OpenAI as OpenAIClient } from 'openai'
import { ConfigError } from '../../errors.js'
import { ModelError } from '../provider.js'
import { isHttp, type OpenAIChatOptions } from './options.js'

const officialURL = 'https://api.openai.com/v1'

/** What servers that need no key are sent: the client insists on one. */
const placeholderKey = 'no-key-needed'

/**
 * The client that makes the requests. The package is loaded here and not before, so that importing Statewright stays
 * cheap and bundlers can split it off.
 * @throws ModelError `missing_api_key`
 */
export async function loadClient(options: OpenAIChatOptions): Promise<OpenAIClient> {
  const { OpenAI: Client } = await import('openai')

  // Under the same name, which is what the User-Agent says.
  class OpenAI extends Client {
    /** Keeps the whole body of an error: the client drops what is not under `error`. */
    protected override makeStatusError(
      status: number,
      body: object,
      text: string | undefined,
      headers: Headers,
    ) {
      return Object.assign(super.makeStatusError(status, body, text, headers), { body: body ?? text })
    }
  }

  const build = (apiKey: OpenAIChatOptions['apiKey']): OpenAIClient =>
    new OpenAI({
      apiKey,
      baseURL: options.baseURL,
      organization: options.organization,
      project: options.project,
      defaultHeaders: options.headers,
      defaultQuery: options.query,
      fetch: options.fetch,
      ...(options.dangerouslyAllowBrowser !== undefined && {
        dangerouslyAllowBrowser: options.dangerouslyAllowBrowser,
      }),
    })

  if (options.apiKey) return build(options.apiKey)
  try {
    return build(undefined)
  } catch {
    // No key in the environment either. If that is not what was wrong, the next line throws it again.
    const keyless = build(placeholderKey)
    if (new URL(keyless.baseURL).host !== new URL(officialURL).host) return keyless
    throw missingKey()
  }
}

/** The base URL of a client that is not built yet: the option, the environment, OpenAI's. */
export function baseURLOf({ client, baseURL }: OpenAIChatOptions): string {
  if (client !== undefined) return isHttp(client.baseURL) ? client.baseURL : officialURL
  if (baseURL !== undefined) return baseURL
  const fromEnvironment = environment().OPENAI_BASE_URL?.trim()
  if (!fromEnvironment) return officialURL
  if (isHttp(fromEnvironment)) return fromEnvironment
  throw new ConfigError('invalid_option', 'OPENAI_BASE_URL must be an http(s) URL.', 'OPENAI_BASE_URL')
}

/** The environment where there is one; browsers and workers have none. */
function environment(): Record<string, string | undefined> {
  const scope: { process?: { env?: Record<string, string | undefined> } } = globalThis
  return scope.process?.env ?? {}
}

function missingKey(): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'missing_api_key',
    message:
      'There is no API key. Set OPENAI_API_KEY, or the apiKey option of openaiChat; for a server that needs none, set baseURL.',
    status: null,
    retryAfterMs: null,
    partialText: '',
    usage: null,
  })
}
