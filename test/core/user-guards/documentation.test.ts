import { readFileSync } from 'node:fs'
import type { StepsWithBlock } from '../../../guards/progress-config.js'
import { roster } from '../../../guards/roster.js'
import {
  createAgent,
  defineGuard,
  openaiChat,
  presets,
  resolveConfig,
  type UserGuard,
} from '../../../src/index.js'

const [page, ownGuards, ofPresets] = ['guardrails', 'guards-of-your-own', 'presets'].map((name) =>
  readFileSync(`docs/${name}.md`, 'utf8'),
) as [string, string, string]
/** Full programs run with the snippets of the other pages (test/docs/snippets.test.ts). */
const blocks = [...`${page}${ownGuards}`.matchAll(/```js\n(?!import )([^]*?)```/g)].map(
  ([, code = '']) => code,
)
const model = openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9', apiKey: 'none' })

describe('docs/guardrails.md', () => {
  it('configures an agent as described', () => {
    const [configured = ''] = blocks
    expect(() => run(configured, '')).not.toThrow()
  })

  it('defines guards that an agent accepts, and that decide as described', async () => {
    const [, one = '', other = ''] = blocks
    const writesInside = run(one, 'writesInside') as UserGuard
    const mailPolicy = run(other, 'mailPolicy') as UserGuard
    expect(() => createAgent({ model, guards: [writesInside, mailPolicy] })).not.toThrow()
    const calls = ['out/a', '/etc/passwd'].map((path, i) => ({
      id: `c${i}`,
      name: 'write_file',
      arguments: { path },
      argumentsText: '',
      readOnly: false,
      polling: false,
    }))
    const about = {
      fact: { type: 'calls' as const, calls },
      signal: new AbortController().signal,
      context: {},
    }
    expect(writesInside.verdict(null, about)).toMatchObject({ action: 'block', callIds: ['c1'] })
    expect(await mailPolicy.verdict({ sent: 0 }, about)).toBeUndefined()
  })

  it('shows the numbers of the default policy', () => {
    const { progress } = resolveConfig().guardrails
    const { waiting, ...others } = progress ?? {}
    const steps = Object.entries(others).filter(([, value]) => typeof value === 'object')
    expect(steps).toHaveLength(8)
    for (const [name, value] of steps) {
      const { nudgeAt, haltAt, blockAt = '' } = value as Partial<StepsWithBlock>
      const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? ''
      expect(
        row
          .split('|')
          .slice(3, 6)
          .map((cell) => cell.trim()),
      ).toEqual([nudgeAt, blockAt, haltAt ?? ''].map(String))
    }
    expect(page).toContain(`took ${(waiting?.ms ?? 0) / 1000} seconds`)
    expect(page).toContain(`at most ${waiting?.chars} characters | a third`)
  })

  const { emptyAnswer } = resolveConfig().guardrails
  const { progress: _, ...others } = roster
  const rows = [...Object.entries(others), ['emptyAnswer', { defaults: emptyAnswer }] as const]

  it.each(rows)('has a row for %s: its value when enabled, and its keys of `progress`', (name, guard) => {
    const lines = `${page}${ofPresets}`.split('\n')
    const row = lines.find((line) => line.startsWith(`| \`${name}\` |`) && line.includes('{'))
    for (const [key, value] of Object.entries(guard.defaults ?? {})) {
      expect(row).toContain(typeof value === 'string' ? `${key}: '${value}'` : `${key}: ${value}`)
    }
    if ('insteadOf' in guard) expect(row?.split('|')[2]?.match(/\w+/g)).toEqual(guard.insteadOf)
  })

  it('has a section for each preset', () => {
    for (const name of Object.keys(presets))
      expect(ofPresets).toMatch(new RegExp(`^### .*\`presets\\.${name}\``, 'm'))
  })
})

/** Evaluates an example and returns the named value. */
function run(code: string, name: string): unknown {
  // oxlint-disable-next-line typescript/no-implied-eval -- code of our own page
  const evaluate = new Function(
    'createAgent',
    'defineGuard',
    'model',
    'tools',
    `${code}\nreturn ${name || 'null'}`,
  )
  return (evaluate as (...args: unknown[]) => unknown)(createAgent, defineGuard, model, [])
}
