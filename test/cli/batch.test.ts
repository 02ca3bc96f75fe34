import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SimulatedClock } from 'xstate'
import { formatBar, formatProgress, type ResultLine } from '../../src/cli/commands/batch.js'
import { createProgressLine } from '../../src/cli/output.js'
import type { BatchProgress } from '../../src/fleet/run-all.js'
import { createBudget } from '../../src/fleet/index.js'
import { ModelError, type SessionStore } from '../../src/index.js'
import { type CliIO, SigtermHandler } from '../../src/cli/command.js'
import { createPlace } from './kept.js'
import { cli, removeFolders } from './support.js'

afterEach(removeFolders)

const hook = 'statewrightBatch'

/** The model's input, and its actions in addition to the answer. */
const world = {
  asked: [] as string[],
  onAsked: (_said: string): unknown => undefined,
}

beforeEach(() => {
  world.asked = []
  world.onAsked = () => undefined
  Object.assign(globalThis, { [hook]: world })
})

afterAll(() => {
  Reflect.deleteProperty(globalThis, hook)
})

/** Echoes the user's message. A line that asks for a payment calls a tool that needs approval. */
const agentModule = `
  import { createAgent, defineTool, ModelError } from 'statewright'
  const usage = { inputTokens: 100, outputTokens: 10, totalTokens: 110, cachedInputTokens: 0, reasoningTokens: 0 }
  const rest = { text: '', reasoning: '', refusal: null, complete: true, usage, model: 'played', toolCalls: [], finishReason: 'stop' }
  const model = {
    provider: 'played',
    model: 'played-1',
    request: async ({ messages }) => {
      const { role, content } = messages.at(-1)
      const world = globalThis.${hook}
      world.asked.push(content)
      await world.onAsked(content)
      if (content === 'Fail.') throw new ModelError({ kind: 'fatal', code: 'no_luck', message: 'No luck.' })
      if (content === 'Pay.') {
        const toolCalls = [{ id: 'a', type: 'function', function: { name: 'pay', arguments: '{}' } }]
        return { ...rest, toolCalls, finishReason: 'tool_calls' }
      }
      return { ...rest, text: role === 'tool' ? 'Paid.' : 'You said: ' + content }
    },
  }
  const pay = defineTool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, needsApproval: true, execute: () => 'paid' })
  const prices = { 'played-1': { inputPerMillion: 10_000, outputPerMillion: 0 } }
  export default ({ store }) => createAgent({ model, store, prices, tools: [pay] })`

const lines = (...args: unknown[]): string =>
  args.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
const questions = (count: number): string =>
  lines(...Array.from({ length: count }, (_, i) => ({ id: `q${i}`, input: `Question ${i}` })))

async function place(input: string) {
  const { cwd, run, withStore } = await createPlace({ 'in.jsonl': input, 'agent.mjs': agentModule })
  const batch = (more: readonly string[] = [], call = {}) =>
    run(['batch', 'in.jsonl', '--agent', 'agent.mjs', ...more], call)
  const read = () => readFile(join(cwd, 'out.jsonl'), 'utf8')
  const toFile = (more: readonly string[] = [], call = {}) => batch(['--out', 'out.jsonl', ...more], call)
  return { cwd, run, withStore, batch, toFile, read }
}

const parse = (text: string): ResultLine[] =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ResultLine)

test('each line of the input is a session, and each result is a line in input order', async () => {
  const { toFile, read, withStore } = await place(
    lines({ id: 'a', input: 'One.', tags: { team: 'x' } }, '', { id: 'b', input: [{ content: 'Two.' }] }),
  )
  const { code, err, out } = await toFile(['--concurrency', '1'])
  // Progress lines may precede it on a slow machine.
  expect(err).toMatch(
    /(?:^|\n)statewright: batch 'in': 2\/2 done, 0 running, 0 waiting, 0 failed, \$2\.00\.\n$/,
  )
  expect(out).toBe('')
  expect(code).toBe(0)
  const usage = {
    inputTokens: 100,
    outputTokens: 10,
    totalTokens: 110,
    cachedInputTokens: 0,
    reasoningTokens: 0,
    estimated: false,
  }
  const rest = { state: 'COMPLETED', reason: 'end_turn', usage, cost: 1 }
  const [first, second] = (await read()).trim().split('\n')
  expect(first).toBe(
    JSON.stringify({
      id: 'a',
      session: 'in.a',
      state: 'COMPLETED',
      reason: 'end_turn',
      output: 'You said: One.',
      usage,
      cost: 1,
    }),
  )
  expect(JSON.parse(second ?? '')).toEqual({ id: 'b', session: 'in.b', output: 'You said: Two.', ...rest })
  await withStore((store) =>
    expect(store.list({ tags: { team: 'x' } }).map(({ id }) => id)).toEqual(['in.a']),
  )
})

