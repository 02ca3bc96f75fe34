import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../../machines/agent/usage.js'
import { asList, asObject, asText } from '../../base/values.js'
import { hasError } from '../error-body.js'
import { toBodyFailure } from '../to-model-failure.js'
import { ModelError, type HostedCall } from '../provider.js'
import {
  type AnswerFormat,
  type ResponseFold,
  type Delta,
  noDelta,
  type Warning,
  refuseTooLarge,
} from './answer-reader.js'
import { readUsage } from './read-usage.js'
import {
  createOutputItems,
  getAdded,
  type StreamedItem,
  readWords,
  isImageCall,
  readCalls,
  readItemArguments,
  messageSeparator,
  toKeptItems,
  splitMessage,
  readPictures,
  isCall,
} from './response-items.js'
import { readCitations } from '../citations.js'
import { createHostedCallTracker, listDistinctCalls, type SentCall } from '../calls.js'
import { describeMediaList } from '../media.js'

/** Creates the format of the Responses API. `from` marks the stored items. */
export function createResponsesFormat(from: string): AnswerFormat {
  return {
    displayName: 'response',
    isWhole: isWholeResponse,
    createFold: (reportsCalls = false) => createResponsesFold(from, reportsCalls),
  }
}

function isWholeResponse(value: unknown): boolean {
  const document = asObject(value)
  if (typeof document?.type === 'string') return false
  return document?.object === 'response' || Array.isArray(document?.output)
}

const silentEvents = new Set(['response.created', 'response.queued', 'response.in_progress', 'keepalive', ''])

const endEvents = new Set(['response.completed', 'response.incomplete', 'response.done', 'response.failed'])

function createResponsesFold(from: string, reportsCalls: boolean): ResponseFold {
  const items = createOutputItems(reportsCalls)
  const trackHosted = createHostedItemTracker()
  let response: JsonObject = {}
  let output: JsonObject[] | null = null
  let ending: string | null = null
  let usage: TokenUsage | null = null
  let text = ''
  let reasoning = ''
  let progress = 0
  let size = 0
  let isLost = false

  function add(delta: Delta): Delta {
    text += delta.text
    reasoning += delta.reasoning
    return delta
  }

  function noteResponse(noted: JsonObject | null): void {
    if (noted === null) return
    response = { ...response, ...noted }
    usage = readUsage(noted.usage) ?? usage
  }

  function fail(error: unknown): never {
    throw new ModelError({ ...toBodyFailure(error), partialText: text, usage })
  }

  function end(type: string): Delta {
    const status = asText(response.status)
    if (type === 'response.failed' || status === 'failed' || status === 'cancelled')
      fail({ error: response.error ?? { code: status || 'failed', message: 'the response failed' } })
    if (status === 'queued' || (status === 'in_progress' && type === '')) {
      const message = `The provider returned a response that is still ${status}. Remove background from extraBody, because the run does not poll for responses.`
      throw new ModelError({ kind: 'fatal', code: 'unfinished_response', message })
    }
    const isCut = type === 'response.incomplete' || status === 'incomplete'
    ending = isCut ? getCutReason(response) : status || 'completed'
    const listed = asList(response.output).flatMap(toOutputItems)
    if (listed.length === 0) return noDelta
    const { items: all, dropped } = reconcileItems(listed, items.result())
    output = all
    const hosted = all.flatMap((item, at) => trackHosted(item, at, true))
    return add({
      text: getAdded(joinText(all), text),
      reasoning: getAdded(joinThoughts(all), reasoning),
      ...(hosted.length > 0 && { hosted }),
      ...(dropped.length > 0 && { warnings: [createDroppedWarning(dropped)] }),
    })
  }

  return {
    get progress() {
      return progress
    },

    get ended() {
      return ending !== null
    },

    get finished() {
      return ending !== null
    },

    push(value, whole = false) {
      const event = asObject(value)
      if (event === null) return noDelta
      const type = asText(event.type)
      if (type === 'error' || (hasError(event.error) && !isWholeResponse(event))) fail(event)
      noteResponse(isWholeResponse(event) ? event : asObject(event.response))
      if (whole || isWholeResponse(event)) return isWholeResponse(event) ? end('') : noDelta
      if (endEvents.has(type)) return end(type)
      const piece = asText(event.delta)
      refuseTooLarge((size += piece.length))
      if (!silentEvents.has(type) && event.delta !== '') progress += 1
      const item = asObject(event.item)
      const at = event.output_index
      const hosted =
        item === null || typeof at !== 'number'
          ? []
          : trackHosted(item, at, type === 'response.output_item.done')
      const shown = items.push(type, event)
      return add(hosted.length > 0 ? { ...shown, hosted } : shown)
    },

    markLost() {
      isLost ||= ending === null
    },

    // A final item list has already been reported.
    flush: () => (output === null ? add(items.flush()) : noDelta),

    getPartial: () => ({ text, usage }),

    getResponse() {
      const id = asText(response.id)
      return toModelResponse(output ?? items.result().map(({ item }) => item), from, {
        finishReason: ending,
        complete: ending !== null && (!isLost || output !== null),
        usage,
        model: asText(response.model) || null,
        ...(id !== '' && { id }),
      })
    },
  }
}

