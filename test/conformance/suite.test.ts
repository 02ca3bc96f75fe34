import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'

const folder = new URL('../../conformance/', import.meta.url)
const suite = new URL('../../packages/agent-loop-conformance/', import.meta.url)
const load = <T>(name: string, from = suite): Promise<T> => import(new URL(name, from).href) as Promise<T>

interface Told {
  result: string
  evidence: string
}
interface Case {
  id: string
  mistake: string
}
interface Result extends Told {
  peer: string
  variant: string
  case: string
}
interface Message {
  role: string
  content?: string | null
  tool_call_id?: string
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[]
}

const { cases } = await load<{ cases: Case[] }>('cases/index.mjs')
const { findHistoryProblem } = await load<{
  findHistoryProblem: (messages: Message[]) => string | undefined
}>('strict-history.mjs')
const { summarize } = await load<{
  summarize: (report: object, expected: object) => { text: string; isGood: boolean }
}>('summary.mjs', folder)
const { runCase } = await load<{
  runCase: (one: object, input: object) => Promise<Told>
}>('run-case.mjs')
const { certify, check } = await load<{
  certify: (lane: { faults: string[] }, fault: string) => void
  check: (isSo: boolean, evidence: string) => void
}>('verdict.mjs')
const { createRandom } = await load<{ createRandom: (seed: number) => () => number }>('server.mjs')

const main = (...options: string[]) =>
  spawnSync(process.execPath, [fileURLToPath(new URL('main.mjs', folder)), ...options], { encoding: 'utf8' })

const result = (result: Partial<Result>): Result => ({
  peer: 'ai',
  variant: 'defaults',
  case: 'wire/text',
  result: 'pass',
  evidence: '',
  ...result,
})
const report = (results: Result[], more = {}) => ({
  peers: [{ name: 'ai' }],
  controls: [],
  missing: [],
  results,
  ...more,
})
const listed = { ai: { defaults: { 'wire/text': 'a reason' } } }

describe('the verdict of a run', () => {
  test.each([
    ['a pass', result({}), {}, true],
    ['a listed failure', result({ result: 'expected_fail' }), listed, true],
    ['an unclaimed feature', result({ result: 'not_claimed' }), {}, true],
    ['a failure', result({ result: 'fail', evidence: 'no end' }), {}, false],
    ['a pass that is listed as a failure', result({}), listed, false],
    ['a fault that was not injected', result({ result: 'not_certified' }), {}, false],
  ])('%s', (_, result, expected, isGood) => {
    expect(summarize(report([result]), expected).isGood).toBe(isGood)
  })

  test('a case that does not distinguish its controls fails the run', () => {
    const { text, isGood } = summarize(
      report([result({})], { controls: [{ case: 'wire/text', why: 'both pass' }] }),
      {},
    )
    expect([isGood, text]).toEqual([false, expect.stringContaining('CONTROL wire/text: both pass')])
  })

  test('a missing library is named', () => {
    const { text, isGood } = summarize(
      report([], { missing: [{ peer: 'ai', variant: 'defaults', why: 'no package' }] }),
      {},
    )
    expect([isGood, text]).toEqual([false, expect.stringContaining('MISSING ai, defaults: no package')])
  })
})

describe('a case', () => {
  const options = { lacks: {}, open: () => ({}), variant: 'defaults', server: {}, repeats: true }
  const result = (run: () => void, needs: string[] = [], more = {}) =>
    runCase({ needs, run: async () => run() }, { ...options, ...more })

  test('that needs a feature that the library does not claim is skipped', async () => {
    const never = () => {
      throw new Error('played')
    }
    expect(await result(never, ['usage'], { lacks: { usage: 'no such number' } })).toEqual({
      result: 'not_claimed',
      evidence: 'no such number',
    })
  })

  test('fails if it fails at least twice in three times', async () => {
    let plays = 0
    const failing = (times: number) => () => check(plays++ >= times, 'seen')
    expect((await result(failing(1))).result).toBe('pass')
    plays = 0
    expect(await result(failing(2))).toEqual({ result: 'fail', evidence: 'seen [2 of 3 times]' })
  })

  test('whose fault was not injected proves nothing', async () => {
    expect((await result(() => certify({ faults: ['cut'] }, 'stall'))).result).toBe('not_certified')
  })

  test('that breaks is not counted against the library', async () => {
    const broken = () => {
      throw new TypeError('a defect of the suite')
    }
    expect((await result(broken)).result).toBe('broken')
  })
})

