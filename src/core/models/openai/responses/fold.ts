import type { Json, JsonObject } from '../../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../../machines/agent/response.js'
import type { TokenUsage } from '../../../../../machines/agent/usage.js'
import { asList, asObject, asText } from '../../as-json.js'
import { saysError } from '../../error-body.js'
import { bodyFailure } from '../../failures.js'
import { ModelError } from '../../provider.js'
import type { AnswerFormat, Fold } from '../answer-format.js'
import { type Delta, noDelta, type Warning } from '../delta.js'
import { refuseTooLarge } from '../limits.js'
import { readUsage } from '../usage.js'
import { createHostedCalls } from './hosted.js'
import { createOutputItems } from './items.js'
import { wordsOf } from './kept-items.js'
import { reconciled } from './reconcile.js'
import { responseOf, textIn, thoughtsIn } from './response-of.js'

/** Answers of the Responses API. `from`: what their items are marked with. */
export function responsesFormat(from: string): AnswerFormat {
  return { called: 'response', isWhole, createFold: () => createResponsesFold(from) }
}

function isWhole(value: unknown): boolean {
  const document = asObject(value)
  if (typeof document?.type === 'string') return false
  return document?.object === 'response' || Array.isArray(document?.output)
}

/** Events that say nothing of the answer. */
const idle = new Set(['response.created', 'response.queued', 'response.in_progress', 'keepalive', ''])

/** Events that end the answer, with all of it. */
const terminal = new Set(['response.completed', 'response.incomplete', 'response.done', 'response.failed'])

/** Events of the Responses API, or one `response`, folded into one answer. */
export function createResponsesFold(from: string): Fold {
  const items = createOutputItems()
  const hosted = createHostedCalls()
  /** As the last event that had one said it. */
  let response: JsonObject = {}
  /** The answer's own list of items; null while it has not ended, and where it lists none. */
  let output: JsonObject[] | null = null
  let ending: string | null = null
  let usage: TokenUsage | null = null
  let text = ''
  let reasoning = ''
  let progress = 0
  let size = 0
  let lost = false

  function add(delta: Delta): Delta {
    text += delta.text
    reasoning += delta.reasoning
    return delta
  }

  function hear(said: JsonObject | null): void {
    if (said === null) return
    response = { ...response, ...said }
    usage = readUsage(said.usage) ?? usage
  }

  function fail(error: unknown): never {
    throw new ModelError({ ...bodyFailure(error), partialText: text, usage })
  }

  function end(type: string): Delta {
    const status = asText(response.status)
    if (type === 'response.failed' || status === 'failed' || status === 'cancelled')
      fail({ error: response.error ?? { code: status || 'failed', message: 'the response has failed' } })
    if (status === 'queued' || (status === 'in_progress' && type === '')) throw unfinished(status)
    ending =
      type === 'response.incomplete' || status === 'incomplete' ? cutBecause(response) : status || 'completed'
    const listed = asList(response.output).flatMap(outputItem)
    if (listed.length === 0) return noDelta
    const { items: all, dropped } = reconciled(listed, items.result())
    output = all
    const told = all.flatMap((item, at) => hosted.tell(item, at, true))
    const shown = { text: rest(text, textIn(all)), reasoning: rest(reasoning, thoughtsIn(all)) }
    const warnings = dropped.length > 0 ? [leftOut(dropped)] : []
    return add({
      ...shown,
      ...(told.length > 0 && { hosted: told }),
      ...(warnings.length > 0 && { warnings }),
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
      if (type === 'error' || (saysError(event.error) && !isWhole(event))) fail(event)
      hear(isWhole(event) ? event : asObject(event.response))
      if (whole || isWhole(event)) return isWhole(event) ? end('') : noDelta
      if (terminal.has(type)) return end(type)
      const piece = asText(event.delta)
      refuseTooLarge((size += piece.length))
      if (!idle.has(type) && event.delta !== '') progress += 1
      const item = asObject(event.item)
      const at = event.output_index
      const told =
        item === null || typeof at !== 'number'
          ? []
          : hosted.tell(item, at, type === 'response.output_item.done')
      const shown = items.push(type, event)
      return add(told.length > 0 ? { ...shown, hosted: told } : shown)
    },

    lose() {
      lost ||= ending === null
    },

    flush: () => noDelta,

    partial: () => ({ text, usage }),

    response: (): ModelResponse =>
      responseOf({
        items: output ?? items.result().map(({ item }) => item),
        from,
        finishReason: ending,
        complete: ending !== null && (!lost || output !== null),
        usage,
        model: asText(response.model) || null,
        ...(asText(response.id) !== '' && { id: asText(response.id) }),
      }),
  }
}

/** What has a type is an item; a message of a server that leaves types out can be told by its words. */
function outputItem(value: Json): JsonObject[] {
  const item = asObject(value)
  if (item === null) return []
  if (typeof item.type === 'string') return [item]
  const type = 'message'
  return wordsOf(item, 'text') === '' && wordsOf(item, 'refusal') === '' ? [] : [{ ...item, type }]
}

function leftOut(dropped: readonly JsonObject[]): Warning {
  const calls = dropped
    .map(({ name, call_id: id }) => `${asText(name) || 'a tool'} (${asText(id)})`)
    .join(', ')
  return {
    code: 'calls_dropped',
    message: `The provider began calls that it neither ended nor lists in its answer, so they are not made: ${calls}.`,
  }
}

/** What has not been shown of a whole; nothing, where the whole contradicts what was. */
function rest(shown: string, whole: string): string {
  return whole.startsWith(shown) ? whole.slice(shown.length) : ''
}

/** Calls of an answer that was cut off must not run, whatever the reason is called. */
function cutBecause({ incomplete_details: details }: JsonObject): string {
  return asText(asObject(details)?.reason) === 'content_filter' ? 'content_filter' : 'max_output_tokens'
}

function unfinished(status: string): ModelError {
  return new ModelError({
    kind: 'fatal',
    code: 'unfinished_response',
    message: `The provider answered with a response that is still ${status}. Leave background out of extraBody: nobody would ask for it again.`,
  })
}
