import type { JsonObject } from '../../../machines/agent/json.js'
import type { Sampling, ToolChoice } from '../models/provider.js'
import { check } from './check.js'
import { either, list, map, that, turned, where } from './kind.js'
import { anyText, between, choice, count, record, section, text, whole } from './values.js'

/** What goes into every request of an agent, besides its messages and tools. */
export interface RequestOptions {
  /** The system prompt. */
  instructions?: string | undefined
  /** Sampling parameters of every request. */
  sampling?: Sampling | undefined
  /** Whether the model may (`auto`, the default), must or must not call tools, or which one it has to call. */
  toolChoice?: ToolChoice | undefined
  /** Merged into every request body last; `null` removes a key. */
  extraBody?: JsonObject | undefined
}

const stopPhrase = 'a text, or a list of texts'

export const requestSections = {
  instructions: anyText(),
  sampling: turned(
    section({
      temperature: between(0, 2),
      topP: between(0, 1),
      maxTokens: count(1),
      frequencyPenalty: between(-2, 2),
      presencePenalty: between(-2, 2),
      seed: whole(-Infinity, Infinity, 'a whole number'),
      stop: either(
        [text(), where(list(text(), stopPhrase), ({ length }) => length > 0, stopPhrase)],
        stopPhrase,
      ),
      reasoningEffort: choice('none', 'minimal', 'low', 'medium', 'high', 'xhigh'),
    }),
    defined,
  ),
  toolChoice: either(
    [choice('auto', 'none', 'required'), record({ name: text() })],
    "'auto', 'none', 'required' or { name: … } with a tool's name",
  ),
  extraBody: map(
    that<JsonObject[string]>((value) => isJson(value), 'plain JSON'),
    'an object of plain JSON',
  ),
}

/** The options when they can be sent. Throws a ConfigError (`invalid_config`) that lists every problem. */
export function resolveRequestOptions(input: unknown = {}): RequestOptions {
  return check(section(requestSections), input, 'request options')
}

/** Deeper nesting than this is a cycle, or nothing that an API would take. */
const deepest = 100

function isJson(value: unknown, depth = 0): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth === deepest) return false
  if (!Array.isArray(value) && Object.prototype.toString.call(value) !== '[object Object]') return false
  return Object.values(value).every((inner) => isJson(inner, depth + 1))
}

/** Without the keys that are undefined: for a request there is no difference between that and left out. */
function defined<Value extends object>(
  value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> }
function defined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined))
}
