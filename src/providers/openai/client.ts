import type { OpenAI as OpenAIClient } from 'openai'
import type { ConfigError } from '../../errors.js'
import { ModelError } from '../provider.js'
import { checkCredentials, isAllowedInBrowser } from './credentials.js'
import type { OpenAIChatOptions } from './options.js'

/** What servers that need no key are sent: the client insists on one. */
const placeholderKey = 'no-key-needed'

/**
 * The client that makes the requests. The package is loaded here and not before, so that importing Statewright stays
 * cheap and bundlers can split it off.
 * @throws ModelError with the code of what `checkCredentials` refuses
 */
export async function loadClient(options: OpenAIChatOptions): Promise<OpenAIClient> {
  try {
    checkCredentials(options)
  } catch (error) {
    throw refused(error as ConfigError)
  }
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
      dangerouslyAllowBrowser: isAllowedInBrowser(options),
    })

  if (options.apiKey) return build(options.apiKey)
  try {
    return build(undefined)
  } catch {
    // No key in the environment either. If that is not what was wrong, the next line throws it again.
    return build(placeholderKey)
  }
}

/** The same refusal for whoever sends a request without having asked before. */
function refused({ code, message }: ConfigError): ModelError {
  return new ModelError({
    kind: 'fatal',
    code,
    message,
    status: null,
    retryAfterMs: null,
    partialText: '',
    usage: null,
  })
}
