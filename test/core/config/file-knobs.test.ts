import { agentSections } from '../../../src/core/config/agent-sections.js'
import { configFileKind, parseConfigFile } from '../../../src/core/config/config-file.js'
import type { Kind } from '../../../src/core/config/kind.js'
import { createModel, resolveApi, resolveModelOptions } from '../../../src/cli/model-setup.js'
import { type AgentOptions, createAgent, defineTool, type RunInput } from '../../../src/index.js'

/**
 * Each configuration file key that is not a run setting: two values, and the other keys that the file needs.
 */
const responses = { model: { api: 'responses' } }
const fresh = { 'gpt-test': { inputPerMillion: 0, outputPerMillion: 0 } }
const priced = (key: string) => [
  `prices.*.${key}`,
  { 'gpt-test': { ...fresh['gpt-test'], [key]: 1 } },
  { 'gpt-test': { ...fresh['gpt-test'], [key]: 2 } },
]
const knobs = [
  ['model.model', 'gpt-test', 'gpt-other'],
  ['model.api', 'chat', 'responses'],
  ['model.provider', 'openai', 'mistral'],
  ['model.baseURL', 'http://one.example/v1', 'http://other.example/v1'],
  ['model.apiKeyEnv', 'ONE_KEY', 'OTHER_KEY'],
  ['model.organization', 'org-1', 'org-2'],
  ['model.project', 'project-1', 'project-2'],
  ['model.headers', { 'x-team': 'one' }, { 'x-team': 'other' }],
  ['model.headers.*', { 'x-team': 'one' }, { 'x-team': 'other' }],
  ['model.query', { 'api-version': '1' }, { 'api-version': '2' }],
  ['model.query.*', { 'api-version': '1' }, { 'api-version': '2' }],
  ['model.maxTokensField', 'max_tokens', 'max_completion_tokens', { sampling: { maxTokens: 9 } }],
  ['model.echoReasoning', 'reasoning', 'reasoning_content'],
  ['model.hostedTools', [{ type: 'web_search' }], [{ type: 'code_interpreter' }], responses],
  ['model.reasoningSummary', 'auto', 'detailed', responses],
  ['model.encryptedReasoning', true, false, responses],
  ['instructions', 'Be brief.', 'Be thorough.'],
  ['sampling.temperature', 0.1, 0.2],
  ['sampling.topP', 0.1, 0.2],
  ['sampling.maxTokens', 10, 11],
  ['sampling.frequencyPenalty', 0.1, 0.2],
  ['sampling.presencePenalty', 0.1, 0.2],
  ['sampling.seed', 1, 2],
  ['sampling.stop', 'END', 'STOP'],
  ['sampling.reasoningEffort', 'low', 'high'],
  ['toolChoice', 'required', 'none'],
  ['toolChoice.name', { name: 'look' }, { name: 'read' }],
  ['extraBody', { custom: 1 }, { custom: 2 }],
  ['extraBody.*', { custom: 1 }, { custom: 2 }],
  priced('inputPerMillion'),
  priced('outputPerMillion'),
  priced('cachedInputPerMillion'),
  priced('cacheWritePerMillion'),
  ['prices', fresh, { 'gpt-test': { inputPerMillion: 1, outputPerMillion: 1 } }],
] as [key: string, one: unknown, other: unknown, besides?: object][]

const excused: Readonly<Record<string, string>> = {
  $schema: 'for editors alone',
  'prices.*.maxOutputTokens':
    'a file has no shared budgets: test/scenarios/shared-budgets.test.ts reserves it',
  'model.timeoutMs': 'a timer of the platform, which test/core/models/openai-chat.test.ts lets pass',
}

function listKeys(kind: Kind, parent = ''): string[] {
  return kind.keys.flatMap(([name, inner]) => {
    const key = parent === '' ? name : `${parent}.${name}`
    if (parent === '' && name in agentSections) return []
    return inner.keys.length === 0 ? [key] : listKeys(inner, key)
  })
}

test('every key of a configuration file has a witness, or a reason to have none', () => {
  const keys = listKeys(configFileKind)
  const witnessed = knobs.map(([key]) => key)
  expect(keys.filter((key) => !witnessed.includes(key) && !(key in excused))).toEqual([])
  expect(
    witnessed.filter((key) => !keys.includes(key) && !keys.some((one) => one.startsWith(`${key}.`))),
  ).toEqual([])
  expect(Object.keys(excused).filter((key) => !keys.includes(key) || witnessed.includes(key))).toEqual([])
})

test.each(knobs)('%s alone changes the request or the price', async (key, one, other, besides = {}) => {
  const [first, again, second] = [
    await play(key, one, besides),
    await play(key, one, besides),
    await play(key, other, besides),
  ]
  expect(again).toBe(first)
  expect(second).not.toBe(first)
})

/** The requests sent under a file, and their cost. */
async function play(key: string, value: unknown, besides: object): Promise<string> {
  const written = structuredClone(besides) as Record<string, Record<string, unknown>>
  const [section = '', name = '*'] = key.split('.')
  if (section === 'model' || section === 'sampling') written[section] = { ...written[section], [name]: value }
  else written[section] = value as Record<string, unknown>
  written['model'] = { model: 'gpt-test', baseURL: 'http://nowhere.example/v1', ...written['model'] }
  const file = parseConfigFile(JSON.stringify(written), 'file.json')
  const { model: _model, $schema: _schema, ...config } = file
  const env = { ONE_KEY: 'one', OTHER_KEY: 'other' }
  const options = resolveModelOptions({ model: undefined, baseURL: undefined }, file, env)
  if (!options) throw new Error('The file names no model.')
  const sent: string[] = []
  const send = (async (input: string | URL, init: RequestInit = {}) => {
    const headers = [...new Headers(init.headers)].filter(
      ([header]) => !/^x-stainless|idempotency/.test(header),
    )
    sent.push(JSON.stringify([String(input), headers, typeof init.body === 'string' ? init.body : '']))
    return Promise.resolve(Response.json(answerTo(String(input))))
  }) as typeof fetch
  const look = (name: string) =>
    defineTool({ name, description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
  const agent = createAgent({
    model: createModel(resolveApi({ api: undefined }, file), { ...options, fetch: send }),
    tools: [look('look'), look('read')],
    ...(config as Partial<AgentOptions>),
    stream: false,
    limits: { maxSteps: 1 },
  })
  const result = await agent.run(input).result
  return JSON.stringify([sent, result.usage.cost])
}

/** A conversation that contains the model's reasoning. */
const input: RunInput = [
  { role: 'user', content: 'Go.' },
  { role: 'assistant', content: 'So.', reasoning: 'Well.' },
  { role: 'user', content: 'And now?' },
] as never

/** An answer of either API, with tokens at every price. */
function answerTo(url: string): object {
  if (url.includes('/responses'))
    return {
      id: 'r1',
      object: 'response',
      status: 'completed',
      model: 'gpt-test',
      output: [
        {
          type: 'message',
          id: 'm1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
        },
      ],
      usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
    }
  return {
    id: 'c1',
    object: 'chat.completion',
    model: 'gpt-test',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: 100,
      completion_tokens: 10,
      total_tokens: 110,
      prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 20 },
    },
  }
}
