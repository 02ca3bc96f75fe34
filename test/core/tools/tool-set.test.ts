import { z } from 'zod'
import { ConfigError } from '../../../src/core/base/errors.js'
import { defineTool } from '../../../src/core/tools/define-tool.js'
import { defineToolGroup, type ToolEntry, createToolSet } from '../../../src/core/tools/tool-set.js'
import type { Tool } from '../../../src/core/tools/tool.js'

const tool = (name: string, description = 'Does.') =>
  defineTool({ name, description, input: z.object({}), readOnly: true, execute: () => name })

const files = defineToolGroup({
  name: 'files',
  args: z.object({ root: z.string().default('/') }),
  tools: ({ root }) => [tool('read', `Reads in ${root}.`), tool('list', `Lists ${root}.`)],
})

function refusal(work: () => unknown): ConfigError {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return error as ConfigError
  }
  throw new Error('It was accepted.')
}

test('Tools keep their order and are found by name, and names of Object.prototype are not tools', () => {
  const set = createToolSet([tool('b'), tool('a')])
  expect(set.names).toEqual(['b', 'a'])
  expect(set.get('a')?.name).toBe('a')
  expect(set.get('constructor')).toBeUndefined()
  expect(set.specs).toEqual([
    { name: 'b', description: 'Does.', parameters: { type: 'object', properties: {} } },
    { name: 'a', description: 'Does.', parameters: { type: 'object', properties: {} } },
  ])
  expect(set.traits).toEqual({
    b: { readOnly: true, idempotent: false, polling: false },
    a: { readOnly: true, idempotent: false, polling: false },
  })
})

test('A group returns its tools, created from its validated arguments', () => {
  const set = createToolSet([tool('echo'), { group: files, args: { root: '/srv' } }])
  expect(set.specs.map(({ description }) => description)).toEqual(['Does.', 'Reads in /srv.', 'Lists /srv.'])
  expect(createToolSet([{ group: files }]).get('list')?.description).toBe('Lists /.')
})

test('Arguments that do not match a group are refused, field by field', () => {
  const { code, message } = refusal(() => createToolSet([{ group: files, args: { root: 7 } }]))
  expect(code).toBe('invalid_tool_group')
  expect(message).toMatch(/'files'[^]*root: .*expected string/)
})

test('Two tools with one name are refused, with both positions', () => {
  const { code, message, subject } = refusal(() => createToolSet([tool('read'), { group: files }]))
  expect(code).toBe('duplicate_tool')
  expect(subject).toBe('read')
  expect(message).toContain("tools[0] and tools[1], group 'files'")
})

test.each([null, undefined, 'read', 3, {}, { name: 'x', execute: () => 1 }, { group: 'files' }])(
  'The entry %j is refused',
  (entry) => {
    const { code, message } = refusal(() => createToolSet([tool('a'), entry as ToolEntry]))
    expect(code).toBe('invalid_tool')
    expect(message).toContain('tools[1] is not a tool')
  },
)

test('Tools that are not a list are refused', () => {
  expect(refusal(() => createToolSet({} as ToolEntry[])).message).toContain('must be an array')
})

test.each([
  ['no name', { name: '' }, 'name is missing'],
  ['no schema', { args: {} }, 'args must be a schema'],
  ['no tools', { tools: [] }, 'tools must be a function'],
])('A group with %s is refused', (_, change, problem) => {
  const group = { name: 'g', args: z.object({}), tools: () => [], ...change }
  const { message } = refusal(() => defineToolGroup(group as Parameters<typeof defineToolGroup>[0]))
  expect(message).toContain(problem)
})

test('A group that validates asynchronously or returns no list of tools is refused', () => {
  const slow = defineToolGroup({
    name: 'slow',
    args: z.object({}).refine(() => Promise.resolve(true)),
    tools: () => [],
  })
  expect(refusal(() => createToolSet([{ group: slow }])).message).toContain('synchronously')
  const odd = defineToolGroup({ name: 'odd', args: z.object({}), tools: () => tool('a') as never })
  expect(refusal(() => createToolSet([{ group: odd }])).message).toContain('array of tools')
  const wrong = defineToolGroup({ name: 'wrong', args: z.object({}), tools: () => ['a'] as never })
  expect(refusal(() => createToolSet([{ group: wrong }])).message).toContain("group 'wrong' is not a tool")
})

/** A source whose list the test changes. */
function source(...names: string[]): { name: string; tools: readonly Tool[] } {
  return { name: 'server', tools: names.map((name) => tool(name) as Tool) }
}

test('A source returns its current tools', () => {
  const server = source('a', 'b')
  const set = createToolSet([tool('own'), server])
  expect(set.names).toEqual(['own', 'a', 'b'])
  server.tools = [tool('b', 'Does more.') as Tool, tool('c') as Tool]
  expect(set.names).toEqual(['own', 'b', 'c'])
  expect(set.specs.map(({ description }) => description)).toEqual(['Does.', 'Does more.', 'Does.'])
  expect(Object.keys(set.traits)).toEqual(['own', 'b', 'c'])
  expect(set.get('a')).toBeUndefined()
  expect(set.get('c')).toBe(server.tools[1])
})

test('The specs are one array until a source returns another', () => {
  const server = source('a')
  const set = createToolSet([server])
  const { specs } = set
  expect(set.specs).toBe(specs)
  server.tools = [...server.tools]
  expect(set.specs).not.toBe(specs)
  expect(set.specs).toEqual(specs)
})

test('A tool keeps its name if a source adds another tool of that name', () => {
  const [first, second, own] = [source('a'), source('b'), tool('own')]
  const set = createToolSet([first, second, own])
  first.tools = [...source('b', 'own', 'c').tools, ...source('c').tools]
  expect(set.names).toEqual(['c', 'b', 'own'])
  expect(set.get('own')).toBe(own)
  expect(set.get('b')).toBe(second.tools[0])
  expect(set.get('c')).toBe(first.tools[2])
  second.tools = []
  expect(set.get('b')).toBe(first.tools[0])
})

test('Later updates of a source never throw: invalid entries are omitted, and an invalid list is ignored', () => {
  const server = source('a')
  const set = createToolSet([server])
  server.tools = [null, 'b', {}, tool('b')] as unknown as Tool[]
  expect(set.names).toEqual(['b'])
  for (const bad of [undefined, 'tools', { length: 1 }]) {
    server.tools = bad as unknown as Tool[]
    expect(set.names).toEqual(['b'])
  }
  Object.defineProperty(server, 'tools', {
    get: () => {
      throw new Error('no list')
    },
  })
  expect(set.names).toEqual(['b'])
})

test('The initial tools of a source obey the same rules as all others', () => {
  expect(refusal(() => createToolSet([tool('a'), source('a')]))).toMatchObject({
    code: 'duplicate_tool',
    message:
      "Two tools are named 'a' (tools[0] and tools[1], 'server'). Rename one: the model calls tools by name.",
  })
  const junk = { name: 'server', tools: [{}] } as unknown as ToolEntry
  expect(refusal(() => createToolSet([junk])).message).toContain("tools[0], 'server' is not a tool")
})
