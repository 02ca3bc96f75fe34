import * as fc from 'fast-check'
import { parseConfigFile } from '../../../src/core/config/config-file.js'
import { defaultConfig } from '../../../src/core/config/resolve-config.js'
import { ConfigError } from '../../../src/core/base/errors.js'
import { unicodeText } from '../../support/unicode-text.js'

/** The error that rejects the text. */
function refused(text: string): ConfigError {
  try {
    parseConfigFile(text, 'agent.json')
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error(`${text} was accepted`)
}

const refusedFile = (file: unknown) => refused(JSON.stringify(file))

const whole = {
  model: {
    model: 'gpt-5-mini',
    provider: 'azure',
    baseURL: 'https://example.openai.azure.com/openai/deployments/gpt-5-mini',
    apiKeyEnv: 'AZURE_OPENAI_API_KEY',
    organization: 'org',
    project: 'proj',
    headers: { 'X-Title': 'Statewright' },
    query: { 'api-version': '2024-10-21' },
    timeoutMs: 60_000,
    maxTokensField: 'max_completion_tokens',
    echoReasoning: false,
  },
  instructions: 'Be careful.',
  sampling: { temperature: 0.2, topP: 1, maxTokens: 100, seed: -1, stop: ['END'], reasoningEffort: 'low' },
  toolChoice: { name: 'read' },
  extraBody: { metadata: { deep: [1, 'a', null, { b: true }] }, parallel_tool_calls: null },
  prices: { 'gpt-5-mini': { inputPerMillion: 0.25, outputPerMillion: 2, cachedInputPerMillion: 0 } },
  ...defaultConfig,
}

describe('parseConfigFile', () => {
  test('a file with every key is returned unchanged', () => {
    expect(parseConfigFile(JSON.stringify({ $schema: './schema.json', ...whole }), 'agent.json')).toEqual({
      $schema: './schema.json',
      ...whole,
    })
  })

  test('an empty object is valid, defaults are not filled in, and null disables', () => {
    expect(parseConfigFile('{}', 'agent.json')).toEqual({})
    expect(parseConfigFile('{"limits":{"maxSteps":null},"guardrails":{"cycle":null}}', 'agent.json')).toEqual(
      {
        limits: { maxSteps: null },
        guardrails: { cycle: null },
      },
    )
  })

  test('the result is frozen at every depth', () => {
    const file = parseConfigFile(JSON.stringify(whole), 'agent.json')
    for (const value of [file, file.model, file.sampling, file.extraBody?.metadata, file.limits]) {
      expect(Object.isFrozen(value)).toBe(true)
    }
  })

  test('a leading byte order mark is accepted', () => {
    expect(parseConfigFile('\uFEFF{"stream":false}', 'agent.json')).toEqual({ stream: false })
  })

  test('an error names the file, and lists each problem on a separate line', () => {
    const error = refusedFile({ limits: { maxStep: 1 }, sampling: { temperature: 3 }, model: {} })
    expect(error.code).toBe('invalid_config')
    expect(error.message.split('\n')[0]).toBe('Invalid configuration in agent.json:')
    expect(error.message.split('\n')).toHaveLength(4)
    expect(error.message).toContain('limits.maxStep is not a known key. Did you mean limits.maxSteps?')
    expect(error.message).toContain('sampling.temperature must be a number from 0 to 2 (got 3).')
    expect(error.message).toContain('model.model must be a model name (got nothing).')
  })

  test.each([
    [{ sampling: { temperature: -0.1 } }, 'sampling.temperature'],
    [{ sampling: { topP: 1.1 } }, 'sampling.topP'],
    [{ sampling: { maxTokens: 0 } }, 'sampling.maxTokens'],
    [{ sampling: { maxTokens: 1.5 } }, 'sampling.maxTokens'],
    [{ sampling: { seed: 0.5 } }, 'sampling.seed'],
    [{ sampling: { frequencyPenalty: -2.1 } }, 'sampling.frequencyPenalty'],
    [{ sampling: { stop: [] } }, 'sampling.stop'],
    [{ sampling: { stop: '' } }, 'sampling.stop'],
    [{ sampling: { reasoningEffort: 'huge' } }, 'sampling.reasoningEffort'],
    [{ toolChoice: 'any' }, 'toolChoice'],
    [{ toolChoice: { name: '' } }, 'toolChoice.name'],
    [{ toolChoice: { name: 'a', type: 'function' } }, 'toolChoice.type'],
    [{ extraBody: [] }, 'extraBody'],
    [{ instructions: 5 }, 'instructions'],
    [
      { prices: { 'gpt-5': { inputPerMillion: -1, outputPerMillion: 1 } } },
      'prices["gpt-5"].inputPerMillion',
    ],
    [{ prices: { m: { inputPerMillion: 1 } } }, 'prices.m.outputPerMillion'],
    [{ prices: { m: null } }, 'prices.m'],
    [{ model: 'gpt-5' }, 'model'],
    [{ model: { model: '' } }, 'model.model'],
    [{ model: { model: 'm', timeoutMs: 0 } }, 'model.timeoutMs'],
    [{ model: { model: 'm', echoReasoning: 'thoughts' } }, 'model.echoReasoning'],
    [{ model: { model: 'm', headers: { a: 1 } } }, 'model.headers.a'],
    [{ model: { model: 'm', baseURL: 'localhost:8000' } }, 'model.baseURL'],
    [{ model: { model: 'm', baseURL: 'ftp://example.com' } }, 'model.baseURL'],
    [{ model: { model: 'm', temperature: 1 } }, 'model.temperature'],
    [{ temperature: 1 }, 'temperature'],
    [[], undefined],
    [null, undefined],
    ['text', undefined],
  ])('%j is refused at %s', (file, subject) => {
    expect(refusedFile(file).subject).toBe(subject)
  })

  test('settings that contradict each other are refused, with the file’s name', () => {
    const error = refusedFile({ guardrails: { cycle: { nudgeAt: 9 } } })
    expect(error.subject).toBe('guardrails.cycle.nudgeAt')
    expect(error.message).toContain('agent.json')
  })

  test.each([
    [{ toolChoice: { name: 'a', kind: 'x' } }, 'toolChoice.kind is not a known key. Known keys: name.'],
    [
      { prices: { 'a.b': { input: 1 } } },
      'prices["a.b"].input is not a known key. Did you mean prices["a.b"].inputPer',
    ],
    [
      { sampling: { max_tokens: 1 } },
      'sampling.max_tokens is not a known key. Did you mean sampling.maxTokens?',
    ],
    [{ temperature: 1 }, 'temperature is not a known key. Use sampling.temperature.'],
    [
      { limits: { maxAttempts: 1 } },
      'limits.maxAttempts is not a known key. Did you mean retry.maxAttempts?',
    ],
    [{ timeoutMs: 1 }, 'timeoutMs is not a known key. Did you mean model.timeoutMs?'],
  ])('%j is refused with a suggested key', (file, sentence) => {
    expect(refusedFile(file).message).toContain(sentence)
  })

  test('excessive nesting is refused', () => {
    const deep = `{"extraBody":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`
    expect(refused(deep).code).toBe('invalid_config')
  })

  test.each([
    [{ apiKey: 'sk-verysecret' }, 'model.apiKey is not a known key. Did you mean model.apiKeyEnv?'],
    [{ apiKeyEnv: 'sk-verysecret' }, 'model.apiKeyEnv must be the name of an environment variable'],
    [{ apiKeyEnv: 'gsk_verysecret' }, 'model.apiKeyEnv must be the name of an environment variable'],
    [{ headers: { Authorization: 'Bearer verysecret' } }, 'set model.apiKeyEnv to its name'],
    [{ headers: { 'api-key': 'verysecret' } }, 'set model.apiKeyEnv to its name'],
    [{ headers: { title: { verysecret: 1 } } }, 'model.headers.title'],
    [{ query: { key: 'verysecret' } }, 'set model.apiKeyEnv to its name'],
    [{ baseURL: 'https://user:verysecret@example.com/v1' }, 'model.baseURL must be'],
    [{ baseURL: 'https://example.com/v1?key=verysecret' }, 'model.baseURL must be'],
  ])('a secret in the file is refused, and not repeated: %j', (model, sentence) => {
    const { message } = refusedFile({ model: { model: 'm', ...model } })
    expect(message).toContain(sentence)
    expect(message).not.toContain('verysecret')
  })

  test.each([
    ['', 'Line 1, column 1: The text ends where a value is expected.'],
    ['{\n  "stream": true,\n}', 'Line 3, column 1: Remove the comma before this bracket.'],
    ['{\r\n  "a": [1,\r\n]}', 'Line 3, column 1: Remove the comma before this bracket.'],
    ['{"stream": true', "Line 1, column 16: The text ends where ',' or '}' is expected."],
    ['{"a" 1}', 'Line 1, column 6: Expected \':\' after the property name but found "1".'],
    ['{a: 1}', 'Line 1, column 2: Expected a property name in double quotes or \'}\' but found "a".'],
    ["{'a': 1}", "Line 1, column 2: Expected a property name in double quotes or '}' but found \"'\"."],
    ['{\n  // why\n  "stream": true }', 'Line 2, column 3: JSON has no comments. Remove this one.'],
    [
      '{"limits": {"costLimit": 1,\n "costLimit": 2}}',
      'Line 2, column 2: The key "costLimit" appears twice; keep one.',
    ],
    ['{"limits": {"costLimit": NaN}}', 'Line 1, column 26: Expected a value but found "N".'],
    ['{"a": 1} {', 'Line 1, column 10: Expected nothing after the end of the JSON value but found "{".'],
    ['{"a": "x\ny"}', 'Line 1, column 9: A control character inside a string must be written as \\n.'],
  ])('%j is refused with its path', (text, sentence) => {
    const error = refused(text)
    expect(error.code).toBe('invalid_config')
    expect(error.message).toContain(`Invalid configuration in agent.json:\n  ${sentence}`)
  })

  test('any text either parses or is refused with a ConfigError', () => {
    fc.assert(
      fc.property(fc.oneof(unicodeText(), fc.json()), (text) => {
        try {
          parseConfigFile(text, 'agent.json')
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError)
        }
      }),
    )
  })
})
