import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { longTest, runsAll, sampled, sampledRows } from '../support/extent.js'

const root = join(import.meta.dirname, '../..')

/** `npm run simulate -- …`, which plays in separate processes. */
function simulate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/simulate.mjs', ...args], {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, lines: stdout.trim().split('\n'), stderr }
}

const minute = 60_000

// `npm run suite -- simulation` plays 5,000.
test(
  'a sample of seeds keeps every promise, and so do all stories of past failures',
  () => {
    const { status, lines } = simulate('--seeds', String(sampled(20)), ...(runsAll ? [] : ['--workers', '1']))
    expect(lines.filter((line) => /^(?:seed|regression,)/.test(line))).toEqual([])
    expect(status).toBe(0)
  },
  5 * minute,
)

longTest(
  'the same seed gives the same story, and none uses time or chance of the platform',
  () => {
    const [first, second] = [simulate('--seed', '4'), simulate('--seed', '4')]
    expect(first.lines.length).toBeGreaterThan(50)
    expect(second.lines).toEqual(first.lines)
    const hashes = /^story (\w+), played again (\w+)$/.exec(
      first.lines.find((line) => line.startsWith('story')) ?? '',
    )
    expect(hashes?.[2]).toBe(hashes?.[1])
    expect(first.lines.filter((line) => line.startsWith('asked the platform'))).toEqual([])
    expect(simulate('--seed', '6').lines).not.toEqual(first.lines)
  },
  2 * minute,
)

/** `.ci/run` plays the whole list. This test plays one defect that is found quickly. */
const [which, found] = runsAll
  ? [[], /^\d\d+ defects planted, all found$/]
  : [['--defect', 'two may hold a session'], /^1 defects planted, all found$/]

test(
  'planted defects are found',
  () => {
    const { status, lines } = simulate('--planted', 'known', ...which)
    expect(lines.at(-1)).toMatch(found)
    expect(status).toBe(0)
  },
  5 * minute,
)

longTest(
  'a story that breaks a promise is shrunk, printed, and stored',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'simulation-'))
    const into = join(folder, 'kept.json')
    writeFileSync(into, '[]')
    const { status, lines } = simulate(
      '--seed',
      '2',
      '--defect',
      'a call in doubt is made again',
      '--keep',
      'A call was made twice.',
      '--into',
      into,
    )
    const [regression] = JSON.parse(readFileSync(into, 'utf8')) as {
      seed: number
      why: string
      plan: { faults: object[] }
    }[]
    rmSync(folder, { recursive: true })
    expect(status).toBe(1)
    expect(lines.find((line) => line.includes('BROKEN'))).toMatch(/takes effect 2 times/)
    expect(regression).toMatchObject({ seed: 2, why: 'A call was made twice.' })
    // Only the process's death is needed. The shrinker removes all other faults.
    expect(regression?.plan.faults).toHaveLength(1)
  },
  5 * minute,
)

const wrong: [string[], RegExp][] = [
  [[], /^Say --seed N, --seeds COUNT or --planted\.$/],
  [['--seed', 'x'], /^--seed takes a whole number, not 'x'\.$/],
  [['--seeds', '0'], /^--seeds takes a positive integer, not '0'\.$/],
  [['--seeds', '5', '--defect', 'no such'], /^--defect: there is no 'no such'\. There are: 'no fencing/],
  [['--seeds', '5', '--keep', 'why'], /^--keep 'WHY' goes with --seed N\.$/],
  [['--sead', '5'], /^Unknown option '--sead'/],
]

test.each(sampledRows(wrong))('an invalid option is refused: %j', (args, words) => {
  const { status, stderr } = simulate(...args)
  expect(stderr.trim()).toMatch(words)
  expect(status).toBe(2)
})
