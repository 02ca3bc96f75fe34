import { jest } from '@jest/globals'
import * as fc from 'fast-check'
import { z } from 'zod'
import { defineTool } from '../../../src/core/tools/define-tool.js'
import type { InputSchema } from '../../../src/core/tools/input-schema.js'
import { ToolError } from '../../../src/core/tools/tool-error.js'
import { call, runOne, start } from './harness.js'
import { hostile, oddities } from './hostile.js'

const about = { name: 'act', description: 'Acts.' }
const anything = { ...about, input: { type: 'object' } as const }
const named = (name: string) => defineTool({ ...anything, name, execute: () => 1 })

test('A tool receives its validated input and returns the text that the model reads', async () => {
  const tool = defineTool({
    ...about,
    input: z.object({ n: z.coerce.number() }),
    execute: ({ n }) => ({ twice: n * 2 }),
  })
  expect(await runOne({ n: '4', extra: true }, tool)).toEqual({
    status: 'ok',
    content: '{"twice":8}',
    durationMs: 0,
  })
})

test('A tool receives its call, run and session, and the app’s context', async () => {
  const context = { user: 'ada' }
  const seen: unknown[] = []
  const tool = defineTool({
    ...anything,
    execute: (_, { signal, progress, ...rest }) => seen.push(rest, signal.aborted, typeof progress),
  })
  await runOne({}, tool, { context })
  const ids = { callId: 'call_act', runId: 'run', sessionId: 'session', idempotencyKey: 'run.1:call_act' }
  expect(seen).toEqual([{ ...ids, context }, false, 'function'])
  expect((seen[0] as { context: unknown }).context).toBe(context)
})

test('A tool that reads a context which its run does not have fails with a message about it', async () => {
  const reading = defineTool({
    ...anything,
    execute: (_, { context }) => (context as { db: { rows: string[] } }).db.rows,
  })
  const { content } = await runOne({}, reading)
  expect(content).toMatch(/^The tool 'act' failed: .*The tool reads `context`, but this run has none/)
  expect((await runOne({}, reading, { context: {} })).content).not.toContain('this run has none')
  const other = defineTool({ ...anything, execute: () => (undefined as unknown as { a: string }).a })
  expect((await runOne({}, other)).content).not.toContain('this run has none')
})

test('An unknown tool gets an error with the names of the others, the nearest first', async () => {
  const { done, results } = start(
    [call('raed_file')],
    [named('write_file'), named('list'), named('read_file')],
  )
  await done
  expect(results[0]?.[1]).toEqual({
    status: 'unknown_tool',
    content: "There is no tool 'raed_file'. The tools are: read_file, write_file, list.",
    durationMs: 0,
  })
})

test('An unknown tool with a huge name, among many tools or none, gets a short answer', async () => {
  const many = Array.from({ length: 30 }, (_, index) =>
    defineTool({ ...anything, name: `t${index}`, execute: () => 1 }),
  )
  for (const tools of [many, []]) {
    const { done, results } = start([call('x'.repeat(1_000_000), {}, 'c')], tools)
    await done
    expect(results[0]?.[1].content.length).toBeLessThan(400)
    expect(results[0]?.[1].content).toContain(tools.length === 0 ? 'no tools' : 'and 10 more')
  }
})

test.each(['constructor', '__proto__', 'toString'])('The name %s is just unknown', async (name) => {
  const { done, results } = start([call(name)], [])
  await done
  expect(results[0]?.[1].status).toBe('unknown_tool')
})

test.each(['', '  \n', 'null', '{}'])('The arguments %j are an empty object', async (args) => {
  const tool = defineTool({ ...anything, execute: (input) => input })
  expect(await runOne(args, tool)).toMatchObject({ status: 'ok', content: '{}' })
})

