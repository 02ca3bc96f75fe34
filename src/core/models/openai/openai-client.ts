import type { OpenAI as OpenAIClient } from 'openai'
import type { ConfigError } from '../../base/errors.js'
import { ModelError } from '../provider.js'
import { checkCredentials, isAllowedInBrowser } from './credentials.js'
import type { OpenAIOptions } from './openai-options.js'
import { type OutgoingRequest, createOutgoingRequest } from './post-request.js'
import type { RequestClient } from './plain-client.js'
import { parseJsonOr } from '../../base/json.js'

/** What servers that need no key are sent: the client insists on one. */
const placeholderKey = 'no-key-needed'

/** The client, with what a transport of ours asks of it. */
export interface OwnClient extends OpenAIClient, RequestClient {
  readonly apiKey: string | null
  /** Whether it was told (OPENAI_LOG) to log requests, which it can do only for those that it makes itself. */
  readonly logsRequests: boolean
}

/**
 * The client that makes the requests. The package is loaded here and not before, so that importing Statewright stays
 * cheap and bundlers can split it off.
 * @throws ModelError with the code of what `checkCredentials` refuses
 */
export async function loadClient(options: OpenAIOptions, path: string): Promise<OwnClient> {
  refuseMissingCredentials(options)
  const { OpenAI: Client } = await import('openai')

  // Under the same name, which is what the User-Agent says.
  class OpenAI extends Client implements OwnClient {
    #kept: Promise<OutgoingRequest> | undefined

    get logsRequests(): boolean {
      return this.logLevel === 'info' || this.logLevel === 'debug'
    }

    getOutgoing(): Promise<OutgoingRequest> {
      if (typeof options.apiKey === 'function') return this.#build()
      this.#kept ??= this.#build().catch((error: unknown) => {
        this.#kept = undefined
        throw error
      })
      return this.#kept
    }

    async #build(): Promise<OutgoingRequest> {
      const { timeoutMs } = options
      const request: Parameters<OpenAIClient['buildRequest']>[0] = {
        method: 'post',
        path,
        headers: { 'content-type': 'application/json' },
        ...(timeoutMs !== undefined && { timeout: timeoutMs }),
        // What the client's own method asks for.
        __security: { bearerAuth: true },
      }
      await this.prepareOptions(request)
      const { req, url, timeout } = await this.buildRequest(request)
      await this.prepareRequest(req, { url, options: request })
      return createOutgoingRequest(url, req.headers, timeout)
    }

    statusError(status: number, text: string, headers: Headers): Error {
      const body = parseJsonOr(text, undefined)
      return this.makeStatusError(status, body as object, body === undefined ? text : undefined, headers)
    }

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

  const build = (apiKey: OpenAIOptions['apiKey']): OwnClient =>
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

/** @throws ModelError with the code of what `checkCredentials` refuses */
export function refuseMissingCredentials(options: OpenAIOptions): void {
  try {
    checkCredentials(options)
  } catch (error) {
    throw toCredentialsError(error as ConfigError)
  }
}

/** The same refusal for a request without an earlier check. */
function toCredentialsError({ code, message }: ConfigError): ModelError {
  return new ModelError({
    kind: 'fatal',
    code,
    message,
  })
}