test('without --out the lines are printed to stdout', async () => {
  const { batch } = await place(questions(3))
  const { out } = await batch()
  expect(parse(out).map(({ id }) => id)).toEqual(['q0', 'q1', 'q2'])
})

test('a second call continues, repairs a torn line, and repeats no request', async () => {
  const { cwd, toFile, read } = await place(questions(6))
  const stop = new AbortController()
  world.onAsked = (prompt) => {
    if (prompt === 'Question 3') stop.abort()
  }
  const parked = await toFile(['--concurrency', '1'], { signal: stop.signal })
  expect(parked.code).toBe(130)
  expect(parked.err).toContain(
    'the results of 3 lines are not written yet: run the same command to continue.',
  )
  const begun = await read()
  expect(parse(begun).length).toBe(3)

  await writeFile(join(cwd, 'out.jsonl'), begun.slice(0, -20))
  world.onAsked = () => undefined
  expect(await toFile()).toMatchObject({ code: 0 })
  const whole = await read()
  expect(whole.startsWith(begun)).toBe(true)
  expect(parse(whole).map(({ id }) => id)).toEqual(['q0', 'q1', 'q2', 'q3', 'q4', 'q5'])
  // Requests that were active when the batch was parked run again.
  expect(world.asked.toSorted()).toEqual(
    ['Question 3', ...Array.from({ length: 6 }, (_, i) => `Question ${i}`)].toSorted(),
  )

  expect(await toFile()).toMatchObject({ code: 0 })
  expect(await read()).toBe(whole)
  expect(world.asked.length).toBe(7)
})

test('a waiting line has a waiting result, and continues after the answer', async () => {
  const { run, toFile, read } = await place(lines({ id: 'a', input: 'Pay.' }, { id: 'b', input: 'Two.' }))
  const waiting = await toFile()
  expect(waiting.code).toBe(4)
  expect(waiting.err).toContain('1/2 done, 0 running, 1 waiting, 0 failed')
  expect(waiting.err).toContain(
    'to answer a waiting line, run statewright resume in.LINE-ID --store=file:kept, then rerun the batch.',
  )
  expect(parse(await read()).map(({ state }) => state)).toEqual(['WAITING_FOR_INPUT', 'COMPLETED'])
  const result = await run(['send', 'in.a', 'approve', 'a'])
  expect(result.code).toBe(0)
  expect(await toFile()).toMatchObject({ code: 0 })
  expect(parse(await read()).map(({ state, output }) => [state, output])).toEqual([
    ['COMPLETED', 'Paid.'],
    ['COMPLETED', 'You said: Two.'],
  ])
})

test('a damaged line is named by its number, and does not stop the others', async () => {
  const { toFile, read } = await place(
    lines(
      { id: 'a', input: 'One.' },
      '{ "id": "b", "input": ',
      '["c"]',
      { id: 'c/d', input: 'x' },
      { id: 'e', inputs: 'x' },
      { id: 5, input: 'x' },
      { id: 'f', input: 'x', tags: ['a'] },
      { id: 'g', input: '  ' },
      { id: 'h', input: 'Two.' },
    ),
  )
  const { code, err } = await toFile()
  const prompt = [
    "line 2 of 'in.jsonl' is not valid JSON.",
    `line 3 of 'in.jsonl' is a list. An item must be { "id", "input", "tags"? }.`,
    `line 4 of 'in.jsonl' has the id "c/d". Use letters`,
    "line 5 of 'in.jsonl' has 'inputs' instead of input. Rename it to input.",
    "line 6 of 'in.jsonl' has an id that is a number",
    "line 7 of 'in.jsonl' has invalid tags",
    "line 8 of 'in.jsonl' has an invalid input",
  ]
  expect(prompt.filter((line) => !err.includes(line))).toEqual([])
  expect(code).toBe(1)
  expect(parse(await read()).map(({ id }) => id)).toEqual(['a', 'h'])
})

test('a line of JSON may contain any separator but a line feed, and a file may have a byte order mark and CRLF', async () => {
  const input = `\uFEFF${JSON.stringify({ id: 'a', input: 'One\u2028two\u2029three' })}\r\n${JSON.stringify({ id: 'b', input: 'Zwölf' })}\r\n`
  const { toFile, read } = await place(input)
  expect(await toFile()).toMatchObject({ code: 0 })
  expect(parse(await read()).map(({ output }) => output)).toEqual([
    'You said: One\u2028two\u2029three',
    'You said: Zwölf',
  ])
  expect(await toFile()).toMatchObject({ code: 0 })
  expect(world.asked.length).toBe(2)
})