test('Invalid JSON gets an error with its position and the problem', async () => {
  const execute = jest.fn()
  const result = await runOne('{"path": "a",\n "lines": 0x1}', defineTool({ ...anything, execute }))
  expect(result).toEqual({ status: 'invalid_arguments', durationMs: 0, content: expect.any(String) })
  expect(result.content).toContain("expected ',' or '}' but found \"x\", at position 25 (line 2, column 12)")
  expect(result.content).toContain('near "')
  expect(execute).not.toHaveBeenCalled()
})

test.each([
  ['[1]', 'an array'],
  ['"x"', 'a string'],
  ['7', 'a number'],
])('The arguments %s are refused as %s', async (args, found) => {
  const result = await runOne(args, defineTool({ ...anything, execute: () => 1 }))
  expect(result).toMatchObject({ status: 'invalid_arguments', content: expect.stringContaining(found) })
})

test('Arguments that do not match the schema get an error for each field', async () => {
  const input = z.object({
    user: z.object({ emails: z.array(z.email()) }),
    'odd key': z.number(),
    mode: z.union([z.literal('a'), z.number()]),
  })
  const args = { user: { emails: ['a@b.co', 'no'] }, 'odd key': 'x', mode: true }
  const { status, content } = await runOne(args, defineTool({ ...about, input, execute: () => 1 }))
  expect(status).toBe('invalid_arguments')
  expect(content).toContain('- user.emails[1]: Invalid email')
  expect(content).toContain('- ["odd key"]: Invalid input: expected number, received string')
  expect(content).toMatch(
    /- mode: Invalid input; expected \{"anyOf":\[\{"type":"string","const":"a"\},\{"type":"number"\}\]\}/,
  )
  expect(content).toContain('Correct them')
})

test('Many problems are counted, not all listed', async () => {
  const input = z.object({ list: z.array(z.number()) })
  const tool = defineTool({ ...about, input, execute: () => 1 })
  const { content } = await runOne({ list: Array(500).fill('x') }, tool)
  expect(content).toContain('- and 490 more')
})

test('A schema may validate asynchronously', async () => {
  const input = z.object({ n: z.number() }).refine(({ n }) => Promise.resolve(n > 0), 'n must be positive')
  const tool = defineTool({ ...about, input, execute: ({ n }) => n })
  expect(await runOne({ n: 1 }, tool)).toMatchObject({ status: 'ok', content: '1' })
  expect(await runOne({ n: 0 }, tool)).toMatchObject({
    status: 'invalid_arguments',
    content: expect.stringContaining('(arguments): n must be positive'),
  })
})

test.each([
  [
    'throws',
    () => {
      throw new Error('boom')
    },
  ],
  ['rejects', () => Promise.reject(new Error('boom'))],
  ['returns nonsense', () => undefined],
  ['resolves to nonsense', () => Promise.resolve(undefined)],
])('A schema that %s refuses the arguments', async (_, validate) => {
  const standard = {
    version: 1 as const,
    vendor: 'odd',
    validate,
    jsonSchema: { input: () => ({ type: 'object' }) },
  }
  const input = { '~standard': standard } as unknown as InputSchema
  const result = await runOne({}, defineTool({ ...about, input, execute: () => 1 }))
  expect(result).toMatchObject({
    status: 'invalid_arguments',
    content: expect.stringContaining('could not be checked'),
  })
})

test('Arguments named __proto__, in any spelling, pollute nothing', async () => {
  const merge = (target: Record<string, unknown>, source: object): void => {
    for (const [key, value] of Object.entries(source)) {
      if (typeof value === 'object' && value !== null)
        merge((target[key] ??= {}) as Record<string, unknown>, value as object)
      else target[key] = value
    }
  }
  const tool = defineTool({
    ...anything,
    execute: (input) => {
      merge({}, input)
      return Object.keys(input)
    },
  })
  for (const key of [
    '__proto__',
    '\\u005f_proto__',
    '__\\u0070roto__',
    '__pro\\u0074o__',
    '__pr\\u006fto__',
  ]) {
    const result = await runOne(`{"a":{"${key}":{"polluted":1}},"${key}":{"polluted":1},"b":2}`, tool)
    expect(result.content).toBe('["a","b"]')
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  }
})

