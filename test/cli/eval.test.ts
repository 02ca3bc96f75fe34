import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EvaluationReport } from '../../src/testing/index.js'
import { type Scenario, startRehearsal, type Rehearsal } from '../../src/rehearsal/index.js'
import { createPlace, withProgram } from './kept.js'
import { type CliCall, removeFolders } from './support.js'

let rehearsals: Rehearsal[] = []

afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((one) => one.close()))
  await removeFolders()
})

const cases = [
  { id: 'fr', input: 'The capital of France?', expected: 'Paris' },
  { id: 'pl', input: 'The capital of Poland?', expected: 'Warsaw' },
  { id: 'at', input: 'The capital of Austria?', expected: 'Vienna' },
]
  .map((one) => JSON.stringify(one))
  .join('\n')

const scorers = `
  export const score = {
    exact: ({ output }, { expected }) => output === expected,
    short: ({ output }) => ({ score: output.length < 7, why: output.length + ' letters' }),
  }`

/** Answers by the last message. The folder contains a case, a scorer and an agent. */
async function place(
  answer: (prompt: string) => string,
  { score = scorers, tools = '[]' }: { score?: string; tools?: string } = {},
) {
  const turns: Scenario['turns'] = [
    ({ body }) => ({ text: answer(JSON.stringify(body.messages.at(-1)?.content)) }),
  ]
  const rehearsal = await startRehearsal({ scenario: { turns, onExhausted: 'repeatLast' } })
  rehearsals.push(rehearsal)
  const agent = `
    import { createAgent, defineTool, openaiChat } from 'statewright'
    const model = openaiChat({ model: 'm', baseURL: '${rehearsal.url}', apiKey: 'none' })
    export default ({ store }) => createAgent({ model, store, tools: ${tools}, prices: { m: { inputPerMillion: 1, outputPerMillion: 1 } } })`
  const wrong = { 'none.mjs': 'export const exact = 1', 'text.mjs': `export const score = 'exact'` }
  const files = { 'cases.jsonl': cases, 'agent.mjs': agent, 'score.mjs': score, ...wrong }
  const folder = await createPlace(files)
  return {
    ...folder,
    rehearsal,
    evaluate: (args: readonly string[], call?: CliCall) =>
      folder.run(['eval', 'cases.jsonl', '--agent', 'agent.mjs', ...args], call),
    readReport: async (name: string) =>
      JSON.parse(await readFile(join(folder.cwd, name), 'utf8')) as EvaluationReport,
  }
}

const twoOfThree = (prompt: string): string => (prompt.includes('France') ? 'Paris' : 'Warsaw')