test.each([
  [
    'two lines with one id',
    lines({ id: 'a', input: 'x' }, '', { id: 'a', input: 'y' }),
    [],
    "Lines 1 and 3 of 'in.jsonl' have the same id, 'a'",
  ],
  ['an id of the batch with a dot', questions(1), ['--id', 'a.b'], '--id must consist of 1 to 100 letters'],
  [
    'a concurrency of zero',
    questions(1),
    ['--concurrency', '0'],
    '--concurrency must be a whole number of at least 1',
  ],
  ['a limit of zero', questions(1), ['--cost-limit', '0'], '--cost-limit must be a positive amount in USD'],
  ['a limit that is not a number', questions(1), ['--cost-limit', 'five'], "(got 'five')"],
  ['two inputs', questions(1), ['more.jsonl'], "Unexpected argument 'more.jsonl'."],
  ['a file with other content', questions(1), ['--out', 'agent.mjs'], "'agent.mjs' does not contain results"],
  [
    'a JSON file on several lines',
    questions(1),
    ['--out', 'settings.json'],
    "'settings.json' does not contain results",
  ],
  [
    'results in a device',
    questions(1),
    ['--out', '/dev/zero'],
    "--out must be a file. '/dev/zero' is not a file.",
  ],
  ['results in a folder', questions(1), ['--out', '.'], "--out: '.' is a folder"],
  [
    'results in a missing folder',
    questions(1),
    ['--out', 'none/out.jsonl'],
    "--out: there is no folder for 'none/out.jsonl'.",
  ],
])('%s: refused before anything runs', async (_name, input, more, message) => {
  const { batch, cwd } = await place(input)
  const settings = '{\n  "kept": true\n}\n'
  await writeFile(join(cwd, 'settings.json'), settings)
  const { code, err } = await batch(more)
  expect(err).toContain(message)
  expect(code).toBe(2)
  expect(world.asked).toEqual([])
  expect(await readFile(join(cwd, 'agent.mjs'), 'utf8')).toBe(agentModule)
  expect(await readFile(join(cwd, 'settings.json'), 'utf8')).toBe(settings)
})

test.each([
  ['no input', ['batch', '--agent', 'a.mjs'], 'Pass a file with one'],
  ['no agent', ['batch', 'in.jsonl'], 'Pass the module that exports the agent: --agent ./agent.mjs.'],
  ['a missing input', ['batch', 'none.jsonl', '--agent', 'a.mjs'], "INPUT: there is no file 'none.jsonl'"],
  [
    'an input that is a folder',
    ['batch', '.', '--agent', 'a.mjs', '--id', 'b'],
    "INPUT is read twice, so it must be a file. '.' is not a file.",
  ],
])('%s: refused', async (_name, args, message) => {
  const { cwd } = await place(questions(1))
  const { code, err } = await cli(args, { cwd })
  expect(err).toContain(message)
  expect(code).toBe(2)
})

test('an agent without a store is refused', async () => {
  const { cwd, batch } = await place(questions(1))
  await writeFile(
    join(cwd, 'agent.mjs'),
    agentModule.replace('createAgent({ model, store,', 'createAgent({ model,'),
  )
  const { code, err } = await batch()
  expect(err).toContain("--agent: the agent in 'agent.mjs' has no store")
  expect(code).toBe(2)
})

test('--cost-limit starts no further line, and a higher limit continues', async () => {
  const { toFile, read } = await place(questions(6))
  const first = await toFile(['--cost-limit', '3', '--concurrency', '1'])
  expect(first.err).toContain(
    'the results of 3 lines are not written yet: the batch has cost $3.00 of $3.00. Raise --cost-limit to continue.',
  )
  expect(first.code).toBe(3)
  expect(world.asked.length).toBe(3)
  const second = await toFile(['--cost-limit', '4.5', '--concurrency', '1'])
  expect(second.code).toBe(3)
  expect(world.asked.length).toBe(5)
  expect(await toFile(['--cost-limit', '10'])).toMatchObject({ code: 0 })
  expect(parse(await read()).length).toBe(6)
  expect(world.asked.length).toBe(6)
})

