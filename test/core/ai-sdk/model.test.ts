import { languageModel, type AiSdkModel, type LanguageModelOptions } from '../../../src/ai-sdk/index.js'
import { ConfigError } from '../../../src/index.js'
import { sdkModel } from './sdk-model.js'

const functions = { doGenerate: () => Promise.reject(), doStream: () => Promise.reject() }
const whole = { specificationVersion: 'v3', provider: 'mine', modelId: 'm-1', ...functions }

const wrong: [what: string, model: unknown, code: string, says: RegExp][] = [
  ['a name', 'anthropic/claude', 'invalid_model', /is a name\. Pass a model from a provider package/],
  ['a provider', () => whole, 'invalid_model', /this is a provider\. Call it with a model name/],
  ['nothing', undefined, 'invalid_model', /but is undefined/],
  ['null', null, 'invalid_model', /but is null/],
  ['a promise', Promise.resolve(whole), 'invalid_model', /Await it first/],
  ['any object', { model: 'gpt' }, 'invalid_model', /this object has no specificationVersion/],
  [
    'a model of AI SDK 4',
    { ...whole, specificationVersion: 'v1' },
    'unsupported_model_version',
    /npm install @ai-sdk\/NAME@latest/,
  ],
  [
    'a model of a later specification',
    { ...whole, specificationVersion: 'v9' },
    'unsupported_model_version',
    /'v9', but this version of Statewright supports v2, v3, v4/,
  ],
  [
    'a version that is not a string',
    { ...whole, specificationVersion: 3 },
    'unsupported_model_version',
    /number/,
  ],
  [
    'an embedding model',
    { specificationVersion: 'v3', provider: 'mine', modelId: 'e-1', doEmbed() {} },
    'invalid_model',
    /e-1 \('mine'\) is not a language model/,
  ],
  [
    'an unreadable object',
    new Proxy(whole, {
      get: () => {
        throw new Error('Hands off.')
      },
    }),
    'invalid_model',
    /cannot be read \(Hands off\.\)\. Pass a model from a provider package/,
  ],
  ['a model without a name', { ...whole, modelId: undefined }, 'invalid_model', /no provider or modelId/],
]

it.each(wrong)('%s is refused, with a remedy', (_what, model, code, says) => {
  const make = () => languageModel(model as AiSdkModel)
  expect(make).toThrow(ConfigError)
  expect(make).toThrow(
    expect.objectContaining({ code, subject: 'model', message: expect.stringMatching(says) }),
  )
})

const options: [option: string, value: unknown][] = [
  ['providerOptions', { anthropic: true }],
  ['providerOptions', []],
  ['providerTools', { search: {} }],
  ['headers', { a: 1 }],
  ['cache', 'forever'],
  ['provider', ''],
  ['structuredOutput', true],
  ['providerOption', {}],
]

it.each(options)('the option %s is refused as %j', (option, value) => {
  const make = () => languageModel(sdkModel([]), { [option]: value } as LanguageModelOptions)
  expect(make).toThrow(expect.objectContaining({ code: 'invalid_option', subject: option }))
})

it.each([
  ['anthropic.messages', 'anthropic'],
  ['vertex.anthropic.messages', 'anthropic'],
  ['google.generative-ai', 'google'],
  ['openai.responses', 'openai'],
  ['xai.chat', 'x-ai'],
  ['amazon-bedrock', 'aws'],
])('the prices of %s are those of %s', (origin, provider) => {
  expect(languageModel(sdkModel([], { provider: origin }))).toMatchObject({ provider, model: 'm-1' })
})