describe('eval', () => {
  test('runs the cases, and prints a table of the scores', async () => {
    const { evaluate, run } = await place(twoOfThree)
    const { code, out, err } = await evaluate(['--score', 'score.mjs', '--id', 'capitals'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^Evaluation capitals · \S+ m · 3 cases, /)
    expect(out).toMatch(/\n {2}all +0\.83 .* 67 % .* 3\n/)
    expect(out).toMatch(/\n {2}exact +0\.67 /)
    expect(out).toMatch(/\n {2}short +1\.00 /)
    expect(out).toMatch(/passed 2 {3}failed 1\n/)
    expect(out).toMatch(/cost +< \$0\.0001/)
    expect(out).toMatch(/states +COMPLETED end_turn 3\n/)
    expect(out).toMatch(/\n {2}failed {2}capitals\.at\.1\n {4}exact 0\.00\n/)
    expect(out).toMatch(/Inspect one: statewright sessions show capitals\.at\.1 --store=file:kept\n$/)
    const shown = await run(['sessions', 'show', 'capitals.at.1'])
    expect(shown.out).toContain('Warsaw')
    expect(
      (await run(['sessions', 'list', '--tag', 'evaluation=capitals', '--json'])).out.split('\n'),
    ).toHaveLength(4)
  })

  test('writes the report as JSON and as a page', async () => {
    const { evaluate, readReport, cwd } = await place(twoOfThree)
    const files = ['--out', 'report.json', '--html', 'report.html']
    const { out } = await evaluate(['--score', 'score.mjs', '--id', 'e', '--json', ...files])
    const report = await readReport('report.json')
    expect(JSON.parse(out)).toEqual(report)
    expect(report.cases.map(({ id, score }) => [id, score])).toEqual([
      ['fr', 1],
      ['pl', 1],
      ['at', 0.5],
    ])
    const page = await readFile(join(cwd, 'report.html'), 'utf8')
    expect(page).toContain('statewright sessions show e.at.1')
  })

  test('compares with a report, and fails if a threshold is crossed', async () => {
    let answer = twoOfThree
    const { evaluate } = await place((prompt) => answer(prompt))
    const args = ['--score', 'score.mjs']
    expect((await evaluate([...args, '--out', 'base.json'])).code).toBe(0)
    const same = await evaluate([...args, '--against', 'base.json', '--max-regression', '0'])
    expect(same).toMatchObject({ code: 0, err: '' })
    expect(same.out).toMatch(/Against eval-\S+ · 3 pairs\n {2}score +±0\.00/)
    answer = (prompt) => (prompt.includes('Austria') ? 'Vienna' : 'Lisbon')
    const worse = await evaluate([...args, '--against', 'base.json', '--max-regression', '0.1'])
    expect(worse.code).toBe(1)
    expect(worse.err).toBe(
      'statewright: the mean score has fallen by 0.167, more than 0.1 (--max-regression).\n',
    )
    expect(worse.out).toMatch(/worse 2\n {4}−0\.50 {2}1\.00 → 0\.50 {2}fr\n/)
    expect(worse.out).toMatch(/better 1\n {4}\+0\.50 {2}0\.50 → 1\.00 {2}at\n/)
    expect((await evaluate([...args, '--against', 'base.json', '--max-regression', '0.2'])).code).toBe(0)
    const low = await evaluate([...args, '--fail-below', '0.9'])
    expect(low).toMatchObject({
      code: 1,
      err: 'statewright: the mean score 0.667 is below 0.9 (--fail-below).\n',
    })
    expect((await evaluate([...args, '--fail-below', '0.6'])).code).toBe(0)
  })

  test('a scorer that throws is an error, and fails the command', async () => {
    const score = `export default (result, { id }) => { if (id === 'at') throw new Error('No such file.'); return 1 }`
    const { evaluate } = await place(twoOfThree, { score })
    const { code, out, err } = await evaluate(['--score', 'score.mjs'])
    expect({ code, err }).toEqual({
      code: 1,
      err: 'statewright: 1 of 3 runs failed and have no score.\n',
    })
    expect(out).toMatch(/passed 2 {3}failed 0 {3}error 1/)
    expect(out).toMatch(/error {2}\S+\.at\.1\n {4}Scorer 'score' threw: No such file\./)
    expect(out).toMatch(/\n {2}score +1\.00 .* 2\n/)
  })

  test('Ctrl-C reports completed scores, and the same command continues', async () => {
    const stop = new AbortController()
    const { evaluate, rehearsal, readReport } = await place((prompt) => {
      if (prompt.includes('Poland')) stop.abort()
      return twoOfThree(prompt)
    })
    const args = ['--score', 'score.mjs', '--concurrency', '1', '--out', 'report.json']
    const first = await evaluate(args, { signal: stop.signal })
    expect(first.code).toBe(130)
    expect(first.out).toMatch(/Stopped early/)
    const [, id = ''] = /To continue, run the same command with --id (\S+)\.\n$/.exec(first.err) ?? []
    expect(await readReport('report.json')).toMatchObject({
      id,
      interrupted: true,
      cases: [{ id: 'fr', score: 1 }],
    })
    const requests = rehearsal.requests.length
    const second = await evaluate([...args, '--id', id])
    expect(second).toMatchObject({ code: 0, err: '' })
    expect((await readReport('report.json')).cases.map((one) => one.id)).toEqual(['fr', 'pl', 'at'])
    const after = rehearsal.requests.slice(requests).map(({ body }) => JSON.stringify(body.messages))
    expect(after.filter((prompt) => prompt.includes('France'))).toEqual([])
  })

  test('shows its progress at a terminal', async () => {
    const { evaluate } = await place(twoOfThree)
    const { err } = await evaluate(['--concurrency', '1'], { tty: true })
    expect(err).toContain('\r0/3 · 0 passed, 0 failed · 1 running')
    expect(err.endsWith('\r\u001B[K')).toBe(true)
  })

  test('replays the sessions of a store, and writes nothing', async () => {
    const tools = `[defineTool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, execute: () => { throw new Error('It ran.') } })]`
    const there = await place(() => 'Paid.', { tools })
    const { run, cwd, withStore } = there
    const pay = { toolCalls: [{ name: 'pay', arguments: { id: 1 } }] }
    await withProgram(there, [pay, { text: 'Paid.' }, { text: 'Nothing.' }], {}, async (agent) => {
      await agent.run('Pay 1.', { session: 'ann', tags: { plan: 'pro' } }).result
      await agent.run('Anything else?', { session: 'bob' }).result
      await agent.fork('ann')
    })
    const read = () => withStore((store) => store.list().map(({ id, head }) => [id, head]))
    const before = await read()
    const items = [
      'eval',
      '--agent',
      'agent.mjs',
      '--from-store',
      '--store',
      'file:kept',
      '--out',
      'report.json',
    ]
    const { cli } = await import('./support.js')
    const { code, out, err } = await cli([...items, '--tag', 'plan=pro'], { cwd })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/1 case, /)
    expect(await there.readReport('report.json')).toMatchObject({
      cases: [{ id: 'ann', input: 'Pay 1.', runs: [{ session: null, output: 'Paid.', verdict: 'passed' }] }],
    })
    const { out: both } = await cli([...items, '--last', '1'], { cwd })
    expect(both).toMatch(/1 case, /)
    expect(await read()).toEqual(before)
    const none = await cli([...items, '--tag', 'plan=none'], { cwd })
    expect(none).toMatchObject({
      code: 2,
      err: expect.stringMatching(/the store file:\S*kept has no matching session/) as string,
    })
    expect(await run(['sessions', 'list', '--json'])).toMatchObject({ code: 0 })
  })

  test('reports a damaged session of a store, and replays the others', async () => {
    const there = await place(() => 'Nothing.')
    const replay = ['eval', '--agent', 'agent.mjs', '--from-store']
    await withProgram(there, [{ text: 'Nothing.' }, { text: 'Nothing.' }], {}, async (agent) => {
      await agent.run('Anything?', { session: 'whole' }).result
      await agent.run('Anything else?', { session: 'torn' }).result
    })
    const damage = (session: string) =>
      there.withStore((store) => {
        const lease = store.acquire(session, { holder: 'somebody', ttlMs: 60_000 })
        const seq = store.read(session).length + 1
        store.append(lease, [{ seq, at: 0, type: 'event', data: '{}', check: 'none' }])
        store.release(lease)
      })
    await damage('torn')
    const { code, out, err } = await there.run(replay)
    expect(code).toBe(0)
    expect(err).toMatch(/^statewright: skipped a session: .*'torn': record 4 is damaged[^\n]*\n$/)
    expect(out).toMatch(/1 case, /)
    await damage('whole')
    const none = await there.run(replay)
    expect(none.code).toBe(2)
    expect(none.err).toMatch(/(skipped a session: .*\n.*){2}has no matching session/)
  })

  test('refuses invalid options in one sentence, before any request', async () => {
    const { run, rehearsal } = await place(twoOfThree)
    const agent = ['--agent', 'agent.mjs']
    const refused = async (...args: string[]) => {
      const { code, out, err } = await run(['eval', ...args])
      expect({ code, out }).toEqual({ code: 2, out: '' })
      return err
    }
    expect(await refused()).toMatch(/Pass a file with one .* or replay sessions: --from-store/)
    expect(await refused('cases.jsonl')).toMatch(/Pass the module that exports the agent/)
    expect(await refused('no.jsonl', ...agent)).toMatch(/there is no file 'no\.jsonl'/)
    expect(await refused('cases.jsonl', '--agent', 'no.mjs')).toMatch(/--agent: there is no file/)
    expect(await refused('cases.jsonl', ...agent, '--score', 'none.mjs')).toMatch(
      /'none\.mjs' exports no scorer\. Export/,
    )
    expect(await refused('cases.jsonl', ...agent, '--score', 'text.mjs')).toMatch(
      /score must be a function .* Export/,
    )
    expect(await refused('cases.jsonl', ...agent, '--score', 'cases.jsonl')).toMatch(/--score/)
    expect(await refused('cases.jsonl', ...agent, '--repeat', '0')).toMatch(/--repeat must be a whole number/)
    expect(await refused('cases.jsonl', ...agent, '--fail-below', '80')).toMatch(
      /--fail-below must be a number from 0 to 1/,
    )
    expect(await refused('cases.jsonl', ...agent, '--max-regression', '0.1')).toMatch(/needs --against/)
    expect(await refused('cases.jsonl', ...agent, '--last', '3')).toMatch(/needs --from-store/)
    expect(await refused('cases.jsonl', ...agent, '--from-store')).toMatch(/cannot be combined/)
    expect(await refused('cases.jsonl', ...agent, '--against', 'cases.jsonl')).toMatch(
      /is not an evaluation report/,
    )
    expect(await refused('cases.jsonl', ...agent, '--out', 'no/report.json')).toMatch(
      /--out: there is no folder for/,
    )
    expect(await refused('cases.jsonl', ...agent, '--html', '.')).toMatch(/--html: '\.' is a folder/)
    expect(await refused('cases.jsonl', ...agent, '--id', 'a.b')).toMatch(/without a dot/)
    expect(rehearsal.requests).toEqual([])
  })

  test('names every invalid line of a file of cases', async () => {
    const { run } = await createPlace({
      'agent.mjs': 'export default null',
      'cases.jsonl': [
        '{ "id": "a", "input": "x" }',
        '',
        '{ "id": "a", "input": "y" }',
        '{ "input": "z" }',
        '{ "id": ',
      ].join('\n'),
    })
    const { code, err } = await run(['eval', 'cases.jsonl', '--agent', 'agent.mjs'])
    expect(code).toBe(2)
    expect(err).toMatch(
      /cases\.jsonl: line 3 has the id "a" of line 1; line 4 has no id; line 5 is not JSON: .*\. A case is \{ "id", "input"/s,
    )
  })
})
