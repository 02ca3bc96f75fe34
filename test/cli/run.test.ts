import * as core from '../../src/index.js'
import { largestExpense } from '../../src/rehearsal/index.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { RunResult } from '../../machines/agent/run-result.js'
import { provideEntries } from '../support/entries.js'
import { cli, folder, removeFolders } from './support.js'

provideEntries({ statewright: core })
afterEach(removeFolders)

/** The demo without its pauses. */
const demo = {
  ...largestExpense,
  turns: largestExpense.turns.map((turn) => {
    const {
      delayMs: _delay,
      chunkDelayMs: _chunkDelay,
      retryAfter,
      ...rest
    } = turn as Exclude<typeof turn, Function>
    return retryAfter === undefined ? rest : { ...rest, retryAfterMs: 0 }
  }),
}
const sendMail = `
  import { defineTool } from 'statewright'
  export default [defineTool({
    name: 'send_mail', description: 'Sends mail.', input: { type: 'object' }, needsApproval: true,
    execute: (input) => 'sent to ' + input.to,
  })]`
const mail = {
  turns: [{ toolCalls: [{ id: 'call_1', name: 'send_mail', arguments: { to: 'ann' } }] }, { text: 'Done.' }],
}
const mailFiles = { 'play.json': mail, 'tools.mjs': sendMail }
const mailArgs = ['run', '--rehearsal', 'play.json', '--tools', 'tools.mjs']

const resultIn = (out: string) => JSON.parse(out) as RunResult