test('--cost-limit starts no further line once the cost of a line is unknown', async () => {
  const { cwd, toFile } = await place(questions(4))
  const prices = `(_provider, _model, { inputTokens }) =>
    (inputTokens > 0 && globalThis.${hook}.asked.length > 1 ? null : 1)`
  await writeFile(join(cwd, 'agent.mjs'), agentModule.replace('store, prices,', `store, prices: ${prices},`))
  const { code, err } = await toFile(['--cost-limit', '3', '--concurrency', '1'])
  expect(err).toContain(
    'the results of 2 lines are not written yet: the cost of a line is unknown, so --cost-limit cannot be checked.',
  )
  expect(code).toBe(3)
  expect(world.asked.length).toBe(2)
})

test('--cost-limit needs prices', async () => {
  const { cwd, batch } = await place(questions(1))
  await writeFile(join(cwd, 'agent.mjs'), agentModule.replace('store, prices,', 'store,'))
  const { code, err } = await batch(['--cost-limit', '3'])
  expect(err).toContain(
    "--cost-limit: limits.costLimit is set, but the price of 'played-1' (played) is not known",
  )
  expect(code).toBe(2)
})

test('an error causes exit code 1, and its line has the reason', async () => {
  const { toFile, read } = await place(lines({ id: 'a', input: 'Fail.' }, { id: 'b', input: 'Two.' }))
  expect(await toFile()).toMatchObject({ code: 1 })
  expect(parse(await read())[0]).toMatchObject({
    state: 'ERROR',
    reason: 'provider_error',
    error: { code: 'no_luck' },
  })
})

test('a failed line stays failed until its session is deleted', async () => {
  const { run, toFile, read } = await place(lines({ id: 'a', input: 'One.' }, { id: 'b', input: 'Two.' }))
  world.onAsked = (prompt) => {
    if (prompt === 'One.') throw new ModelError({ kind: 'fatal', code: 'no_luck', message: 'No luck.' })
  }
  expect(await toFile()).toMatchObject({ code: 1 })
  world.onAsked = () => undefined
  expect(await toFile()).toMatchObject({ code: 1 })
  expect(parse(await read()).map(({ state }) => state)).toEqual(['ERROR', 'COMPLETED'])
  expect(await run(['sessions', 'delete', 'in.a', '--yes'])).toMatchObject({ code: 0 })
  expect(await toFile()).toMatchObject({ code: 0 })
  expect(parse(await read()).map(({ id, state }) => [id, state])).toEqual([
    ['a', 'COMPLETED'],
    ['b', 'COMPLETED'],
  ])
})

test('SIGTERM starts no further line, lets active lines end, and leaves the rest to the next call', async () => {
  const { toFile, read } = await place(questions(5))
  const sigterm = new SigtermHandler()
  world.onAsked = (prompt) => {
    if (prompt === 'Question 1') expect(sigterm.raise()).toBe(true)
  }
  const { code, err } = await toFile(['--concurrency', '1'], { sigterm })
  expect(err).toContain('the process is shutting down: running lines continue for at most 20 s.')
  expect(err).toContain('the results of 3 lines are not written yet: run the same command to continue.')
  expect(code).toBe(143)
  expect(parse(await read()).map(({ id }) => id)).toEqual(['q0', 'q1'])
  expect(await toFile([], { sigterm: new SigtermHandler() })).toMatchObject({ code: 0 })
  expect(world.asked.length).toBe(5)
})

test('a reader that closes the output parks the batch', async () => {
  const { batch } = await place(questions(500))
  await batch(['--concurrency', '1'], { stdoutFails: 'EPIPE' })
  expect(world.asked.length).toBeLessThan(100)
})

test('a shorter input removes the extra results of an earlier call', async () => {
  const { cwd, toFile, read } = await place(questions(4))
  await toFile()
  await writeFile(join(cwd, 'in.jsonl'), questions(2))
  expect(await toFile()).toMatchObject({ code: 0 })
  expect(parse(await read()).map(({ id }) => id)).toEqual(['q0', 'q1'])
})

