import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createAnthropic as createAnthropicV2 } from 'ai-sdk-anthropic-v2'
import { createGoogleGenerativeAI as createGoogleV2 } from 'ai-sdk-google-v2'
import { createOpenAICompatible as createCompatibleV2 } from 'ai-sdk-openai-compatible-v2'
import { createOpenAI as createOpenAIV2 } from 'ai-sdk-openai-v2'
import { type AiSdkModel, languageModel, type LanguageModelOptions } from '../../src/ai-sdk/index.js'
import type { AgentOptions } from '../../src/index.js'
import { startRehearsal, type Turn, type TurnFunction } from '../../src/rehearsal/index.js'
import { type Play, Stage } from '../support/play.js'

export type Make = (url: string) => AiSdkModel

const apiKey = 'key-of-the-test'
const compatible = { name: 'local', apiKey, includeUsage: true }

/** The newest packages, from AI SDK 7. */
async function newest(): Promise<Record<string, Make>> {
  if (process.env['AI_SDK_NEWEST'] === undefined) return {}
  const file = './newest/packages.mjs'
  const module = (await import(file)) as Record<string, (options: object) => (name: string) => AiSdkModel>
  const of = (create: string, options: object): ((name: string) => AiSdkModel) => {
    const provider = module[create]?.(options)
    if (provider === undefined) throw new Error(`The newest packages have no ${create}.`)
    return provider
  }
  return {
    'anthropic v4': (baseURL) => of('createAnthropic', { baseURL, apiKey })('claude-sonnet-4-5'),
    'google v4': (url) =>
      of('createGoogleGenerativeAI', { baseURL: `${url}beta`, apiKey })('gemini-3-pro-preview'),
    'openai responses v4': (baseURL) => of('createOpenAI', { baseURL, apiKey })('gpt-5-mini'),
    'openai v4': (baseURL) => chatOf(of('createOpenAI', { baseURL, apiKey }))('gpt-5-mini'),
    'openai-compatible v4': (baseURL) => of('createOpenAICompatible', { ...compatible, baseURL })('qwen3'),
  }
}

/** Chat Completions, the alternative to OpenAI's default API. */
function chatOf(provider: object): (name: string) => AiSdkModel {
  return (provider as { chat: (name: string) => AiSdkModel }).chat
}

/** The real packages of AI SDK 6 and 5, and of 7 if installed, each against a test server. */
export const packages: Readonly<Record<string, Make>> = {
  'anthropic v3': (baseURL) => createAnthropic({ baseURL, apiKey })('claude-sonnet-4-5'),
  'anthropic v2': (baseURL) => createAnthropicV2({ baseURL, apiKey })('claude-sonnet-4-5'),
  'google v3': (url) => createGoogleGenerativeAI({ baseURL: `${url}beta`, apiKey })('gemini-3-pro-preview'),
  'google v2': (url) => createGoogleV2({ baseURL: `${url}beta`, apiKey })('gemini-2.5-pro'),
  'openai responses v3': (baseURL) => createOpenAI({ baseURL, apiKey })('gpt-5-mini'),
  'openai responses v2': (baseURL) => createOpenAIV2({ baseURL, apiKey })('gpt-5-mini'),
  'openai v3': (baseURL) => createOpenAI({ baseURL, apiKey }).chat('gpt-5-mini'),
  'openai v2': (baseURL) => createOpenAIV2({ baseURL, apiKey }).chat('gpt-5-mini'),
  'openai-compatible v3': (baseURL) => createOpenAICompatible({ ...compatible, baseURL })('qwen3'),
  'openai-compatible v2': (baseURL) => createCompatibleV2({ ...compatible, baseURL })('qwen3'),
  ...(await newest()),
}

/** Their ids refer to answers stored by OpenAI, which a stateless server cannot look up. */
export const stateless: LanguageModelOptions = { providerOptions: { openai: { store: false } } }

const stages: Stage[] = []

afterEach(async () => {
  await Promise.all(stages.splice(0).map((stage) => stage.close()))
})

/** An agent with a package's model over real HTTP. Closed after the test. */
export async function stageOf(
  make: Make,
  turns: readonly (Turn | TurnFunction)[],
  options: Partial<AgentOptions> = {},
  modelOptions: LanguageModelOptions = {},
): Promise<Stage> {
  const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
  const module = make(rehearsal.url)
  const isResponses = module.provider.endsWith('.responses')
  const model = languageModel(module, isResponses ? { ...stateless, ...modelOptions } : modelOptions)
  const stage = new Stage(rehearsal, { model, ...options })
  stages.push(stage)
  return stage
}

/** One complete run of such an agent. */
export async function playedBy(
  make: Make,
  turns: readonly (Turn | TurnFunction)[],
  options: Partial<AgentOptions> = {},
  modelOptions: LanguageModelOptions = {},
) {
  const stage = await stageOf(make, turns, options, modelOptions)
  const play: Play = stage.run().skipBackOff()
  const result = await play.end(turns.length)
  return Object.assign(play, { result, stage })
}
