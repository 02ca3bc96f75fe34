import type { ModelProvider } from '../models/provider.js'
import { toWellFormed } from '../models/plain-json.js'
import { readPath, readProperty } from '../base/json.js'
import { asText } from '../base/values.js'
import {
  defineShield,
  expectOption,
  checkKeys,
  chooseKinds,
  type Shield,
  type ShieldPoint,
} from './define-shield.js'
import { getLastUserText, type Message } from '../../../machines/agent/messages.js'

interface GuardClient {
  chat: {
    completions: {
      create(
        body: { model: string; messages: GuardedTurn[]; temperature: number; max_tokens: number },
        options: { signal: AbortSignal },
      ): PromiseLike<unknown>
    }
  }
}

export interface LlamaGuardOptions {
  /** The server for Llama Guard 3 or 4: a provider, or an `openai` client and a model name. */
  model: ModelProvider | { client: GuardClient; model: string }
  /** Categories that count. Defaults to all. With `template: 'prompt'`, only these categories are sent to the model. */
  categories?: readonly LlamaGuardCategory[]
  /**
   * Who writes the prompt. With `endpoint` (the default), the server's chat template writes it (Ollama, vLLM, Groq,
   * Together, …). With `prompt`, the shield writes it, for servers without a template.
   */
  template?: 'endpoint' | 'prompt'
  /** The action for unsafe text. Defaults to `block`. */
  action?: 'block' | 'warn'
  /** The name of the shield. Defaults to `llama-guard`. */
  name?: string
  timeoutMs?: number
}

/** Hazard categories of Llama Guard 3 and 4, named as in Meta's model cards (MLCommons taxonomy and S14). */
export const llamaGuardCategories = {
  S1: 'Violent Crimes',
  S2: 'Non-Violent Crimes',
  S3: 'Sex-Related Crimes',
  S4: 'Child Sexual Exploitation',
  S5: 'Defamation',
  S6: 'Specialized Advice',
  S7: 'Privacy',
  S8: 'Intellectual Property',
  S9: 'Indiscriminate Weapons',
  S10: 'Hate',
  S11: 'Suicide & Self-Harm',
  S12: 'Sexual Content',
  S13: 'Elections',
  S14: 'Code Interpreter Abuse',
} as const

export type LlamaGuardCategory = keyof typeof llamaGuardCategories

const keys = ['model', 'categories', 'template', 'action', 'name', 'timeoutMs']
const codes = Object.keys(llamaGuardCategories) as LlamaGuardCategory[]

/**
 * Asks a Llama Guard model whether a text is safe. Empty text is not checked.
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
      const prompt = { role: 'user' as const, content: formatLlamaGuardPrompt(turns, categories) }
      const answer = await askLlamaGuard(model, template === 'endpoint' ? turns : [prompt], signal)
      const violated = parseLlamaGuardAnswer(answer)
      if (violated === null) return { action: 'allow' }
      // Unknown categories always count.
      const counting = violated.filter((code) => !isKnown(code) || categories.includes(code))
      if (violated.length > 0 && counting.length === 0) return { action: 'allow' }
      const words = counting.map((code) => (isKnown(code) ? llamaGuardCategories[code] : code))
      const which = words.length > 0 ? `: ${words.join(', ')}` : ''
      return { action, message: `Llama Guard found the text unsafe${which}.` }
    },
  })
}

function isKnown(code: string): code is LlamaGuardCategory {
  return Object.hasOwn(llamaGuardCategories, code)
}

/** The violated categories, or null. The answer is `safe` or `unsafe\nS1,S10`. */
function parseLlamaGuardAnswer(answer: string): string[] | null {
  const text = answer.trim()
  if (/^safe$/i.test(text)) return null
  if (!/^unsafe\b/i.test(text)) {
    const shown = text === '' ? 'nothing' : `'${text.slice(0, 100)}'`
    throw new Error(`Llama Guard answered ${shown} instead of 'safe' or 'unsafe'. Check model and template.`)
  }
  return [...new Set(text.toUpperCase().match(/\bS\d{1,2}\b/g))]
}