test('Ten megabytes of arguments are parsed', async () => {
  const tool = defineTool({
    ...about,
    input: z.object({ text: z.string() }),
    execute: ({ text }) => text.length,
  })
  expect(await runOne({ text: 'é'.repeat(10_000_000) }, tool)).toMatchObject({ content: '10000000' })
  expect(await runOne(`{"text":"${'x'.repeat(10_000_000)}`, tool)).toMatchObject({
    status: 'invalid_arguments',
  })
})

test('Arguments of any depth get a result', async () => {
  const tool = defineTool({ ...anything, execute: () => 'fine' })
  const levels = 100_000
  for (const inner of ['1', '{"__proto__":1}']) {
    const { status } = await runOne(`{"a":${'['.repeat(levels)}${inner}${']'.repeat(levels)}}`, tool)
    expect(['ok', 'invalid_arguments']).toContain(status)
  }
})

test.each([
  [
    new ToolError('policy_denied', 'Not there.'),
    'denied',
    'policy_denied',
    "The tool 'act' refused this call because of its policy: Not there.",
  ],
  [
    new ToolError('transient', 'Busy.'),
    'error',
    'transient',
    "The tool 'act' failed, possibly temporarily: Busy.",
  ],
  [new ToolError('failed', 'No.'), 'error', 'failed', "The tool 'act' failed: No."],
  [
    new Error('read ECONNRESET'),
    'error',
    'transient',
    "The tool 'act' failed, possibly temporarily: read ECONNRESET",
  ],
  [undefined, 'error', 'failed', "The tool 'act' failed: undefined was thrown"],
])('A thrown %p becomes one error result, thrown or rejected', async (thrown, status, errorKind, content) => {
  const expected = { status, errorKind, content, durationMs: 0 }
  const throwing = () => {
    throw thrown
  }
  expect(await runOne({}, defineTool({ ...anything, execute: throwing }))).toEqual(expected)
  // oxlint-disable-next-line prefer-promise-reject-errors
  expect(await runOne({}, defineTool({ ...anything, execute: () => Promise.reject(thrown) }))).toEqual(
    expected,
  )
})

test('A huge result and a huge error are truncated with a note', async () => {
  const big = 'x'.repeat(5000)
  expect(await runOne({}, defineTool({ ...anything, execute: () => big }))).toMatchObject({
    status: 'ok',
    truncated: true,
  })
  const thrown = await runOne({}, defineTool({ ...anything, execute: () => Promise.reject(new Error(big)) }))
  expect(thrown).toMatchObject({ status: 'error', truncated: true })
  expect(thrown.content.length).toBeLessThanOrEqual(1000)
})

test('A client call without an answer is an error, not a crash', async () => {
  const tool = defineTool({ ...anything, client: true })
  expect(await runOne({}, tool)).toMatchObject({
    status: 'error',
    content: expect.stringContaining('returned no output'),
  })
})

test('Any arguments, return value and thrown value give exactly one result within the limit', async () => {
  const args = fc.oneof(
    fc.json(),
    fc.string(),
    fc.object().map((value) => JSON.stringify(value) ?? ''),
  )
  let next = { make: (): unknown => 0, throws: false }
  const answer = (): unknown => {
    if (next.throws) throw next.make()
    return next.make()
  }
  const tools = [
    defineTool({ ...anything, execute: answer }),
    defineTool({
      ...about,
      name: 'later',
      input: z.object({ a: z.string().optional() }),
      execute: async () => answer(),
    }),
  ]
  const check = async (text: string, make: () => unknown, throws: boolean) => {
    next = { make, throws }
    for (const tool of tools) {
      const { content } = await runOne(text, tool, { maxResultChars: 200 })
      expect(typeof content).toBe('string')
      expect(content.length).toBeLessThanOrEqual(200)
    }
  }
  for (const make of oddities) {
    for (const throws of [true, false]) {
      await check('{}', make, throws)
    }
  }
  await fc.assert(fc.asyncProperty(args, hostile, fc.boolean(), check))
})