/** Converts a response's output to items. Items without a type are messages if they have text. */
function toOutputItems(value: Json): JsonObject[] {
  const item = asObject(value)
  if (item === null) return []
  if (typeof item.type === 'string') return [item]
  const type = 'message'
  return readWords(item, 'text') === '' && readWords(item, 'refusal') === '' ? [] : [{ ...item, type }]
}

function createDroppedWarning(dropped: readonly JsonObject[]): Warning {
  const calls = dropped
    .map(({ name, call_id: id }) => `${asText(name) || 'a tool'} (${asText(id)})`)
    .join(', ')
  return {
    code: 'calls_dropped',
    message: `The provider started calls that it did not complete, so they are not executed: ${calls}.`,
  }
}

/** Calls in a truncated response must not run, whatever the name of the reason. */
function getCutReason({ incomplete_details: details }: JsonObject): string {
  return asText(asObject(details)?.reason) === 'content_filter' ? 'content_filter' : 'max_output_tokens'
}

/** Keyed by position, because ids may change. */
function createHostedItemTracker() {
  const track = createHostedCallTracker()
  return (item: JsonObject, at: number, hasEnded: boolean): HostedCall[] => {
    const name = findHostedName(item) ?? ''
    const id = asText(item.id) || `hosted_${at + 1}`
    // The image is reported with the message.
    const { result: _picture, ...rest } = item
    const reported = isImageCall(item) ? rest : item
    return track(`${at} ${name}`, id, name, hasEnded ? () => reported : undefined)
  }
}

/** Such as `web_search`, `code_interpreter` or `shortener.create_url` (on an MCP server). */
function findHostedName({ type, name, server_label: server }: JsonObject): string | null {
  const kind = asText(type)
  if (!kind.endsWith('_call') || kind === 'function_call' || kind === 'custom_tool_call') return null
  if (kind === 'mcp_call') return [asText(server), asText(name)].filter(Boolean).join('.') || 'mcp'
  return kind.slice(0, -'_call'.length)
}

/**
 * Commentary (`phase: commentary`) is used as the text only if there is no other text.
 * @throws ModelError `unsupported_output` for items that require an output other than a function result
 */
function toModelResponse(
  all: readonly JsonObject[],
  from: string,
  answer: Pick<ModelResponse, 'finishReason' | 'complete' | 'usage' | 'model' | 'id'>,
): ModelResponse {
  const items = listDistinctCalls(all.map(withoutThoughts), (item): SentCall | null =>
    item.type === 'function_call'
      ? { id: asText(item.call_id), name: asText(item.name), arguments: readItemArguments(item) }
      : null,
  )
  const foreign = items.find((item) => needsOutput(item, items))
  if (foreign !== undefined && answer.complete) throw unsupportedOutputError(foreign)
  const messages = items.filter(({ type }) => type === 'message')
  const answers = messages.filter((item) => item.phase !== 'commentary' && hasWords(item))
  const visible = answers.length > 0 ? answers : messages.filter(hasWords)
  const refusal = visible.map((item) => readWords(item, 'refusal')).join('')
  const toolCalls = readCalls(items, from)
  const media = readPictures(items)
  const annotations = readCitations(
    visible.flatMap(({ content }) => asList(content).flatMap((part) => asList(asObject(part)?.annotations))),
  )
  const isPicture = visible.length === 0 && toolCalls.length === 0
  return {
    ...answer,
    text: isPicture ? describeMediaList(media) : joinText(visible),
    reasoning: joinThoughts(all),
    refusal: refusal || null,
    toolCalls,
    ...(media.length > 0 && { media }),
    ...(annotations.length > 0 && { annotations }),
    ...(answer.complete &&
      items.length > 0 && { providerItems: { from, items: toKeptItems(items, visible) } }),
  }
}

