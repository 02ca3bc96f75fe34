import { readdirSync, readFileSync } from 'node:fs'
import { parseConfigFile } from '../../../src/core/config/config-file.js'
import { defaultConfig, resolveConfig } from '../../../src/core/config/resolve-config.js'
import { findUnreachableSettings } from '../../../src/core/config/unreachable-settings.js'
import { createPriceBook } from '../../../src/core/prices/price-book.js'

const folder = new URL('../../../config/samples/', import.meta.url)
const cloud = [
  'openai',
  'azure',
  'deepseek',
  'groq',
  'mistral',
  'openrouter',
  'openai-responses',
  'xai-responses',
]
const local = ['ollama', 'vllm']

const read = (name: string) => readFileSync(new URL(`${name}.json`, folder), 'utf8')
const sample = (name: string) => parseConfigFile(read(name), `${name}.json`)

test('the samples are the documented ones', () => {
  const names = readdirSync(folder).map((file) => file.replace('.json', ''))
  expect(names).toEqual(expect.arrayContaining([...cloud, ...local]))
})

describe.each(readdirSync(folder).map((file) => file.replace('.json', '')))('sample %s', (name) => {
  test('parses to itself', () => {
    expect(sample(name)).toEqual(JSON.parse(read(name)))
  })

  test('has sections that form a complete configuration', () => {
    const file: object = sample(name)
    const sections = Object.entries(file).filter(([key]) => key in defaultConfig)
    const config = resolveConfig(Object.fromEntries(sections))
    expect(config).toMatchObject(Object.fromEntries(sections))
    expect(Object.keys(config)).toEqual(Object.keys(defaultConfig))
    expect(findUnreachableSettings(Object.fromEntries(sections), config)).toEqual([])
  })
})

test.each(cloud)('%s names the variable of its key, and its cost is limited and known', async (name) => {
  const { model, limits } = sample(name)
  expect(model?.apiKeyEnv).toMatch(/_API_KEY$/)
  expect(limits?.costLimit).toBeGreaterThan(0)
  const usage = {
    inputTokens: 1000,
    outputTokens: 1000,
    totalTokens: 2000,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  }
  const cost = await createPriceBook().price(model?.provider ?? '', model?.model ?? '', usage)
  expect(cost).toBeGreaterThan(0)
})

test.each(local)('%s needs no key and has no cost limit', (name) => {
  const { model, limits } = sample(name)
  expect(model?.apiKeyEnv).toBeUndefined()
  expect(model?.baseURL).toMatch(/^http:\/\/localhost:/)
  expect(limits).not.toHaveProperty('costLimit')
})

test('deepseek continues a truncated answer three times', () => {
  expect(sample('deepseek').guardrails?.maxTokensRecoveries).toBe(3)
})
