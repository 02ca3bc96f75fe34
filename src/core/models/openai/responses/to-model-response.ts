import type { Json, JsonObject } from '../../../../../machines/agent/json.js'
import type { ModelResponse } from '../../../../../machines/agent/model-response.js'
import { asList, asObject, asText } from '../../../base/values.js'
import { readCitations } from '../../citations.js'
import { listDistinctCalls, type SentCall } from '../../distinct-calls.js'
import { describeMediaList } from '../../media.js'
import { ModelError } from '../../provider.js'
import { readCalls, readItemArguments } from './response-calls.js'
import { messageSeparator, toKeptItems, readWords } from './kept-items.js'
import { splitMessage } from './message-thoughts.js'
import { readPictures } from './image-items.js'

/** An answer's items, and what was said of it as a whole. */
interface ResponseAnswer extends Pick<ModelResponse, 'finishReason' | 'complete' | 'usage' | 'model' | 'id'> {
  items: readonly JsonObject[]
  from: string
}

/**
 * An answer as the loop knows it. Its text is the final answer; what the model said on the way (`phase: commentary`) is
 * its text where it has nothing else to say, and stays among its items where it has.
 * @throws ModelError `unsupported_output` for items that want an output of another kind than a function's
 */
export function toModelResponse({ items: all, from, ...answer }: ResponseAnswer): ModelResponse {
  const items = listDistinctCalls(all.map(withoutThoughts), readSentCall)
  const foreign = items.find((item) => needsOutput(item, items))
  if (foreign !== undefined && answer.complete) throw unsupportedOutputError(foreign)
  const messages = items.filter(({ type }) => type === 'message')
  const answers = messages.filter((item) => item.phase !== 'commentary' && hasWords(item))
  const said = answers.length > 0 ? answers : messages.filter(hasWords)
  const refusal = said.map((item) => readWords(item, 'refusal')).join('')
  const toolCalls = readCalls(items, from)
  const media = readPictures(items)
  const annotations = readCitations(said.flatMap(listCitations))
  const isPicture = said.length === 0 && toolCalls.length === 0
  return {
    ...answer,
    text: isPicture ? describeMediaList(media) : joinText(said),
    reasoning: joinThoughts(all),
    refusal: refusal || null,
    toolCalls,
    ...(media.length > 0 && { media }),
    ...(annotations.length > 0 && { annotations }),
    ...(answer.complete && items.length > 0 && { providerItems: { from, items: toKeptItems(items, said) } }),
  }
}

function readSentCall(item: JsonObject): SentCall | null {
  if (item.type !== 'function_call') return null
  return { id: asText(item.call_id), name: asText(item.name), arguments: readItemArguments(item) }
}

/** All that the model said, commentary included. */
export function joinText(items: readonly JsonObject[]): string {
  const messages = items.filter(({ type }) => type === 'message').map(withoutThoughts)
  return messages
    .map((item) => readWords(item, 'text'))
    .filter(Boolean)
    .join(messageSeparator)
}

/** All that it thought aloud. */
export function joinThoughts(items: readonly JsonObject[]): string {
  return items.flatMap(listThoughts).join(messageSeparator)
}

function listCitations({ content }: JsonObject): readonly Json[] {
  return asList(content).flatMap((part) => asList(asObject(part)?.annotations))
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

/** A message without thoughts among its words. */
function withoutThoughts(item: JsonObject): JsonObject {
  return item.type === 'message' ? splitMessage(item).message : item
}

/** A call, of no function, that the provider does not answer itself: it has an id for an output, and no output follows. */
function needsOutput({ type, call_id: id }: JsonObject, items: readonly JsonObject[]): boolean {
  const kind = asText(type)
  if (!kind.endsWith('_call') || kind === 'function_call' || typeof id !== 'string') return false
  return !items.some((item) => item.call_id === id && asText(item.type).endsWith('_output'))
}

function unsupportedOutputError({ type, name, call_id: id }: JsonObject): ModelError {
  const called = [asText(name), asText(id)].filter(Boolean).join(', ')
  return new ModelError({
    kind: 'fatal',
    code: 'unsupported_output',
    message:
      `The model's ${asText(type)}${called && ` (${called})`} wants an output of a kind that only you could give. ` +
      "Take its tool out of hostedTools: the agent's own tools are functions.",
  })
}