describe('statewright run', () => {
  test('the rehearsal is rate limited, truncated once, and completes', async () => {
    const cwd = await folder({ 'demo.json': demo })
    const { code, out, err } = await cli(['run', '--rehearsal', 'demo.json', 'What cost most?'], { cwd })
    expect(err).toBe('')
    expect(code).toBe(0)
    expect(out).toContain('no model is called')
    expect(out).toContain('> What cost most?')
    expect(out).toMatch(/↻ .*429.*waiting 0 ms before attempt 2/)
    expect(out).toContain('  → read_file(path: "offsite.txt")')
    expect(out).toMatch(/✓ calculate \d+ ms {2}3851\.7/)
    expect(out).toMatch(/⚑ max_tokens \(recover\)/)
    expect(out).toMatch(/COMPLETED · end_turn\n {2}steps {3}5 of 50\n/)
    expect(out).not.toContain('\u001b')
  })

  test.each([[[]], [['--no-stream']]])('--api responses plays the same over that API: %j', async (more) => {
    const cwd = await folder({ 'demo.json': demo })
    const { code, out, err } = await cli(
      ['run', '--rehearsal', 'demo.json', '--api', 'responses', '--events', ...more, 'What cost most?'],
      { cwd },
    )
    expect([code, err]).toEqual([0, expect.stringContaining('no model is called')])
    const events = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AgentEvent)
    expect(events.filter(({ type }) => type === 'retry')).toHaveLength(1)
    expect(events.filter(({ type }) => type === 'tool_result')).toHaveLength(7)
    const texts = events.flatMap((event) => (event.type === 'assistant_message' ? [event.message] : []))
    expect(texts.every(({ provider_items: items }) => items?.from === 'responses/rehearsal')).toBe(true)
    expect(events.at(-1)).toMatchObject({ type: 'run_ended', state: 'COMPLETED', reason: 'end_turn' })
  })

  test('--preset applies the rules of another loop below those of the file, and refuses an unknown name', async () => {
    const again = { text: '', toolCalls: [{ name: 'list_files', arguments: {} }] }
    const cwd = await folder({
      'play.json': { turns: [again, again, again, again] },
      'c.json': { preset: 'openhuman', guardrails: { maxRepeatedToolSteps: 2 } },
    })
    const args = ['run', '--rehearsal', 'play.json', '--json', '-c', 'c.json', 'Go']
    const { code, out } = await cli([...args, '--preset', 'aar'], { cwd })
    expect(code).toBe(3)
    expect(resultIn(out)).toMatchObject({ state: 'ERROR', reason: 'repeated_call', steps: 3 })
    const wrong = await cli([...args, '--preset', 'openhumen'], { cwd })
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("Did you mean 'openhuman'?")])
    expect((await cli(['run', '--help'], { cwd })).out).toMatch(/--preset NAME +.*aar,\s+openhuman/s)
  })

  test('--api ignores no option of the other API: such keys of the file are refused by name', async () => {
    const model = { model: 'm', baseURL: 'http://127.0.0.1:9/v1', maxTokensField: 'max_tokens' }
    const cwd = await folder({ 'c.json': { model } })
    const { code, err } = await cli(['run', '-c', 'c.json', '--api', 'responses', 'Go'], { cwd })
    expect(code).toBe(2)
    expect(err).toContain("model.maxTokensField is only for the API 'chat'")
  })

  test('--json prints exactly one line, the result', async () => {
    const cwd = await folder({ 'demo.json': demo })
    const { code, out, err } = await cli(['run', '--rehearsal', 'demo.json', '--json', '--session', 'mine'], {
      cwd,
    })
    expect(code).toBe(0)
    expect(out.trimEnd().split('\n')).toHaveLength(1)
    expect(resultIn(out)).toMatchObject({
      state: 'COMPLETED',
      reason: 'end_turn',
      steps: 5,
      sessionId: 'mine',
    })
    expect(resultIn(out).output).toContain('| Software | 984.00 |')
    expect(err).toContain('no model is called')
  })

  test('names the error of a script that has ended, without removing words of it as a secret', async () => {
    const cwd = await folder({
      'play.json': { turns: [{ toolCalls: [{ name: 'list_files', arguments: {} }] }] },
    })
    const { out } = await cli(['run', '--rehearsal', 'play.json', '--json', 'Go'], { cwd })
    expect(resultIn(out).error).toMatchObject({ code: 'rehearsal_exhausted' })
  })

  test('--no-stream gives the same answer', async () => {
    const cwd = await folder({ 'demo.json': demo })
    const args = ['run', '--rehearsal', 'demo.json', '--json']
    const [streamed, whole] = [await cli(args, { cwd }), await cli([...args, '--no-stream'], { cwd })]
    expect(resultIn(whole.out).output).toBe(resultIn(streamed.out).output)
  })

  test('--events prints every event of the run, one per line, and nothing else', async () => {
    const cwd = await folder({ 'demo.json': demo })
    const { code, out } = await cli(['run', '--rehearsal', 'demo.json', '--events'], { cwd })
    const events = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AgentEvent)
    expect(code).toBe(0)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
    expect(events.at(0)?.type).toBe('run_started')
    expect(events.at(-1)).toMatchObject({ type: 'run_ended', state: 'COMPLETED' })
  })

  test('a step limit stops the run with exit code 3', async () => {
    const cwd = await folder({ 'demo.json': demo })
    const { code, out } = await cli(['run', '--rehearsal', 'demo.json', '--max-steps', '1', '--json'], {
      cwd,
    })
    expect(code).toBe(3)
    expect(resultIn(out)).toMatchObject({ state: 'MAX_STEPS', steps: 1 })
  })

  test('an option overrides the configuration file, key by key', async () => {
    const config = { limits: { maxSteps: 1, tokenBudget: 100_000 } }
    const cwd = await folder({ 'demo.json': demo, 'c.json': config })
    const { out } = await cli(['run', '--rehearsal', 'demo.json', '-c', 'c.json', '--max-steps', '9'], {
      cwd,
    })
    expect(out).toContain('5 of 9')
    expect(out).toContain('of 100,000')
  })

  test('an unreachable provider is an error, not a crash', async () => {
    const cwd = await folder({ 'c.json': { retry: { maxAttempts: 1 } } })
    const args = [
      'run',
      '-c',
      'c.json',
      '--base-url',
      'http://127.0.0.1:9/v1',
      '--model',
      'm',
      '--json',
      'Hi',
    ]
    const { code, out } = await cli(args, { cwd })
    expect(code).toBe(1)
    expect(resultIn(out)).toMatchObject({ state: 'ERROR', reason: 'provider_error' })
  })

  test('the prompt may be piped in', async () => {
    const cwd = await folder({
      'play.json': { turns: [{ text: 'Hi.', expect: { lastUserIncludes: 'Grüße 👋' } }] },
    })
    const { code } = await cli(['run', '--rehearsal', 'play.json', '-'], { cwd, input: 'Grüße 👋\n' })
    expect(code).toBe(0)
  })

  test('--instructions is the system prompt', async () => {
    const cwd = await folder({
      'play.json': { turns: [{ text: 'Hi.', expect: { systemIncludes: 'Be brief.' } }] },
    })
    expect((await cli(['run', '--rehearsal', 'play.json', '-i', 'Be brief.'], { cwd })).code).toBe(0)
  })
})

