import { z } from 'zod'
import { ConfigError, createAgent, type ModelProvider, openaiChat } from '../../../src/index.js'
import { findStructuredOutput } from '../../../src/core/models/openai/openai-provider.js'
import { getFormat, createStructuredOutput } from '../../../src/core/structured/structured-output.js'

const schema = z.object({ city: z.string() })
const model = {
  provider: 'none',
  model: 'm',
  request: () => Promise.reject(new Error('Nobody asks.')),
} satisfies ModelProvider

function refusal(output: unknown): ConfigError {
  try {
    createAgent({ model, output: output as never })
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return error as ConfigError
  }
  throw new Error('It was taken.')
}

describe('output', () => {
  it('accepts a schema, or a schema with a name and a mode', () => {
    expect(createStructuredOutput(schema)).toMatchObject({ name: 'final_answer', mode: 'auto' })
    const options = { schema, name: 'place', mode: 'tool' } as const
    expect(createStructuredOutput(options)).toMatchObject({ name: 'place', mode: 'tool' })
  })

  it('accepts a plain JSON Schema', () => {
    const output = createStructuredOutput({
      type: 'object',
      properties: { a: { type: 'null' } },
      required: ['a'],
    })
    expect(getFormat(output)).toMatchObject({ strict: true, schema: { additionalProperties: false } })
  })

  it('is sent unchanged and not strict if strictness would change its meaning', () => {
    const output = createStructuredOutput(z.object({ city: z.string().optional() }))
    expect(getFormat(output)).toEqual({ name: 'final_answer', schema: output.schema, strict: false })
    expect(getFormat(output)).toBe(getFormat(output))
  })

  it.each([
    ['a string', 'city'],
    ['null', null],
    ['a number', 7],
    ['a list', []],
    ['an empty object', {}],
    ['an array schema', z.array(z.string())],
    ['a union at the top', z.union([schema, z.object({ n: z.number() })])],
    ['a schema that JSON cannot represent', z.object({ at: z.date() })],
    [
      'a schema of a library without JSON Schema',
      { '~standard': { version: 1, vendor: 'x', validate: () => ({}) } },
    ],
  ])('refuses %s, and names the valid values', (_, output) => {
    const error = refusal(output)
    expect(error).toMatchObject({ code: 'invalid_config', subject: 'output' })
    expect(error.message).toMatch(/^(output: the value |Invalid output:\n).{20,}/)
  })

  it('refuses unknown options, by their path', () => {
    expect(refusal({ schema, mode: 'json' })).toMatchObject({
      code: 'invalid_config',
      subject: 'output.mode',
    })
    expect(refusal({ schema, name: 'my place' })).toMatchObject({ subject: 'output.name' })
    expect(refusal({ schema, retries: 3 })).toMatchObject({ subject: 'output.retries' })
  })

  it('refuses an invalid number of repairs', () => {
    expect(() => createAgent({ model, completion: { maxOutputRepairs: -1 } })).toThrow(/maxOutputRepairs/)
    const { config } = createAgent({ model, completion: { maxOutputRepairs: null } })
    expect(config.completion.maxOutputRepairs).toBe(0)
  })
})

describe('structured output at a provider', () => {
  it.each([
    ['https://api.openai.com/v1', 'beside_tools'],
    ['https://generativelanguage.googleapis.com/v1beta/openai', 'alone'],
    ['http://localhost:11434/v1', 'alone'],
    ['https://api.deepseek.com', undefined],
    ['https://my.own.host/v1', undefined],
  ])('at %s is %s', (baseURL, support) => {
    expect(openaiChat({ model: 'm', baseURL }).structuredOutput).toBe(support)
  })

  it('is unknown for a provider that is named like a property of objects', () => {
    expect(findStructuredOutput('constructor')).toBeUndefined()
  })
})
