import { readFileSync } from 'node:fs'
import { findOtherName, otherNames } from '../../../src/core/config/other-names.js'
import { createAgent, openaiChat, resolveConfig } from '../../../src/index.js'

const model = openaiChat({ model: 'm', apiKey: 'k' })
const names = Object.keys(otherNames)

function messageOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing was thrown'
}

it.each(names)('an agent with %s is told what that is called here', (name) => {
  const hint = `${name} is not a known key. Here it is ${otherNames[name]}.`
  expect(messageOf(() => createAgent({ model, [name]: 3 } as never))).toContain(hint)
  expect(messageOf(() => resolveConfig({ [name]: 3 } as never))).toContain(hint)
})

it.each(['max_turns', 'max-retries', 'System_Prompt', 'polling_tools', 'input_shields', 'context_window'])(
  '%s is found in any spelling',
  (name) => expect(findOtherName(name)).toBeDefined(),
)

it('no name of ours is answered as if it were of another library', () => {
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
  const page = readFileSync(new URL('../../../docs/migrating.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (`.*) \| (.*) \|$/gm)].flatMap(([, there = '', here = '']) =>
    [...there.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, here.replaceAll('`', '')]),
  )
  expect(Object.fromEntries(rows)).toEqual(otherNames)
})