/** All text, including commentary. */
function joinText(items: readonly JsonObject[]): string {
  const messages = items.filter(({ type }) => type === 'message').map(withoutThoughts)
  return messages
    .map((item) => readWords(item, 'text'))
    .filter(Boolean)
    .join(messageSeparator)
}

function joinThoughts(items: readonly JsonObject[]): string {
  return items.flatMap(listThoughts).join(messageSeparator)
}

function hasWords(item: JsonObject): boolean {
  return readWords(item, 'text') !== '' || readWords(item, 'refusal') !== ''
}

function listThoughts(item: JsonObject): string[] {
  const { type, summary, content } = item
  if (type === 'message') return splitMessage(item).thoughts
  if (type !== 'reasoning') return []
  return [...asList(summary), ...asList(content)]
    .map((part) => asText(asObject(part)?.text))
    .filter((text) => text !== '')
}

function withoutThoughts(item: JsonObject): JsonObject {
  return item.type === 'message' ? splitMessage(item).message : item
}

function needsOutput({ type, call_id: id }: JsonObject, items: readonly JsonObject[]): boolean {
  const kind = asText(type)
  if (!kind.endsWith('_call') || kind === 'function_call' || typeof id !== 'string') return false
  return !items.some((item) => item.call_id === id && asText(item.type).endsWith('_output'))
}

function unsupportedOutputError({ type, name, call_id: id }: JsonObject): ModelError {
  const called = [asText(name), asText(id)].filter(Boolean).join(', ')
  const message =
    `The model's ${asText(type)}${called && ` (${called})`} requires an output that only your program can provide. ` +
    'Remove its tool from hostedTools.'
  return new ModelError({ kind: 'fatal', code: 'unsupported_output', message })
}

/**
 * The list takes precedence. Items missing from it are added if they ended, and messages always, because they
 * were visible and paid for. A call that did not end may be incomplete.
 */
function reconcileItems(listed: readonly JsonObject[], streamed: readonly StreamedItem[]) {
  const known = pairItems(listed, streamed)
  const items = listed.map((item) => {
    const match = known.get(item)
    return match !== undefined && !hasContent(item) && hasContent(match.item) ? match.item : item
  })
  const places = listed.map((item) => known.get(item)?.at ?? null)
  const dropped: JsonObject[] = []
  const paired = new Set(known.values())
  for (const one of streamed) {
    if (paired.has(one)) continue
    if (!one.isDone) {
      if (isCall(one.item)) dropped.push(one.item)
      if (one.item.type !== 'message' || !hasContent(one.item)) continue
    }
    const after = places.findIndex((place) => place !== null && place > one.at)
    const at = after < 0 ? items.length : after
    items.splice(at, 0, one.item)
    places.splice(at, 0, one.at)
  }
  return { items, dropped }
}

/** Pairs items by id or content first, then by type. */
function pairItems(listed: readonly JsonObject[], streamed: readonly StreamedItem[]) {
  const known = new Map<JsonObject, StreamedItem>()
  const free = new Set(streamed)
  for (const isSame of [isSameItem, (a: JsonObject, b: JsonObject) => a.type === b.type]) {
    for (const item of listed) {
      const match = known.has(item) ? undefined : [...free].find((one) => isSame(item, one.item))
      if (match === undefined) continue
      known.set(item, match)
      free.delete(match)
    }
  }
  return known
}

function isSameItem(a: JsonObject, b: JsonObject): boolean {
  if (a.type !== b.type) return false
  if (a.type === 'function_call') return asText(a.call_id) !== '' && a.call_id === b.call_id
  return (
    (asText(a.id) !== '' && a.id === b.id) ||
    (a.type === 'message' && readText(a) !== '' && readText(a) === readText(b))
  )
}

function hasContent(item: JsonObject): boolean {
  if (isCall(item)) return readItemArguments(item).trim() !== ''
  return item.type !== 'message' || readText(item) !== ''
}

function readText(item: JsonObject): string {
  return readWords(item, 'text') + readWords(item, 'refusal')
}
