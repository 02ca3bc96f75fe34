import { z } from 'zod'
import { ConfigError } from '../../src/errors.js'
import { defineTool } from '../../src/tools/define-tool.js'
import { defineToolGroup } from '../../src/tools/tool-group.js'
import { type ToolEntry, toolSet } from '../../src/tools/tool-set.js'

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
  const set = toolSet([tool('b'), tool('a')])
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

test('A group brings its tools, made from its validated arguments', () => {
  const set = toolSet([tool('echo'), { group: files, args: { root: '/srv' } }])
  expect(set.specs.map(({ description }) => description)).toEqual(['Does.', 'Reads in /srv.', 'Lists /srv.'])
  expect(toolSet([{ group: files }]).get('list')?.description).toBe('Lists /.')
})

test('Arguments that do not fit a group are refused, field by field', () => {
  const { code, message } = refusal(() => toolSet([{ group: files, args: { root: 7 } }]))
  expect(code).toBe('invalid_tool_group')
  expect(message).toMatch(/'files'[^]*root: .*expected string/)
})

test('Two tools with one name are refused, with both places', () => {
  const { code, message, subject } = refusal(() => toolSet([tool('read'), { group: files }]))
  expect(code).toBe('duplicate_tool')
  expect(subject).toBe('read')
  expect(message).toContain("tools[0] and tools[1], group 'files'")
})

test.each([null, undefined, 'read', 3, {}, { name: 'x', execute: () => 1 }, { group: 'files' }])(
  'The entry %j is refused',
  (entry) => {
    const { code, message } = refusal(() => toolSet([tool('a'), entry as ToolEntry]))
    expect(code).toBe('invalid_tool')
    expect(message).toContain('tools[1] is not a tool')
  },
)

test('Tools that are not a list are refused', () => {
  expect(refusal(() => toolSet({} as ToolEntry[])).message).toContain('must be an array')
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

test('A group that checks asynchronously or returns no list of tools is refused', () => {
  const slow = defineToolGroup({
    name: 'slow',
    args: z.object({}).refine(() => Promise.resolve(true)),
    tools: () => [],
  })
  expect(refusal(() => toolSet([{ group: slow }])).message).toContain('synchronously')
  const odd = defineToolGroup({ name: 'odd', args: z.object({}), tools: () => tool('a') as never })
  expect(refusal(() => toolSet([{ group: odd }])).message).toContain('array of tools')
  const wrong = defineToolGroup({ name: 'wrong', args: z.object({}), tools: () => ['a'] as never })
  expect(refusal(() => toolSet([{ group: wrong }])).message).toContain("group 'wrong' is not a tool")
})