describe('the failures of a run', () => {
  const expectedFile = new URL('expected.json', folder)

  test('become the expected ones and keep their notes; skipped cases stay unchanged', async () => {
    const before = readFileSync(expectedFile, 'utf8')
    const { acceptFailures } = await load<{ acceptFailures: (report: object) => void }>(
      'accept-failures.mjs',
      folder,
    )
    try {
      const link = 'https://example.com/1'
      const notes = { 'wire/no-done': link, 'wire/comments': '', 'loops/failing': '' }
      writeFileSync(expectedFile, JSON.stringify({ ai: { defaults: notes } }))
      const fails = result({ case: 'wire/no-done', result: 'fail' })
      const passes = result({ case: 'wire/comments' })
      acceptFailures(report([result({ case: 'limits/last-words', result: 'fail' }), passes, fails]))
      expect(fails.result).toBe('expected_fail')
      const stored = JSON.parse(readFileSync(expectedFile, 'utf8')) as { ai: { defaults: object } }
      expect(Object.entries(stored.ai.defaults)).toEqual([
        ['wire/no-done', link],
        ['limits/last-words', ''],
        ['loops/failing', ''],
      ])
    } finally {
      writeFileSync(expectedFile, before)
    }
  })

  test('of some cases replace the earlier ones, next to the others', async () => {
    const { mergeReport } = await load<{ mergeReport: (report: object) => { results: Result[] } }>(
      'page.mjs',
      folder,
    )
    const fresh = result({ case: 'wire/no-done', evidence: 'new' })
    const { results } = mergeReport(report([fresh]))
    expect(results.filter((one) => one.case === 'wire/no-done')).toEqual([fresh])
    expect(results.length).toBeGreaterThan(100)
  })
})

test('each case has a unique name, and a mistake that it must detect', () => {
  const ids = cases.map(({ id }) => id)
  expect([...new Set(ids)]).toEqual(ids)
  expect(cases.filter(({ mistake }) => !mistake)).toEqual([])
})

test('one seed gives the same chunks', () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const [a, b] = [createRandom(seed), createRandom(seed)]
      const drawn = [a(), a(), a()]
      expect([b(), b(), b()]).toEqual(drawn)
      expect(drawn.every((value) => value >= 0 && value < 1)).toBe(true)
    }),
  )
})

describe('a strict provider', () => {
  const asks = (...ids: string[]): Message => ({
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } })),
  })
  const gives = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'text' })
  const user: Message = { role: 'user', content: 'Go.' }

  test('accepts each call with one result, in any order', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.stringMatching(/^c\d{1,3}$/), { minLength: 1 }), (ids) => {
        const results = ids.toReversed().map(gives)
        expect(findHistoryProblem([user, asks(...ids), ...results, user])).toBeUndefined()
        expect(findHistoryProblem([user, asks(...ids), ...results.slice(1), user])).toContain('has no result')
        expect(findHistoryProblem([user, asks(...ids), ...results, gives(ids[0] ?? '')])).toContain(
          'not an open call',
        )
      }),
    )
  })

  test.each([
    ['an empty answer', [user, { role: 'assistant', content: '' }, user], 'is empty'],
    ['two calls with one id', [user, asks('c1', 'c1')], 'have the id c1'],
    ['a call without an id', [user, asks('')], 'has no id'],
    ['no messages', [], 'no messages'],
  ])('refuses %s', (_, messages, why) => {
    expect(findHistoryProblem(messages)).toContain(why)
  })
})

describe('the command', () => {
  test('prints its options', () => {
    const { status, stdout } = main('--help')
    expect([status, stdout]).toEqual([0, expect.stringContaining(`Runs ${cases.length} cases`)])
  })

  test.each([
    ['no library', [], 'Use --peer or --all'],
    ['an unknown library', ['--peer', 'nobody'], 'There is no adapter nobody'],
    [
      'a seed that is not a number',
      ['--peer', 'statewright', '--seed', 'x'],
      "--seed: 'x' is not a whole number",
    ],
    ['a case that does not exist', ['--peer', 'statewright', '--case', 'nothing'], 'no case has this text'],
    ['an unknown option', ['--fast'], '--fast'],
  ])('refuses %s', (_, options, why) => {
    const { status, stderr } = main(...options)
    expect([status, stderr]).toEqual([2, expect.stringContaining(why)])
  })
})