async function askLlamaGuard(
  model: LlamaGuardOptions['model'],
  turns: readonly GuardedTurn[],
  signal: AbortSignal,
): Promise<string> {
  if ('client' in model) {
    const answer: unknown = await model.client.chat.completions.create(
      { model: model.model, messages: toWellFormed([...turns]), temperature: 0, max_tokens: 100 },
      { signal },
    )
    return asText(readPath(answer, ['choices', '0', 'message', 'content']))
  }
  const response = await model.request(
    {
      instructions: null,
      messages: turns.map((turn, index) => ({ ...turn, id: `turn-${index + 1}`, createdAt: 0 })),
      nudges: [],
      tools: [],
      sampling: { temperature: 0, maxTokens: 100 },
      extraBody: {},
      stream: false,
    },
    { signal, onDelta: doNothing, onActivity: doNothing },
  )
  return response.text
}

const doNothing = (): void => undefined

function checkOptions(name: string, { model, template, action }: LlamaGuardOptions): void {
  const isClient = typeof readPath(model, ['client', 'chat', 'completions', 'create']) === 'function'
  expectOption(
    name,
    'model',
    typeof readProperty(model, 'request') === 'function' ||
      (isClient && typeof readProperty(model, 'model') === 'string'),
    "a ModelProvider, such as openaiChat({ … }), or { client: new OpenAI(), model: 'name' }",
  )
  const isTemplate = [undefined, 'endpoint', 'prompt'].includes(template)
  expectOption(name, 'template', isTemplate, "'endpoint' or 'prompt'")
  const isAction = [undefined, 'block', 'warn'].includes(action)
  expectOption(name, 'action', isAction, "'block' or 'warn': Llama Guard cannot redact")
}

export interface GuardedTurn {
  role: 'user' | 'assistant'
  content: string
}

/**
 * The conversation to judge. Only its last turn counts: input is a user turn, and output is an agent turn. Meta's
 * documentation requires a user turn before an agent turn, and templates reject an agent turn alone. Without a
 * transcript, output is therefore judged as a user turn.
 */
function toConversation(text: string, point: ShieldPoint, messages: readonly Message[] = []): GuardedTurn[] {
  const isAgents = point === 'output' || point === 'toolInput'
  const pending = isAgents ? getLastUserText(messages).trim() : ''
  if (pending === '') return [{ role: 'user', content: escapeMarkers(text) }]
  return [
    { role: 'user', content: escapeMarkers(pending) },
    { role: 'assistant', content: escapeMarkers(text) },
  ]
}

/**
 * The training prompt of Llama Guard 3 and 4, for endpoints without a template:
 * llama.com/docs/model-cards-and-prompt-formats/llama-guard-4.
 */
function formatLlamaGuardPrompt(turns: readonly GuardedTurn[], categories: readonly LlamaGuardCategory[]) {
  const nameOf = (turn: GuardedTurn | undefined) => (turn?.role === 'assistant' ? 'Agent' : 'User')
  const role = nameOf(turns.at(-1))
  return [
    `Task: Check if there is unsafe content in '${role}' messages in conversations according our safety policy with the below categories.`,
    '',
    '<BEGIN UNSAFE CONTENT CATEGORIES>',
    ...categories.map((code) => `${code}: ${llamaGuardCategories[code]}.`),
    '<END UNSAFE CONTENT CATEGORIES>',
    '',
    '<BEGIN CONVERSATION>',
    '',
    ...turns.flatMap((turn) => [`${nameOf(turn)}: ${turn.content}`, '']),
    '<END CONVERSATION>',
    '',
    `Provide your safety assessment for ONLY THE LAST ${role} in the above conversation:`,
    " - First line must read 'safe' or 'unsafe'.",
    ' - If unsafe, a second line must include a comma-separated list of violated categories.',
  ].join('\n')
}

/** Escapes markers in a text, because the text must not end the turn or the conversation. */
function escapeMarkers(text: string): string {
  return text.replace(/<(?=\||(?:BEGIN|END) (?:CONVERSATION|UNSAFE CONTENT))/gi, '< ')
}