describe('an interrupted run', () => {
  const hanging = { turns: [{ text: 'Let me think about that for a while.', hang: 1 }] }

  test('is cancelled, keeps its text, and exits with 130', async () => {
    const cwd = await folder({ 'play.json': hanging })
    const interrupt = new AbortController()
    const { code, out } = await cli(['run', '--rehearsal', 'play.json'], {
      cwd,
      signal: interrupt.signal,
      onOutput: (text) => {
        if (text.includes('Let me')) interrupt.abort()
      },
    })
    expect(code).toBe(130)
    expect(out).toContain('CANCELLED · cancelled')
  })

  test('ends when its output is no longer read', async () => {
    const cwd = await folder({ 'play.json': hanging })
    const { code } = await cli(['run', '--rehearsal', 'play.json'], {
      cwd,
      onOutput: (text, { stdout }) => {
        if (text.includes('Let me'))
          stdout.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
      },
    })
    expect(code).toBe(130)
  })

  test('is not started if the interruption came first', async () => {
    const { code, out } = await cli(['run', '--base-url', 'http://127.0.0.1:9/v1', '-m', 'm'], {
      signal: AbortSignal.abort(),
    })
    expect({ code, out }).toEqual({ code: 130, out: '' })
  })
})

describe('a call that needs approval', () => {
  test('without a terminal: exits with 4 and names the waiting call', async () => {
    const cwd = await folder(mailFiles)
    const { code, out, err } = await cli([...mailArgs, '--json'], { cwd })
    expect(code).toBe(4)
    expect(resultIn(out)).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'approval', resumable: true })
    expect(err).toMatch(/send_mail\(to: "ann"\) \[call_1@\w{16}\] needs approval/)
    expect(err).toContain('This session is not stored.')
  })

  test.each([
    ['y\n', 'sent to ann'],
    ['what?\nYES\n', 'sent to ann'],
    ['e\n{broken\n{"to":"bob"}\n', 'sent to bob'],
    ['e\n\ny\n', 'sent to ann'],
    ['n\nNot today.\n', 'Not today.'],
  ])('at a terminal: the answer %j leads to %j', async (input, expected) => {
    const cwd = await folder(mailFiles)
    const { code, out } = await cli(mailArgs, { cwd, tty: true, input, env: { NO_COLOR: '1' } })
    expect(out).toContain('Run send_mail(to: "ann")? (y)es, (n)o, (e)dit: ')
    expect(out).toContain(expected)
    expect(out).toContain('COMPLETED · end_turn')
    expect(code).toBe(0)
  })

  test('at a terminal: the end of input leaves the call waiting, with exit code 4', async () => {
    const cwd = await folder(mailFiles)
    const { code, out } = await cli(mailArgs, {
      cwd,
      tty: true,
      onOutput: (text, { stdin }) => {
        if (text.includes('(y)es')) stdin.end()
      },
    })
    expect(code).toBe(4)
    expect(out).toContain('WAITING_FOR_INPUT')
  })

  test('at a terminal: Ctrl-C at the question cancels the run', async () => {
    const cwd = await folder(mailFiles)
    const interrupt = new AbortController()
    const { code, out } = await cli(mailArgs, {
      cwd,
      tty: true,
      signal: interrupt.signal,
      onOutput: (text) => {
        if (text.includes('(y)es')) interrupt.abort()
      },
    })
    expect(code).toBe(130)
    expect(out).toContain('CANCELLED')
    // The terminal has echoed ^C after the question.
    expect(out).toMatch(/\(e\)dit: \n/)
  })
})
