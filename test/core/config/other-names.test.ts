import { readFileSync } from 'node:fs'
import { findOtherName, otherNames } from '../../../src/core/config/other-names.js'
import { createAgent, defineTool, memoryStore, openaiChat, resolveConfig } from '../../../src/index.js'
import * as core from '../../../src/index.js'
import * as mcp from '../../../src/mcp/index.js'
import * as stores from '../../../src/stores/postgres/index.js'
import * as testing from '../../../src/testing/index.js'
import * as ui from '../../../src/ui/index.js'
import { Run } from '../../../src/core/run/run.js'

const model = openaiChat({ model: 'm', apiKey: 'k' })
const names = Object.keys(otherNames)
const page = readFileSync(new URL('../../../docs/migrating.md', import.meta.url), 'utf8')

function messageOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing was thrown'
}

it.each(names)('an agent with %s is refused with the name of our option', (name) => {
  const hint = `${name} is not a known key. Use ${otherNames[name]}.`
  expect(messageOf(() => createAgent({ model, [name]: 3 } as never))).toContain(hint)
  expect(messageOf(() => resolveConfig({ [name]: 3 } as never))).toContain(hint)
})

it.each(['max_turns', 'max-retries', 'System_Prompt', 'polling_tools', 'input_shields', 'context_window'])(
  '%s is recognized in any spelling',
  (name) => expect(findOtherName(name)).toBeDefined(),
)

it('no option of ours is treated as one of another library', () => {
  const ours = [
    'instructions',
    'tools',
    'output',
    'store',
    'maxSteps',
    'tokenBudget',
    'maxAttempts',
    'window',
  ]
  expect(ours.filter((name) => findOtherName(name) !== undefined)).toEqual([])
})

it('a hint that is a path is the path of a key', () => {
  const hints = [...new Set(Object.values(otherNames))].filter((hint) =>
    /^(limits|retry|context|guardrails)\.\w+$/.test(hint),
  )
  expect(hints).not.toEqual([])
  for (const hint of hints) {
    const [section = '', key = ''] = hint.split('.')
    expect(messageOf(() => resolveConfig({ [section]: { [key]: 'wrong' } } as never))).toContain(
      `${hint} must be`,
    )
  }
})

it('docs/migrating.md lists every name with the same hint', () => {
  const [, names = ''] = /^## Names\n([^]*?)^## /m.exec(page) ?? []
  const rows = [...names.matchAll(/^\| (`.*) \| (.*) \|$/gm)].flatMap(([, there = '', here = '']) =>
    [...there.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, here.replaceAll('`', '')]),
  )
  expect(Object.fromEntries(rows)).toEqual(otherNames)
})

it('docs/migrating.md only compares functions, methods and types that exist', () => {
  const [, table = ''] = /^## Functions, methods and types\n([^]*?)^## /m.exec(page) ?? []
  const named = [...table.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, here = '']) =>
    [...here.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name),
  )
  expect(named.length).toBeGreaterThan(20)
  const agent: object = createAgent({ model, store: memoryStore() })
  const exported: object = { ...core, ...mcp, ...stores, ...testing, ...ui }
  const types = readFileSync(new URL('../../../src/index.ts', import.meta.url), 'utf8')
  const isThere = (name: string): boolean => {
    const [holder, method = ''] = name.split('.')
    if (holder === 'agent') return method in agent
    if (holder === 'run') return method in Run.prototype
    return name in exported || new RegExp(`\\b${name}\\b`).test(types)
  }
  expect(named.filter((name) => !isThere(name))).toEqual([])
})

it.each([
  [
    'abortSignal',
    () => createAgent({ model }).run('Go.', { abortSignal: null } as never),
    'signal in agent.run(input, { signal })',
  ],
  [
    'thread_id',
    () => createAgent({ model }).run('Go.', { thread_id: 'may' } as never),
    'session in agent.run(input, { session })',
  ],
  [
    'inputSchema',
    () => defineTool({ name: 't', description: 'd', inputSchema: {}, execute: () => '' } as never),
    'input in defineTool({ input })',
  ],
])('%s gets a hint where it is passed', (name, action, hint) => {
  expect(messageOf(action)).toContain(`no option '${name}'. Use ${hint}.`)
})
