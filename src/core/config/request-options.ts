import type { JsonObject } from '../../../machines/agent/json.js'
import type { Sampling, ToolChoice } from '../models/provider.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { checkInput } from './check-input.js'
import * as is from './kind.js'

/** Options for every request, apart from messages and tools. */
export interface RequestOptions {
  /** The system prompt. */
  instructions?: string | undefined
  /** Sampling parameters for every request. */
  sampling?: Sampling | undefined
  /**
   * Whether the model may (`auto`, the default), must or must not call tools. `{ name }` requires a call to that
   * tool.
   */
  toolChoice?: ToolChoice | undefined
  /** Fields that are merged into every request body last. `null` removes a key. */
  extraBody?: JsonObject | undefined
}

const stopPhrase = 'a string or a list of strings'

export const requestSections = {
  instructions: is.anyText(),
  sampling: is.pipe(
    is.section({
      temperature: is.numberBetween(0, 2),
      topP: is.numberBetween(0, 1),
      maxTokens: is.count(1),
      frequencyPenalty: is.numberBetween(-2, 2),
      presencePenalty: is.numberBetween(-2, 2),
      seed: is.wholeNumber(-Infinity, Infinity, 'a whole number'),
      stop: is.union(
        [
          is.nonEmptyText(),
          is.refine(is.list(is.nonEmptyText(), stopPhrase), ({ length }) => length > 0, stopPhrase),
        ],
        stopPhrase,
      ),
      reasoningEffort: is.choice('none', 'minimal', 'low', 'medium', 'high', 'xhigh'),
    }),
    omitUndefined,
  ),
  toolChoice: is.union(
    [is.choice('auto', 'none', 'required'), is.record({ name: is.nonEmptyText() })],
    "'auto', 'none', 'required' or { name: … } with a tool's name",
  ),
  extraBody: is.map(
    is.predicate<JsonObject[string]>((value) => isJson(value), 'plain JSON'),
    'an object of plain JSON',
  ),
}

/** Validates the options. Throws a ConfigError (`invalid_config`) with all problems. */
export function resolveRequestOptions(input: unknown = {}): RequestOptions {
  return checkInput(is.section(requestSections), input, 'request options')
}

const maxDepth = 100

function isJson(value: unknown, depth = 0): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth === maxDepth) return false
  if (!Array.isArray(value) && Object.prototype.toString.call(value) !== '[object Object]') return false
  return Object.values(value).every((inner) => isJson(inner, depth + 1))
}
