import { z } from 'zod'
import { ConfigError } from '../../../src/core/base/errors.js'
import { defineTool, type ToolExecution } from '../../../src/core/tools/define-tool.js'
import type { InputSchema } from '../../../src/core/tools/input-schema.js'
import { createToolSet } from '../../../src/core/tools/tool-set.js'

const valid = {
  name: 'read',
  description: 'Reads.',
  input: z.object({ path: z.string() }),
  execute: () => 'text',
}

function refusal(definition: unknown): ConfigError {
  try {
    defineTool(definition as typeof valid)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as ConfigError).code).toBe('invalid_tool')
    return error as ConfigError
  }
  throw new Error('It was accepted.')
}

test('The model gets the JSON Schema of the input, without $schema', () => {
  const tool = defineTool({
    ...valid,
    input: z.object({ path: z.string().describe('Where'), lines: z.number().min(1).optional() }),
  })
  expect(tool.parameters).toEqual({
    type: 'object',
    properties: { path: { type: 'string', description: 'Where' }, lines: { type: 'number', minimum: 1 } },
    required: ['path'],
  })
})

test('The model sees the input of a transformed or defaulted field, and execute gets the output', async () => {
  const input = z.object({ n: z.string().transform(Number), m: z.number().default(2) })
  const tool = defineTool({ ...valid, input, execute: ({ n, m }) => n.toFixed(1) + m.toFixed(1) })
  expect(tool.parameters).toEqual({
    type: 'object',
    properties: { n: { type: 'string' }, m: { type: 'number', default: 2 } },
    required: ['n'],
  })
  expect(await tool.validate({ n: '1' })).toMatchObject({ value: { n: 1, m: 2 } })
})

test('A schema without properties gets an empty list of them, which some providers require', () => {
  expect(defineTool({ ...valid, input: z.object({}) }).parameters).toMatchObject({ properties: {} })
  expect(defineTool({ ...valid, input: { type: 'object' } }).parameters).toEqual({
    type: 'object',
    properties: {},
  })
})

test('A plain JSON Schema is sent unchanged, copied, and used to validate arguments', async () => {
  const input = {
    $schema: 'x',
    type: 'object' as const,
    properties: { a: { type: 'string' } },
    required: ['a'],
  }
  const tool = defineTool({ ...valid, input, execute: (args) => args['a'] })
  input.required.push('b')
  expect(tool.parameters).toEqual({ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] })
  expect(await tool.validate({ a: 'x', other: 1 })).toEqual({ value: { a: 'x', other: 1 } })
  expect(await tool.validate({ other: 1 })).toEqual({ issues: [{ path: ['a'], message: 'Missing.' }] })
})

test('The JSON Schema is created once', () => {
  let count = 0
  const input: InputSchema = {
    '~standard': {
      version: 1,
      vendor: 'counting',
      validate: (value: unknown) => ({ value }),
      jsonSchema: {
        input: ({ target }) => {
          count += 1
          return { type: 'object', title: target }
        },
      },
    },
  }
  const tool = defineTool({ ...valid, input })
  const set = createToolSet([tool])
  expect(tool.parameters).toEqual({ type: 'object', title: 'draft-2020-12', properties: {} })
  expect(set.specs[0]?.parameters).toBe(tool.parameters)
  expect(count).toBe(1)
})

test.each(['', 'with space', 'ä', 'a'.repeat(65), 'dot.ted', '__proto__', 'a\n', 7, undefined])(
  'The name %j is refused',
  (name) => {
    expect(refusal({ ...valid, name })).toMatchObject({
      subject: 'name',
      message: expect.stringContaining('1 to 64'),
    })
  },
)

test.each(['a', 'A-b_9', 'a'.repeat(64), 'constructor'])('The name %j is accepted', (name) => {
  expect(defineTool({ ...valid, name }).name).toBe(name)
})

