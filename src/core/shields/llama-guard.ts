import type { OpenAI } from 'openai'
import type { ModelProvider } from '../models/provider.js'
import { toWellFormed } from '../models/well-formed.js'
import { readProperty } from '../base/json.js'
import { defineShield, invalidShieldError, checkKeys, chooseKinds } from './define-shield.js'
import {
  toConversation,
  type GuardedTurn,
  llamaGuardCategories,
  type LlamaGuardCategory,
  formatLlamaGuardPrompt,
} from './llama-guard-prompt.js'
import type { Shield } from './shield.js'

export interface LlamaGuardOptions {
  /** Where Llama Guard 3 or 4 is served: a provider, or a client of the `openai` package and the model's name. */
  model: ModelProvider | { client: Pick<OpenAI, 'chat'>; model: string }
  /** The categories that count. Default: all. With `template: 'prompt'`, the model is told of no others. */
  categories?: readonly LlamaGuardCategory[]
  /**
   * `endpoint`: the server's chat template writes the prompt (Ollama, vLLM, Groq, Together, …); it gets the
   * conversation. `prompt`: we write it, for servers that pass on what they get. Default `endpoint`.
   */
  template?: 'endpoint' | 'prompt'
  /** Default `block`. */
  action?: 'block' | 'warn'
  /** Default `llama-guard`. */
  name?: string
  timeoutMs?: number
}

const keys = ['model', 'categories', 'template', 'action', 'name', 'timeoutMs']
const codes = Object.keys(llamaGuardCategories) as LlamaGuardCategory[]

/**
 * Asks a model of the Llama Guard family whether a text is safe. An empty text is not asked about.
 *
 * ```ts
 * llamaGuard({ model: openaiChat({ model: 'llama-guard3', baseURL: 'http://localhost:11434/v1' }) })
 * ```
 *
 * Throws a ConfigError `invalid_shield`. An answer that is neither `safe` nor `unsafe` is a failed check.
 */
export function llamaGuard(options: LlamaGuardOptions): Shield {
  checkKeys('llama-guard', options, keys)
  const { model, template = 'endpoint', action = 'block', name = 'llama-guard', timeoutMs } = options
  checkOptions(name, options)
  const categories = chooseKinds(name, codes, options.categories, 'categories')
  return defineShield({
    name,
    ...(timeoutMs !== undefined && { timeoutMs }),
    check: async (content, { point, messages, signal }) => {
      if (content.trim() === '') return { action: 'allow' }
      const turns = toConversation(content, point, messages)
      const asked: GuardedTurn[] =
        template === 'endpoint'
          ? turns
          : [{ role: 'user', content: formatLlamaGuardPrompt(turns, categories) }]
      const violated = parseLlamaGuardAnswer(await askLlamaGuard(model, asked, signal))
      if (violated === null) return { action: 'allow' }
      // A category that we do not know is none that anyone has chosen to ignore.
      const counting = violated.filter((code) => !isKnown(code) || categories.includes(code))
      // Without any category, it is unsafe all the same.
      if (violated.length > 0 && counting.length === 0) return { action: 'allow' }
      const words = counting.map(formatCategory)
      return {
        action,
        message: `Llama Guard found the text unsafe${words.length > 0 ? `: ${words.join(', ')}` : ''}.`,
      }
    },
  })
}

function isKnown(code: string): code is LlamaGuardCategory {
  return Object.hasOwn(llamaGuardCategories, code)
}

function formatCategory(code: string): string {
  return isKnown(code) ? llamaGuardCategories[code] : code
}

/** The codes of what is violated; null when nothing is. `safe` or `unsafe\nS1,S10`. */
function parseLlamaGuardAnswer(answer: string): string[] | null {
  const text = answer.trim()
  if (/^safe$/i.test(text)) return null
  if (!/^unsafe\b/i.test(text)) {
    const shown = text === '' ? 'nothing' : `'${text.slice(0, 100)}'`
    throw new Error(`Llama Guard answered ${shown} instead of 'safe' or 'unsafe'. Check model and template.`)
  }
  return [...new Set(text.toUpperCase().match(/\bS\d{1,2}\b/g))]
}

/** Enough for all categories, and a stray word. */
const maxTokens = 100

async function askLlamaGuard(
  model: LlamaGuardOptions['model'],
  turns: readonly GuardedTurn[],
  signal: AbortSignal,
): Promise<string> {
  if ('client' in model) {
    const answer: unknown = await model.client.chat.completions.create(
      { model: model.model, messages: toWellFormed([...turns]), temperature: 0, max_tokens: maxTokens },
      { signal },
    )
    const text = readProperty(
      readProperty(readProperty(readProperty(answer, 'choices'), '0'), 'message'),
      'content',
    )
    return typeof text === 'string' ? text : ''
  }
  const response = await model.request(
    {
      instructions: null,
      messages: turns.map((turn, index) => ({ ...turn, id: `turn-${index + 1}`, createdAt: 0 })),
      nudges: [],
      tools: [],
      sampling: { temperature: 0, maxTokens },
      extraBody: {},
      stream: false,
    },
    { signal, onDelta: doNothing, onActivity: doNothing },
  )
  return response.text
}

const doNothing = (): void => undefined

function checkOptions(name: string, options: LlamaGuardOptions): void {
  const { model, template, action } = options
  const isModel =
    typeof readProperty(model, 'request') === 'function' ||
    (typeof readProperty(
      readProperty(readProperty(readProperty(model, 'client'), 'chat'), 'completions'),
      'create',
    ) === 'function' &&
      typeof readProperty(model, 'model') === 'string')
  if (!isModel) {
    throw invalidShieldError(
      name,
      'model',
      "model must be a ModelProvider, such as openaiChat({ … }), or { client: new OpenAI(), model: 'name' }.",
    )
  }
  if (template !== undefined && template !== 'endpoint' && template !== 'prompt') {
    throw invalidShieldError(name, 'template', "template must be 'endpoint' or 'prompt'.")
  }
  if (action !== undefined && action !== 'block' && action !== 'warn') {
    throw invalidShieldError(name, 'action', "action must be 'block' or 'warn': Llama Guard cannot redact.")
  }
}