test('the page matches the committed results of the current cases', async () => {
  const { findPageProblem } = await load<{ findPageProblem: () => string | undefined }>('page.mjs', folder)
  expect(findPageProblem()).toBeUndefined()
  expect(main('--check').status).toBe(0)
})

test('the minimal loop and the loop with mistakes differ over HTTP', async () => {
  // The controls require neither a build nor a library.
  const { runControls } = await load<{ runControls: (options: object) => Promise<unknown[]> }>(
    'run-suite.mjs',
  )
  const selected = cases.filter(({ id }) =>
    /parallel-calls|cut-call|in-call|approvals\/(twice|altered)/.test(id),
  )
  expect(selected.length).toBeGreaterThan(4)
  expect(await runControls({ cases: selected, seed: 7 })).toEqual([])
})

describe('npx agent-loop-conformance', () => {
  const cli = (...options: string[]) =>
    spawnSync(process.execPath, [fileURLToPath(new URL('cli.mjs', suite)), ...options], { encoding: 'utf8' })
  const template = fileURLToPath(new URL('template.mjs', suite))

  test('prints a template of at most 60 lines that runs', () => {
    const { stdout } = cli('--template')
    expect(stdout).toBe(readFileSync(template, 'utf8'))
    expect(stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(60)
    const run = cli(
      '--adapter',
      template,
      '--case',
      'wire/comments',
      '--case',
      'wire/unknown-tool',
      '--no-controls',
    )
    expect(run.status).toBe(1)
    expect(run.stdout).toContain('documented: 1 passed, 1 failed, 0 not claimed')
    expect(run.stdout).toContain('wire/unknown-tool: ')
  })

  test('writes JSON to stdout with --json -', () => {
    const { status, stdout } = cli(
      '--adapter',
      template,
      '--case',
      'usage/sum',
      '--no-controls',
      '--json',
      '-',
    )
    const { variants } = JSON.parse(stdout) as { variants: { variant: string; results: Result[] }[] }
    expect([status, variants]).toEqual([
      0,
      [
        {
          variant: 'documented',
          loose: [],
          results: [{ case: 'usage/sum', result: 'not_claimed', evidence: 'not implemented' }],
        },
      ],
    ])
  })

  const broken = (source: string) => {
    const file = `${mkdtempSync(`${tmpdir()}/adapter-`)}/adapter.mjs`
    writeFileSync(file, source)
    return file
  }
  test.each([
    ['a missing adapter', [], '--adapter is missing'],
    ['a file that does not exist', ['--adapter', 'none.mjs'], 'there is no file'],
    [
      'an adapter without open',
      ['--adapter', broken('export const close = 1')],
      "does not export a function 'open'",
    ],
    [
      'an unknown feature',
      ['--adapter', broken("export const open = () => 1, variants = { a: { flying: 'no' } }")],
      "unknown feature 'flying'",
    ],
    ['an unknown variant', ['--adapter', template, '--variant', 'x'], "no variant 'x'. It has documented"],
    ['a case that does not exist', ['--adapter', template, '--case', 'x!'], 'no id contains this text'],
    ['a seed that is not a number', ['--adapter', template, '--seed', 'x'], "'x' is not a whole number"],
    ['an unknown option', ['--adaptor', template], '--help'],
  ])('refuses %s', (_, options, message) => {
    const { status, stdout, stderr } = cli(...options)
    expect([status, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)])
  })

  test('imports only Node modules and its own files', () => {
    const files = readdirSync(suite, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.mjs'),
    )
    const imports = files.flatMap((name) => [
      ...readFileSync(new URL(name, suite), 'utf8').matchAll(/(?:from|import) ?\(?'([^']+)'/g),
    ])
    expect(imports.length).toBeGreaterThan(20)
    expect(
      imports.map(([, name = '']) => name).filter((name) => !/^node:|^\.\.?\/(?!\.\.\/)/.test(name)),
    ).toEqual([])
  })
})
