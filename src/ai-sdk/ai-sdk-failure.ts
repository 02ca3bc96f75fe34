import type { ModelFailure } from '../../machines/agent/model-response.js'
import { systemClock } from '../core/base/clock.js'
import { parseJsonOr, readProperty, readText } from '../core/base/json.js'
import { findRefusedContent } from '../core/models/error-body.js'
import { toBodyFailure, getFatalAdvice, toModelFailure } from '../core/models/to-model-failure.js'
import { ModelError } from '../core/models/provider.js'

/** Errors are identified by name, because each version of a package has its own classes. */
export function toModelError(
  error: unknown,
  modelId: string,
  partial: Pick<ModelFailure, 'partialText' | 'usage'>,
): ModelError {
  if (error instanceof ModelError) return new ModelError({ ...error.failure, ...partial }, { cause: error })
  const failure = toFailure(error, modelId)
  // The package's error is not kept as the cause, because it contains the request.
  return new ModelError({ ...failure, ...partial, usage: failure.usage ?? partial.usage })
}

function toFailure(error: unknown, modelId: string): ModelFailure {
  const name = readText(error, 'name')
  const message = readText(error, 'message')
  switch (name) {
    case 'AI_APICallError':
      return toCallFailure(error)
    case 'AI_LoadAPIKeyError':
      return fatalFailure('missing_api_key', `The API key for ${modelId} is missing. ${message}`)
    case 'AI_LoadSettingError':
      return fatalFailure('missing_setting', `A setting for ${modelId} is missing. ${message}`)
    case 'AI_NoSuchModelError':
      return fatalFailure('model_not_found', `${message}. Check the model name.`)
    case 'AI_UnsupportedFunctionalityError':
      return unsupportedContent(`${modelId} does not support this request. ${message}`)
    case 'AI_InvalidPromptError':
    case 'AI_InvalidArgumentError':
      return fatalFailure('invalid_request', `The package for ${modelId} rejected the request. ${message}`)
    case 'AI_InvalidResponseDataError':
      return /without a finish reason/i.test(message)
        ? createFailure('incomplete', 'incomplete_response', message)
        : malformedFailure(message)
    case 'AI_JSONParseError':
    case 'AI_TypeValidationError':
    case 'AI_EmptyResponseBodyError':
    case 'AI_NoContentGeneratedError':
      return malformedFailure(message)
    default:
      // v4 packages use this message if the first chunk is not valid JSON.
      if (/normalized .{1,40} stream error/i.test(message)) return malformedFailure(message)
      if (error instanceof Error) return toModelFailure(error)
  }
  // An error object from the provider within a stream, with the status if the package knows it.
  const status = readProperty(error, 'statusCode')
  return toBodyFailure(typeof status === 'number' ? { error: { ...(error as object), status } } : { error })
}

function toCallFailure(error: unknown): ModelFailure {
  const status = readProperty(error, 'statusCode')
  const cause = readProperty(error, 'cause')
  const text = readText(error, 'responseBody')
  // The connection failed, possibly during an answer with status 200.
  const lost = cause === undefined ? null : toModelFailure(cause)
  if (lost?.kind === 'transient') return lost
  if (typeof status !== 'number') return toModelFailure(error)
  const body = parseJsonOr(text, undefined) ?? text
  // The package put one of its own errors in place of a response body.
  if (readText(body, 'name').startsWith('AI_')) return malformedFailure(readText(body, 'text'))
  // With status 200, the body is an error, or something other than an answer.
  if (status < 300) {
    const reported = readProperty(body, 'error')
    return reported === undefined || reported === null
      ? malformedFailure(readText(cause, 'message') || readText(error, 'message'))
      : toBodyFailure(body)
  }
  const headers = readProperty(error, 'responseHeaders')
  const message = text === '' ? readText(error, 'message') : ''
  return toModelFailure({ status, headers, body, message }, systemClock.now(), getAdvice)
}

function getAdvice(status: number): string {
  if (status === 401)
    return 'Check the API key of the provider package, and that it is valid for this address.'
  if (status === 404 || status === 405) return "Check the model name and its provider's baseURL."
  if (status === 402 || status === 403 || status === 429) return getFatalAdvice(status)
  return 'Check the model name, the API key and the request (sampling, providerOptions, tools).'
}

/** Keeps the first line, because these errors repeat the whole response. */
function malformedFailure(message: string): ModelFailure {
  const { message: first } = toModelFailure(new Error(message.split('\n')[0]))
  return createFailure('transient', 'malformed_response', `The provider's answer cannot be read: ${first}`)
}

const fatalFailure = (code: string, message: string): ModelFailure => createFailure('fatal', code, message)

export function unsupportedContent(message: string): ModelFailure {
  const code = 'unsupported_content'
  const refused = findRefusedContent(null, { code, type: '', param: '', message })
  return { ...fatalFailure(code, message), ...(refused && { refused }) }
}

function createFailure(kind: ModelFailure['kind'], code: string, message: string): ModelFailure {
  return { kind, code, message, status: null, retryAfterMs: null, partialText: '', usage: null }
}

export const unsupportedPauseError = (): ModelError =>
  new ModelError(
    fatalFailure(
      'unsupported_pause',
      'The model paused after it summarized the conversation. Remove pauseAfterCompaction from providerOptions so that it continues.',
    ),
  )

export const unsupportedApprovalError = (callId: string): ModelError =>
  new ModelError(
    fatalFailure(
      'unsupported_approval',
      `The provider requests approval for its own tool (${callId}), which is not supported. Disable the approval, or define the tool on the agent with needsApproval.`,
    ),
  )