describe('the progress of a batch', () => {
  const progress = {
    total: 200,
    done: 120,
    running: 8,
    waiting: 2,
    failed: 1,
    cost: 0.1234,
    timeLeftMs: 150_000,
  }
  const line = '120/200 done, 8 running, 2 waiting, 1 failed, $0.1234, about 3 min left'

  function display(isTTY: boolean, { columns = 120, hasData = false, isPipe = false } = {}) {
    const clock = new SimulatedClock()
    let shown = ''
    const write = (text: string): void => void (shown += text)
    const stdout = { isTTY: isTTY && !isPipe }
    const io = { stdout, stderr: { isTTY, columns, write }, env: {} } as unknown as CliIO
    const bar = createProgressLine(io, clock, { hasData })
    const update = (now: BatchProgress) => bar.update(formatProgress(now), formatBar(now))
    return { clock, shows: () => shown, update, close: () => bar.close() }
  }

  test('is one bar on a terminal, redrawn at most ten times a second', () => {
    const { clock, shows, update, close } = display(true)
    update({ ...progress, done: 0 })
    for (let i = 0; i < 50; i += 1) update(progress)
    clock.increment(100)
    close()
    expect(
      shows()
        .split('\r')
        .map((text) => text.replace('\u001B[K', '')),
    ).toEqual([
      '',
      '[                    ] ' + line.replace('120', '0'),
      '[============        ] ' + line,
      '',
    ])
  })

  test('is one line long', () => {
    const { shows, update } = display(true, { columns: 40 })
    update(progress)
    expect(shows()).toBe('\r[============        ] 120/200 done, 8 \u001B[K')
  })

  test('is one line every five seconds in a log', () => {
    const { clock, shows, update, close } = display(false)
    for (let i = 0; i <= 30; i += 1) {
      update({ ...progress, done: i })
      clock.increment(500)
    }
    close()
    expect(shows().match(/\d+\/200/g)).toEqual(['9/200', '19/200', '29/200'])
    expect(shows()).not.toMatch(/[\r\u001B]/)
  })

  test('is one line every five seconds in a log while a computation holds back timers', () => {
    let elapsedMs = 0
    const blocked = { now: () => elapsedMs, setTimeout: () => 0, clearTimeout: () => undefined }
    const shown: string[] = []
    const stderr = { isTTY: false, write: (text: string): void => void shown.push(text) }
    const line = createProgressLine({ stdout: {}, stderr, env: {} } as unknown as CliIO, blocked)
    for (; elapsedMs <= 12_000; elapsedMs += 1_000) line.update(`${elapsedMs} ms`)
    line.close()
    expect(shown).toEqual(['statewright: 5000 ms\n', 'statewright: 10000 ms\n'])
  })

  test('is not drawn on a terminal that shows the results', () => {
    const { shows, update, close } = display(true, { hasData: true })
    update(progress)
    close()
    expect(shows()).toBe('')
  })

  test('never shares a line with results that come through a pipe', () => {
    const { clock, shows, update } = display(true, { hasData: true, isPipe: true })
    update(progress)
    clock.increment(5_000)
    expect(shows()).toBe(`statewright: ${line}\n`)
  })

  test('omits unknown numbers', () => {
    const { shows, update } = display(true)
    update({ ...progress, total: null, cost: null, timeLeftMs: null })
    expect(shows()).toBe('\r120 done, 8 running, 2 waiting, 1 failed, cost unknown\u001B[K')
  })
})

test('--retry-failed runs failed lines again, and no others', async () => {
  const { toFile, read } = await place(questions(3))
  let isDown = true
  world.onAsked = (prompt) => {
    if (isDown && prompt !== 'Question 0')
      throw new ModelError({ kind: 'fatal', code: 'no_luck', message: 'No luck.' })
  }
  const first = await toFile()
  expect(first.code).toBe(1)
  expect(first.err).toContain('to run failed lines again, add --retry-failed to the command.')
  isDown = false
  expect(await toFile()).toMatchObject({ code: 1 })
  expect(world.asked.length).toBe(3)
  expect(await toFile(['--retry-failed'])).toMatchObject({ code: 0 })
  expect(parse(await read()).map(({ state }) => state)).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED'])
  expect(world.asked.length).toBe(5)
})

test('lines that a shared budget cannot pay for wait, and the same command retries them', async () => {
  const budgeted = agentModule.replace(
    '=> createAgent({ model, store,',
    `=> createAgent({ model, store, sampling: { maxTokens: 100 }, budgets: globalThis.${hook}.open(store),`,
  )
  const { cwd, toFile, read } = await place(questions(4))
  await writeFile(join(cwd, 'agent.mjs'), budgeted)
  const open = (id: string, tokens: number) =>
    Object.assign(world, { open: (store: SessionStore) => [createBudget({ id, tokens, store })] })
  open('team', 400)
  const first = await toFile(['--concurrency', '1'])
  expect(first.err).toMatch(/2 waiting, 0 failed/)
  expect(first.err).toContain('a shared budget cannot pay for 2 lines.')
  expect(first.err).not.toContain('statewright resume')
  expect(first.code).toBe(3)
  open('department', 10_000)
  expect(await toFile()).toMatchObject({ code: 0 })
  expect(parse(await read()).map(({ state }) => state)).toEqual(Array(4).fill('COMPLETED'))
  expect(world.asked.length).toBe(4)
})
