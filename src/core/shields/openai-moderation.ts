import { toWellFormed } from '../models/plain-json.js'
import { readPath, readProperty } from '../base/json.js'
import { defineShield, expectOption, checkKeys, type Shield } from './define-shield.js'

export type ModerationCategory =
  | 'harassment'
  | 'harassment/threatening'
  | 'hate'
  | 'hate/threatening'
  | 'illicit'
  | 'illicit/violent'
  | 'self-harm'
  | 'self-harm/instructions'
  | 'self-harm/intent'
  | 'sexual'
  | 'sexual/minors'
  | 'violence'
  | 'violence/graphic'

export interface OpenAIModerationOptions {
  /** An `openai` client. Only the client's own retries apply. */
  client: {
    moderations: {
      create(body: { model: string; input: string }, options: { signal: AbortSignal }): PromiseLike<unknown>
    }
  }
  /** The moderation model. Defaults to `omni-moderation-latest`. */
  model?: string
  /** Categories that count. Defaults to all. */
  categories?: readonly ModerationCategory[]
  /** Minimum score for a category to count, from 0 to 1. By default, the API decides. */
  threshold?: number
  /** The action for flagged text. Defaults to `block`. */
  action?: 'block' | 'warn'
  /** The name of the shield. Defaults to `openai-moderation`. */
  name?: string
  timeoutMs?: number
}

const keys = ['client', 'model', 'categories', 'threshold', 'action', 'name', 'timeoutMs']

/**
 * Uses OpenAI's moderation API, which is free for users of its other APIs. Empty text is not checked.
 *
 * ```ts
 * openaiModeration({ client: new OpenAI(), categories: ['hate', 'violence'], threshold: 0.7 })
 * ```
 *
 * Throws a ConfigError `invalid_shield`. A request that fails, or an answer without the categories, is a failed check.
 */
export function openaiModeration(options: OpenAIModerationOptions): Shield {
  checkKeys('openai-moderation', options, keys)
  const { client, model = 'omni-moderation-latest', action = 'block', name = 'openai-moderation' } = options
  checkOptions(name, options)
  return defineShield({
    name,
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    check: async (content, { signal }) => {
      if (content.trim() === '') return { action: 'allow' }
      const input = toWellFormed(content)
      const answer: unknown = await client.moderations.create({ model, input }, { signal })
      const found = readResults(answer).map((result) => readFlags(result, options))
      if (!found.some(({ flagged }) => flagged)) return { action: 'allow' }
      const named = [...new Set(found.flatMap(({ categories }) => categories))]
      const which = named.length > 0 ? `: ${named.join(', ')}` : ''
      return { action, message: `OpenAI's moderation flagged the text${which}.` }
    },
  })
}

function readResults(answer: unknown): readonly unknown[] {
  const results = readProperty(answer, 'results')
  if (!Array.isArray(results) || results.length === 0) {
    throw new Error('The moderation API returned no results. Check that the client connects to OpenAI.')
  }
  return results
}

/** Throws if a category is missing from the response, so that a misspelled category is not treated as harmless. */
function readFlags(result: unknown, { categories: chosen, threshold }: OpenAIModerationOptions) {
  const judged = readProperty(result, threshold === undefined ? 'categories' : 'category_scores')
  const flagged = readProperty(result, 'flagged')
  if (typeof judged !== 'object' || judged === null || typeof flagged !== 'boolean') {
    throw new Error('The moderation API returned an unreadable result.')
  }
  const judgements = judged as Record<string, unknown>
  const categories = (chosen ?? Object.keys(judgements)).filter((category) => {
    const judgement = Object.hasOwn(judgements, category) ? judgements[category] : undefined
    if (typeof judgement === 'boolean' && threshold === undefined) return judgement
    if (typeof judgement === 'number' && threshold !== undefined) return judgement >= threshold
    // Models return null for unknown categories.
    if (judgement === null && chosen === undefined) return false
    throw new Error(`The moderation API did not rate the category '${category}'. Check categories and model.`)
  })
  const isPlain = chosen === undefined && threshold === undefined
  return { flagged: categories.length > 0 || (isPlain && flagged), categories }
}

function checkOptions(name: string, options: OpenAIModerationOptions): void {
  const { client, model = 'default', categories = ['all'], threshold = 1, action } = options
  const isClient = typeof readPath(client, ['moderations', 'create']) === 'function'
  expectOption(name, 'client', isClient, 'an OpenAI client, such as new OpenAI()')
  const isName = typeof model === 'string' && model.trim() !== ''
  expectOption(name, 'model', isName, "a model name, such as 'omni-moderation-latest'")
  const areNames =
    Array.isArray(categories) && categories.length > 0 && categories.every((one) => typeof one === 'string')
  expectOption(name, 'categories', areNames, "an array of names, such as ['hate', 'violence']")
  const isScore = typeof threshold === 'number' && threshold > 0 && threshold <= 1
  expectOption(name, 'threshold', isScore, 'a number above 0, up to 1')
  const isAction = [undefined, 'block', 'warn'].includes(action)
  expectOption(name, 'action', isAction, "'block' or 'warn': moderation cannot redact")
}
