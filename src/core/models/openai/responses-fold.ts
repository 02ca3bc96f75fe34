import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import type { TokenUsage } from '../../../../machines/agent/usage.js'
import { asList, asObject, asText } from '../../base/values.js'
import { hasError } from '../error-body.js'
import { toBodyFailure } from '../to-model-failure.js'
import { ModelError, type HostedCall } from '../provider.js'
import {
  type AnswerFormat,
  type AnswerFold,
  type Delta,
  noDelta,
  type Warning,
  refuseTooLarge,
} from './answer-reader.js'
import { readUsage } from './read-usage.js'
import { createOutputItems } from './output-items.js'
import { readWords, isImageCall } from './response-items.js'
import { reconcileItems, toModelResponse, joinText, joinThoughts } from './to-model-response.js'

/** `from` marks the stored items. */
export function createResponsesFormat(from: string): AnswerFormat {
  return {
    displayName: 'response',
    isWhole: isWholeResponse,
    createFold: (reportsCalls = false) => new ResponsesFold(from, reportsCalls),
  }
}

function isWholeResponse(value: unknown): boolean {
  const document = asObject(value)
  if (typeof document?.type === 'string') return false
  return document?.object === 'response' || Array.isArray(document?.output)
}

const silentEvents = new Set(['response.created', 'response.queued', 'response.in_progress', 'keepalive', ''])

const endEvents = new Set(['response.completed', 'response.incomplete', 'response.done', 'response.failed'])

class ResponsesFold implements AnswerFold {
  readonly #from: string
  readonly #items: ReturnType<typeof createOutputItems>
  readonly #hosted = createHostedItemTracker()
  #response: JsonObject = {}
  #output: JsonObject[] | null = null
  #ending: string | null = null
  #usage: TokenUsage | null = null
  #text = ''
  #reasoning = ''
  #progress = 0
  #size = 0
  #lost = false

  constructor(from: string, reportsCalls: boolean) {
    this.#from = from
    this.#items = createOutputItems(reportsCalls)
  }

  get progress(): number {
    return this.#progress
  }

  get ended(): boolean {
    return this.#ending !== null
  }

  get finished(): boolean {
    return this.#ending !== null
  }

  push(value: unknown, whole = false): Delta {
    const event = asObject(value)
    if (event === null) return noDelta
    const type = asText(event.type)
    if (type === 'error' || (hasError(event.error) && !isWholeResponse(event))) this.#fail(event)
    this.#noteResponse(isWholeResponse(event) ? event : asObject(event.response))
    if (whole || isWholeResponse(event)) return isWholeResponse(event) ? this.#end('') : noDelta
    if (endEvents.has(type)) return this.#end(type)
    const piece = asText(event.delta)
    refuseTooLarge((this.#size += piece.length))
    if (!silentEvents.has(type) && event.delta !== '') this.#progress += 1
    const item = asObject(event.item)
    const at = event.output_index
    const hosted =
      item === null || typeof at !== 'number'
        ? []
        : this.#hosted.track(item, at, type === 'response.output_item.done')
    const shown = this.#items.push(type, event)
    return this.#add(hosted.length > 0 ? { ...shown, hosted } : shown)
  }

  markLost(): void {
    this.#lost ||= this.#ending === null
  }

  flush(): Delta {
    // A final item list has been reported already.
    return this.#output === null ? this.#add(this.#items.flush()) : noDelta
  }

  getPartial(): Pick<ModelResponse, 'text' | 'usage'> {
    return { text: this.#text, usage: this.#usage }
  }

  getResponse(): ModelResponse {
    const { model, id } = this.#response
    return toModelResponse({
      items: this.#output ?? this.#items.result().map(({ item }) => item),
      from: this.#from,
      finishReason: this.#ending,
      complete: this.#ending !== null && (!this.#lost || this.#output !== null),
      usage: this.#usage,
      model: asText(model) || null,
      ...(asText(id) !== '' && { id: asText(id) }),
    })
  }

  #add(delta: Delta): Delta {
    this.#text += delta.text
    this.#reasoning += delta.reasoning
    return delta
  }

  #noteResponse(response: JsonObject | null): void {
    if (response === null) return
    this.#response = { ...this.#response, ...response }
    this.#usage = readUsage(response.usage) ?? this.#usage
  }

  #fail(error: unknown): never {
    throw new ModelError({ ...toBodyFailure(error), partialText: this.#text, usage: this.#usage })
  }

  #end(type: string): Delta {
    const response = this.#response
    const status = asText(response.status)
    if (type === 'response.failed' || status === 'failed' || status === 'cancelled')
      this.#fail({
        error: response.error ?? { code: status || 'failed', message: 'the response failed' },
      })
    if (status === 'queued' || (status === 'in_progress' && type === '')) throw unfinishedError(status)
    this.#ending =
      type === 'response.incomplete' || status === 'incomplete'
        ? getCutReason(response)
        : status || 'completed'
    const listed = asList(response.output).flatMap(toOutputItems)
    if (listed.length === 0) return noDelta
    const { items: all, dropped } = reconcileItems(listed, this.#items.result())
    this.#output = all
    const hosted = all.flatMap((item, at) => this.#hosted.track(item, at, true))
    const shown = {
      text: getUnshown(this.#text, joinText(all)),
      reasoning: getUnshown(this.#reasoning, joinThoughts(all)),
    }
    const warnings = dropped.length > 0 ? [createDroppedWarning(dropped)] : []
    return this.#add({
      ...shown,
      ...(hosted.length > 0 && { hosted }),
      ...(warnings.length > 0 && { warnings }),
    })
  }
}

/** Items without a type are messages if they have text. */
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

/** Returns nothing if the final text contradicts the visible one. */
function getUnshown(shown: string, whole: string): string {
  return whole.startsWith(shown) ? whole.slice(shown.length) : ''
}

/** Calls of a truncated response must not run, regardless of the name of the reason. */
function getCutReason({ incomplete_details: details }: JsonObject): string {
  return asText(asObject(details)?.reason) === 'content_filter' ? 'content_filter' : 'max_output_tokens'
}

function unfinishedError(status: string): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'unfinished_response',
    message: `The provider returned a response that is still ${status}. Remove background from extraBody, because the run does not poll for responses.`,
  })
}

/** Reports each hosted call once when it starts and once when it ends. */
function createHostedItemTracker() {
  const calls = new Map<string, { id: string; hasEnded: boolean }>()

  return {
    track(item: JsonObject, at: number, hasEnded: boolean): HostedCall[] {
      const name = findHostedName(item)
      // Keyed by position, because ids may change.
      const key = `${at} ${name ?? ''}`
      const known = calls.get(key)
      if (name === null || known?.hasEnded) return []
      const id = known?.id ?? (asText(item.id) || `hosted_${at + 1}`)
      calls.set(key, { id, hasEnded })
      const started = known ? [] : [{ id, name, item: null }]
      if (!hasEnded) return started
      // The image is reported with the message.
      const { result: _picture, ...hosted } = item
      return [...started, { id, name, item: isImageCall(item) ? hosted : item }]
    },
  }
}

/**
 * Returns names such as `web_search`, `code_interpreter` or `shortener.create_url` of an MCP server, or null for
 * other items.
 */
function findHostedName({ type, name, server_label: server }: JsonObject): string | null {
  const kind = asText(type)
  if (!kind.endsWith('_call') || kind === 'function_call' || kind === 'custom_tool_call') return null
  if (kind === 'mcp_call') return [asText(server), asText(name)].filter(Boolean).join('.') || 'mcp'
  return kind.slice(0, -'_call'.length)
}
