import type { ModelFailure } from '../../machines/agent/model-response.js'
import { systemClock } from '../core/base/clock.js'
import { readProperty, parseJsonOr } from '../core/base/json.js'
import { findRefusedContent } from '../core/models/error-body.js'
import { toBodyFailure, getFatalAdvice, toModelFailure } from '../core/models/to-model-failure.js'
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
  const failure = toFailure(error, modelId)
  // What a request held stays in the package's error, which is not passed on.
  return new ModelError({ ...failure, ...partial, usage: failure.usage ?? partial.usage })
}

function toFailure(error: unknown, modelId: string): ModelFailure {
  const name = readText(error, 'name')
  const message = readText(error, 'message')
  switch (name) {
    case 'AI_APICallError':
      return toCallFailure(error)
    case 'AI_LoadAPIKeyError':
      return fatalFailure('missing_api_key', `There is no API key for ${modelId}. ${message}`)
    case 'AI_LoadSettingError':
      return fatalFailure('missing_setting', `A setting for ${modelId} is missing. ${message}`)
    case 'AI_NoSuchModelError':
      return fatalFailure('model_not_found', `${message}. Check the name of the model.`)
    case 'AI_UnsupportedFunctionalityError':
      return unsupportedContent(`${modelId} cannot take this request: ${message}`)
    case 'AI_InvalidPromptError':
    case 'AI_InvalidArgumentError':
      return fatalFailure('invalid_request', `The package of ${modelId} refused the request: ${message}`)
    case 'AI_InvalidResponseDataError':
      if (/without a finish reason/i.test(message))
        return createFailure('incomplete', 'incomplete_response', message)
      return malformedFailure(message)
    case 'AI_JSONParseError':
    case 'AI_TypeValidationError':
    case 'AI_EmptyResponseBodyError':
    case 'AI_NoContentGeneratedError':
      return malformedFailure(message)
    default:
      // What a package of v4 says of a first piece that is no JSON.
      if (/normalized .{1,40} stream error/i.test(message)) return malformedFailure(message)
      return error instanceof Error ? toModelFailure(error) : toStreamFailure(error)
  }
}

/** An HTTP error, or a connection that failed. */
function toCallFailure(error: unknown): ModelFailure {
  const status = readProperty(error, 'statusCode')
  const cause = readProperty(error, 'cause')
  const text = readText(error, 'responseBody')
  // No connection, or one that was lost while an answer of status 200 came.
  const lost = cause === undefined ? null : toModelFailure(cause)
  if (lost?.kind === 'transient') return lost
  if (typeof status !== 'number') return toModelFailure(error)
  const body = parseJsonOr(text, undefined) ?? text
  // What was wrong with the first piece of a stream, told as if the provider had said it.
  if (readText(body, 'name').startsWith('AI_')) return malformedFailure(readText(body, 'text'))
  // Of status 200: an error in the place of an answer, or no answer at all.
  if (status < 300) {
    const said = readProperty(body, 'error')
    return said === undefined || said === null
      ? malformedFailure(readText(cause, 'message') || readText(error, 'message'))
      : toBodyFailure(body)
  }
  const headers = readProperty(error, 'responseHeaders')
  const message = text === '' ? readText(error, 'message') : ''
  return toModelFailure({ status, headers, body, message }, systemClock.now(), getAdvice)
}

/** What stands in a stream for an error: an object of the provider's, with a status that its package knew. */
function toStreamFailure(error: unknown): ModelFailure {
  const status = readProperty(error, 'statusCode')
  return toBodyFailure(typeof status === 'number' ? { error: { ...(error as object), status } } : { error })
}

function getAdvice(status: number): string {
  if (status === 401)
    return "Check the API key that the provider's package was given, and that it belongs to this address."
  if (status === 404 || status === 405) return 'Check the name of the model, and the baseURL of its provider.'
  if (status === 402 || status === 403 || status === 429) return getFatalAdvice(status)
  return 'Check the name of the model, the API key and what the request has (sampling, providerOptions, tools).'
}

/** Cut to what says something: these errors repeat all that had come. */
function malformedFailure(message: string): ModelFailure {
  return createFailure(
    'transient',
    'malformed_response',
    `The provider's answer cannot be read: ${toModelFailure(new Error(message.split('\n')[0])).message}`,
  )
}

function fatalFailure(code: string, message: string): ModelFailure {
  return createFailure('fatal', code, message)
}

/** The package, or what is built on it, refuses a part before anything is sent. */
export function unsupportedContent(message: string): ModelFailure {
  const code = 'unsupported_content'
  const refused = findRefusedContent(null, { code, type: '', param: '', message })
  return { ...fatalFailure(code, message), ...(refused && { refused }) }
}

function createFailure(kind: ModelFailure['kind'], code: string, message: string): ModelFailure {
  return { kind, code, message, status: null, retryAfterMs: null, partialText: '', usage: null }
}

function readText(value: unknown, key: string): string {
  const text = readProperty(value, key)
  return typeof text === 'string' ? text : ''
}

export function unsupportedPauseError(): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'unsupported_pause',
    message:
      'The model has paused after it summarized the conversation. Leave pauseAfterCompaction out of providerOptions: it goes on by itself then.',
  })
}

export function unsupportedApprovalError(callId: string): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'unsupported_approval',
    message: `The provider asks whether its own tool may be called (${callId}), which cannot be answered here. Let it need no approval, or make it a tool of the agent with needsApproval.`,
  })
}
