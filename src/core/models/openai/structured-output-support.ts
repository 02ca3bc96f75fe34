import type { StructuredOutputSupport } from '../provider.js'

/**
 * Providers whose API takes `response_format: json_schema` with every current model. Gemini refuses it beside tools,
 * others force the format on whatever the model says, so that it can call no tool any more. Where only some models take
 * it (Groq, OpenRouter), or none (DeepSeek, Moonshot), the final tool is the safer way.
 */
const supportByProvider: Readonly<Record<string, StructuredOutputSupport>> = {
  openai: 'beside_tools',
  azure: 'beside_tools',
  'x-ai': 'beside_tools',
  google: 'alone',
  mistral: 'alone',
  fireworks: 'alone',
  together: 'alone',
  cerebras: 'alone',
  perplexity: 'alone',
  ollama: 'alone',
  lmstudio: 'alone',
  vllm: 'alone',
}

/** Providers whose models call nothing where `tool_choice` is `none`, and whose caches begin with the tools. */
const forbiddingProviders: readonly string[] = ['openai', 'azure', 'x-ai']

/** Whether `tool_choice: 'none'` is known to be heeded, by the name that its prices have. */
export function canForbidCalls(provider: string): boolean {
  return forbiddingProviders.includes(provider)
}

/** What is known of a provider, by the name that its prices have. */
export function findStructuredOutput(provider: string): StructuredOutputSupport | undefined {
  return Object.hasOwn(supportByProvider, provider) ? supportByProvider[provider] : undefined
}