test.each([
  ['no description', { description: undefined }, 'description is missing'],
  ['a blank description', { description: ' ' }, 'description is missing'],
  ['no input', { input: undefined }, 'is not a schema'],
  ['an input that is a list', { input: [] }, 'is not a schema'],
  ['an input that is a string schema', { input: z.string() }, "of type 'string'"],
  ['an input without a type', { input: { properties: {} } }, 'without a type'],
  ['a circular input', { input: circular() }, 'not plain JSON'],
  ['a date', { input: z.object({ at: z.date() }) }, 'z.iso.datetime()'],
  ['a BigInt', { input: z.object({ n: z.bigint() }) }, 'cannot be written as JSON Schema'],
  [
    'a union at the top',
    { input: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]) },
    'in a field',
  ],
  ['a schema that has no JSON Schema', { input: validatingOnly() }, 'zod 4.2 or later'],
  ['a schema of an outdated library', { input: { parse: () => ({}) } }, 'zod 4.2 or later'],
  [
    'parameters in place of input',
    { input: undefined, parameters: z.object({}) },
    "use input instead of 'parameters'",
  ],
  ['neither execute nor client', { execute: undefined }, 'or client: true'],
  ['an execute that is not a function', { execute: 'x' }, 'execute must be a function'],
  ['both client and execute', { client: true }, 'cannot have execute'],
  [
    'client and needsApproval',
    { client: true, execute: undefined, needsApproval: true },
    'cannot have needsApproval',
  ],
  ['client and timeoutMs', { client: true, execute: undefined, timeoutMs: 1 }, 'cannot have timeoutMs'],
  ['a client that is not a boolean', { client: 'yes' }, 'client must be true or false'],
  ['a negative timeout', { timeoutMs: -1 }, 'timeoutMs must be'],
  ['an endless timeout', { timeoutMs: Infinity }, 'timeoutMs must be'],
  ['a timeout that is NaN', { timeoutMs: NaN }, 'timeoutMs must be'],
  ['a timeout that is null', { timeoutMs: null }, 'timeoutMs must be'],
  ['a needsApproval that is a string', { needsApproval: 'always' }, 'needsApproval must be'],
  ['a misspelled option', { needApproval: true }, "no option 'needApproval'"],
])('%s is refused, and the tool is named', (_, change, problem) => {
  const { message, subject } = refusal({ ...valid, ...change })
  expect(message).toContain(problem)
  expect(message).toContain("'read'")
  expect(subject).toMatch(/^read\./)
})

test.each([undefined, null, 'tool', 3])('The definition %j is refused', (definition) => {
  expect(refusal(definition).message).toContain('takes an object')
})

test('Omitted options are off', () => {
  expect(defineTool(valid)).toMatchObject({
    client: false,
    needsApproval: false,
    idempotent: false,
    readOnly: false,
    polling: false,
    timeoutMs: undefined,
  })
})

test('Inputs and the context are typed, and misuse is a type error', () => {
  interface App {
    user: string
  }
  const tool = defineTool({
    ...valid,
    needsApproval: ({ path }, { context }: { context: App }) => path.startsWith(context.user),
    execute: ({ path }, { context, signal }: ToolExecution<App>) => {
      // @ts-expect-error -- a path is a string
      const wrong: number = path
      return [wrong, context.user.trim(), signal.aborted]
    },
  })
  // @ts-expect-error -- execute is missing
  expect(() => defineTool({ name: 'a', description: 'b', input: valid.input })).toThrow(ConfigError)
  // @ts-expect-error -- a client tool is not executed here
  expect(() => defineTool({ ...valid, client: true })).toThrow(ConfigError)
  // @ts-expect-error -- arguments are an object
  expect(() => defineTool({ ...valid, input: { type: 'string' } })).toThrow(ConfigError)
  expect(createToolSet([tool, defineTool({ ...valid, name: 'other' })]).names).toEqual(['read', 'other'])
})

function circular(): unknown {
  const schema: Record<string, unknown> = { type: 'object' }
  schema['properties'] = { self: schema }
  return schema
}

function validatingOnly(): unknown {
  return { '~standard': { version: 1, vendor: 'older', validate: (value: unknown) => ({ value }) } }
}
