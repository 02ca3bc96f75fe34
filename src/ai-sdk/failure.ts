import type { ModelFailure } from '../../machines/agent/model-response.js'
import { peek } from '../core/base/to-json.js'
import { bodyFailure, fatalAdvice, toModelFailure } from '../core/models/failures.js'
import { ModelError } from '../core/models/provider.js'

/**
 * What a package rejected with, or told within a stream, as a `ModelError`. Its errors are known by their names: every
 * version of a package has classes of its own.
 */
export function toModelError(
  error: unknown,
  modelId: string,
  partial: Pick<ModelFailure, 'partialText' | 'usage'>,
): ModelError {
  if (error instanceof ModelError) return new ModelError({ ...error.failure, ...partial }, { cause: error })
  const failure = failureOf(error, modelId)
  // What a request held stays in the package's error, which is not passed on.
  return new ModelError({ ...failure, ...partial, usage: failure.usage ?? partial.usage })
}

function failureOf(error: unknown, modelId: string): ModelFailure {
  const name = textAt(error, 'name')
  const message = textAt(error, 'message')
  switch (name) {
    case 'AI_APICallError':
      return callFailure(error)
    case 'AI_LoadAPIKeyError':
      return fatal('missing_api_key', `There is no API key for ${modelId}. ${message}`)
    case 'AI_LoadSettingError':
      return fatal('missing_setting', `A setting for ${modelId} is missing. ${message}`)
    case 'AI_NoSuchModelError':
      return fatal('model_not_found', `${message}. Check the name of the model.`)
    case 'AI_UnsupportedFunctionalityError':
      return fatal('unsupported_content', `${modelId} cannot take this request: ${message}`)
    case 'AI_InvalidPromptError':
    case 'AI_InvalidArgumentError':
      return fatal('invalid_request', `The package of ${modelId} refused the request: ${message}`)
    case 'AI_InvalidResponseDataError':
      if (/without a finish reason/i.test(message))
        return failure('incomplete', 'incomplete_response', message)
      return malformed(message)
    case 'AI_JSONParseError':
    case 'AI_TypeValidationError':
    case 'AI_EmptyResponseBodyError':
    case 'AI_NoContentGeneratedError':
      return malformed(message)
    default:
      // What a package of v4 says of a first piece that is no JSON.
      if (/normalized .{1,40} stream error/i.test(message)) return malformed(message)
      return error instanceof Error ? toModelFailure(error) : spokenFailure(error)
  }
}

/** An HTTP error, or a connection that failed. */
function callFailure(error: unknown): ModelFailure {
  const status = peek(error, 'statusCode')
  const cause = peek(error, 'cause')
  const text = textAt(error, 'responseBody')
  // No connection, or one that was lost while an answer of status 200 came.
  const lost = cause === undefined ? null : toModelFailure(cause)
  if (lost?.kind === 'transient') return lost
  if (typeof status !== 'number') return toModelFailure(error)
  const body = parsed(text) ?? text
  // What was wrong with the first piece of a stream, told as if the provider had said it.
  if (textAt(body, 'name').startsWith('AI_')) return malformed(textAt(body, 'text'))
  // Of status 200: an error in the place of an answer, or no answer at all.
  if (status < 300) {
    const said = peek(body, 'error')
    return said === undefined || said === null
      ? malformed(textAt(cause, 'message') || textAt(error, 'message'))
      : bodyFailure(body)
  }
  const headers = peek(error, 'responseHeaders')
  const message = text === '' ? textAt(error, 'message') : ''
  return toModelFailure({ status, headers, body, message }, Date.now(), adviceFor)
}

/** What stands in a stream for an error: an object of the provider's, with a status that its package knew. */
function spokenFailure(error: unknown): ModelFailure {
  const status = peek(error, 'statusCode')
  return bodyFailure(typeof status === 'number' ? { error: { ...(error as object), status } } : { error })
}

function adviceFor(status: number): string {
  if (status === 401)
    return "Check the API key that the provider's package was given, and that it belongs to this address."
  if (status === 404 || status === 405) return 'Check the name of the model, and the baseURL of its provider.'
  if (status === 402 || status === 403 || status === 429) return fatalAdvice(status)
  return 'Check the name of the model, the API key and what the request has (sampling, providerOptions, tools).'
}

/** Cut to what says something: these errors repeat all that had come. */
function malformed(message: string): ModelFailure {
  return failure(
    'transient',
    'malformed_response',
    `The provider's answer cannot be read: ${toModelFailure(new Error(message.split('\n')[0])).message}`,
  )
}

function fatal(code: string, message: string): ModelFailure {
  return failure('fatal', code, message)
}

function failure(kind: ModelFailure['kind'], code: string, message: string): ModelFailure {
  return { kind, code, message, status: null, retryAfterMs: null, partialText: '', usage: null }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function textAt(value: unknown, key: string): string {
  const text = peek(value, key)
  return typeof text === 'string' ? text : ''
}
