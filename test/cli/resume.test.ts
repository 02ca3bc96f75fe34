import { SigtermHandler } from '../../src/cli/command.js'
import { filter, firstValueFrom } from 'rxjs'
import type { RunResult } from '../../machines/agent/run-result.js'
import type { Scenario } from '../../src/rehearsal/index.js'
import { systemClock } from '../../src/core/base/clock.js'
import { forkSession } from '../../src/core/sessions/fork-session.js'
import { readSessionAt } from '../../src/core/sessions/replay-session.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { asAsked, calls, copyOf, type Kept, createPlace, says, toolsModule, withProgram } from './kept.js'
import { tool } from '../support/tools.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

const resultIn = (out: string) => JSON.parse(out) as RunResult
const lastTold = ({ messages }: RunResult) =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => content)

const end = { 'end.json': says('All done.'), 'tools.mjs': toolsModule }
const go = ['--rehearsal=end.json', '--tools', 'tools.mjs']

/** A session 's' whose run waits for the given calls. */
const waitingFor = (...pending: Parameters<typeof calls>): Promise<Kept> =>
  copyOf(JSON.stringify(pending), () => playUntilAsked(pending))

async function playUntilAsked(pending: Parameters<typeof calls>): Promise<Kept> {
  const place = await createPlace({ ...end, 'play.json': calls(...pending) })
  const { code } = await place.run([
    'run',
    '--session',
    's',
    '--rehearsal=play.json',
    '-t',
    'tools.mjs',
    'Go',
  ])
  expect(code).toBe(4)
  return place
}

const mail = (id: string, to: string) => [id, 'send_mail', { to }] as const

/** The calls of these tests, as answers reference them. */
const a = asAsked(...mail('a', 'ann'))
const b = asAsked(...mail('b', 'bob'))
const c = asAsked(...mail('c', 'cy'))
const q = asAsked('q', 'ask_client', {})

describe('resume answers pending calls', () => {
  test('several at once, approved, edited and rejected', async () => {
    const { run } = await waitingFor(mail('a', 'ann'), mail('b', 'bob'), mail('c', 'cy'))
    const answers = ['--approve', a, `--approve=${b}={"to":"bea"}`, '--reject', `${c}=Not today.`]
    const { code, out } = await run(['resume', 's', ...go, ...answers, '--json'])
    expect(code).toBe(0)
    expect(resultIn(out)).toMatchObject({ state: 'COMPLETED', output: 'All done.', sessionId: 's' })
    expect(lastTold(resultIn(out))).toEqual([
      'sent to ann',
      expect.stringContaining('sent to bea'),
      'Rejected by the user: Not today.',
    ])
  })

  test('one of two, and prints how to answer the other', async () => {
    const { run } = await waitingFor(mail('a', 'ann'), mail('b', 'bob'))
    const first = await run(['resume', 's', ...go, '--approve', a])
    expect(first.code).toBe(4)
    expect(first.err).toContain(`the run is waiting: send_mail(to: "bob") [${b}] needs approval.`)
    expect(first.err).toMatch(/\nContinue with: statewright resume s --approve b@\w{16} .*--tools=tools\.mjs/)
    expect((await run(['resume', 's', ...go, '--reject', b])).code).toBe(0)
  })

  test('with the result of a client call', async () => {
    const { run } = await waitingFor(['q', 'ask_client', {}])
    const { code, out } = await run(['resume', 's', ...go, '--output', `${q}=forty=two`, '--json'])
    expect(code).toBe(0)
    expect(lastTold(resultIn(out))).toEqual(['forty=two'])
  })

  test('whose id looks like an answer to another', async () => {
    const odd = mail(`${a}=b`, 'bob')
    const { run } = await waitingFor(mail('a', 'ann'), odd)
    const reject = ['--reject', `${asAsked(...odd)}=No.`]
    const { out } = await run(['resume', 's', ...go, ...reject, '--approve', a, '--json'])
    expect(lastTold(resultIn(out))).toEqual(['sent to ann', 'Rejected by the user: No.'])
  })

  test.each([
    [
      [`--reject=${a}`, '--approve=x'],
      /no call 'x' is pending\. Pending: send_mail\(to: "ann"\) \[a@\w{16}\] needs approval/,
    ],
    [[`--output=${q}=x`, `--approve=${a}={"to":`], /the arguments for call 'a' are not valid JSON/],
    [[`--approve=${a}`, `--reject=${a}`], /call 'a' is answered twice\./],
    [
      [`--output=${q}=x`, `--output=${a}=x`],
      /--output: this does not answer call 'a'\. Use --approve a@\w{16} or --reject a@\w{16}\./,
    ],
    [
      [`--reject=${a}`, `--approve=${q}`],
      /--approve: this does not answer call 'q'\. Use --output q@\w{16}=TEXT\./,
    ],
    [[`--reject=${a}`, `--output=${q}`], /--output: the result is missing/],
    [[`--reject=${a}`, '--approve'], /--approve needs a value/],
    [
      ['--approve=a'],
      /'a' names the call without its fingerprint\. The call is send_mail\(to: "ann"\)\. To answer it: --approve a@\w{16}\n/,
    ],
    [
      [`--approve=${asAsked(...mail('a', 'eve'))}`],
      /call 'a' has different arguments now: send_mail\(to: "ann"\)/,
    ],
    [[`--reject=${a.slice(0, 8)}`], /call 'a' has different arguments now/],
    [['--output=q=x'], /The call is ask_client\(\)\. To answer it: --output q@\w{16}=TEXT/],
  ])('%j is refused before anything is sent', async (answers, message) => {
    const { run } = await waitingFor(mail('a', 'ann'), ['q', 'ask_client', {}])
    const { code, out, err } = await run(['resume', 's', ...go, ...answers])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
    expect((await run(['sessions', 'show', 's'])).out).toMatch(
      /\[a@\w+\] needs approval; ask_client\(\) \[q@/,
    )
  })

  test('by asking the person at a terminal', async () => {
    const { run } = await waitingFor(mail('a', 'ann'))
    const { code, out } = await run(['resume', 's', ...go], {
      tty: true,
      input: 'y\n',
      env: { NO_COLOR: '1' },
    })
    expect(out).toContain('Run send_mail(to: "ann")? (y)es, (n)o, (e)dit: ')
    expect(out).toContain('sent to ann')
    expect(code).toBe(0)
  })

  test('at a terminal, without a name that imitates the question, and nothing hidden', async () => {
    const { run } = await waitingFor([
      'a',
      'send_mail',
      { 'to: "ann")? (y)es, (n)o: y': 1, to: 'b\u202eo\u200bb' },
    ])
    const { out } = await run(['resume', 's', ...go], {
      tty: true,
      input: 'e\n\nn\n\n',
      env: { NO_COLOR: '1' },
    })
    expect(out).toContain(
      String.raw`Run send_mail("to: \"ann\")? (y)es, (n)o: y": 1, to: "b\u202eo\u200bb")? (y)es, (n)o, (e)dit: `,
    )
    expect(out).toContain(String.raw`Now: {"to: \"ann\")? (y)es, (n)o: y":1,"to":"b\u202eo\u200bb"}`)
  })

  test('and refuses an invalid edit, and the call stays open', async () => {
    const { run } = await waitingFor(mail('a', 'ann'))
    const { code, err } = await run(['resume', 's', ...go, `--approve=${a}=7`])
    expect(code).toBe(2)
    expect(err).toMatch(
      /the edited input was refused, and the call is still waiting\. .*must be a JSON object/,
    )
    const { out } = await run(['resume', 's', ...go], {
      tty: true,
      input: 'e\n7\ne\n{"to":"bea"}\n',
      env: { NO_COLOR: '1' },
    })
    expect(out).toMatch(/must be a JSON object[^]*Run send_mail\(to: "ann"\)\?[^]*sent to bea/)
  })

  test('or prints them without a terminal, which needs no model', async () => {
    const { run } = await waitingFor(mail('a', 'ann'))
    const { code, out, err } = await run(['resume', 's'])
    expect(code).toBe(4)
    expect(out).toMatch(/^Let me see\.\n\nWAITING_FOR_INPUT · approval\n/)
    expect(err).toBe(
      `statewright: the run is waiting: send_mail(to: "ann") [${a}] needs approval.\n` +
        `Continue with: statewright resume s --approve ${a} --store=file:kept\n`,
    )
  })
})

describe('resume restores a run', () => {
  test('that has ended, and shows its result with the exit code of its state', async () => {
    const { run } = await createPlace({ 'play.json': calls(['l', 'look', {}]), 'tools.mjs': toolsModule })
    const args = ['--rehearsal=play.json', '-t', 'tools.mjs', '--max-steps', '1', 'Go']
    expect((await run(['run', '--session', 's', ...args])).code).toBe(3)
    const { code, out, err } = await run(['resume', 's'])
    expect({ code, err }).toEqual({ code: 3, err: '' })
    expect(out).toMatch(/^Let me see\.\n✗ max_steps .*\n\nMAX_STEPS · max_steps\n {2}steps {3}1 of 1\n/)
    expect(out).not.toContain('time')
    expect(resultIn((await run(['resume', 's', '--json'])).out)).toMatchObject({ state: 'MAX_STEPS' })
  })

  test('that has ended, and refuses a message', async () => {
    const { run } = await createPlace({ 'play.json': says('Hi.') })
    await run(['run', '--session', 's', '--rehearsal=play.json', 'Go'])
    const { code, err } = await run(['resume', 's', 'And', 'then?'])
    expect(code).toBe(2)
    expect(err).toContain('has ended (COMPLETED), so it accepts no messages')
    expect(err).toContain("statewright run --session s 'And then?'")
  })

  /** A session in the middle of another session's work. */
  async function interrupted(): Promise<Kept & { id: string }> {
    const place = await createPlace({ ...end, 'play.json': calls(['l', 'look', {}]) })
    await place.run(['run', '--session', 's', '--rehearsal=play.json', '-t', 'tools.mjs', 'Go'])
    const id = await place.withStore((store) => forkAt(store, 3))
    return { ...place, id }
  }

  test('that was interrupted, and continues it', async () => {
    const { run, id } = await interrupted()
    const { code, out } = await run(['resume', id, ...go])
    expect(code).toBe(0)
    expect(out).toContain('✓ look')
    expect(out).toMatch(/All done\.\n\nCOMPLETED[^]*Session /)
  })

  test('that was interrupted, and sends it a message at the next safe point', async () => {
    const { run, id } = await interrupted()
    const { out } = await run(['resume', id, ...go, '--json', 'Be', 'brief.'])
    expect(resultIn(out).messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Go'],
      ['assistant', 'Let me see.'],
      ['tool', 'seen'],
      ['user', 'Be brief.'],
      ['assistant', 'All done.'],
    ])
  })

  test('that was interrupted only with a model', async () => {
    const { run, id } = await interrupted()
    const { code, err } = await run(['resume', id])
    expect(code).toBe(2)
    expect(err).toContain('No model is configured.')
    const answered = await run(['resume', id, ...go, '--approve', 'l'])
    expect(answered.err).toContain('No call is waiting for an answer (the run is WAITING_FOR_TOOL)')
  })

  test('that is paused, and continues or steers it', async () => {
    const place = await createPlace(end)
    const turns = [{ toolCalls: [{ id: 'n', name: 'nothing' }] }]
    await withProgram(place, [...turns, ...turns], {}, async (agent) => {
      for (const session of ['a', 'b']) {
        const run = agent.run('Go', { session })
        run.pause()
        expect((await run.result).state).toBe('PAUSED')
      }
    })
    const plain = await place.run(['resume', 'a', ...go, '--json'])
    expect(resultIn(plain.out)).toMatchObject({ state: 'COMPLETED', output: 'All done.' })
    const steered = await place.run(['resume', 'b', ...go, '--json', '-'], { input: 'In one word.' })
    expect(resultIn(steered.out).messages[3]).toMatchObject({ role: 'user', content: 'In one word.' })
  })
})

describe('a session that waits for messages', () => {
  async function interactive(turns: Scenario['turns'] = [{ text: 'One.' }]): Promise<Kept> {
    const place = await createPlace({
      ...end,
      'chat.json': { turns: [{ text: 'Two.' }, { text: 'Three.' }] },
    })
    const sendMail = tool('send_mail', () => 'sent', { needsApproval: true })
    await withProgram(place, turns, { interactive: true, tools: [sendMail] }, async (agent) => {
      const run = agent.run('Count.', { session: 's' })
      await firstValueFrom(run.state$.pipe(filter((state) => state === 'WAITING_FOR_INPUT')))
      await new Promise(setImmediate)
    })
    return place
  }

  test('also accepts answers to its calls one by one', async () => {
    const toolCalls = ['a', 'b'].map((id) => ({ id, name: 'send_mail', arguments: {} }))
    const { run } = await interactive([{ toolCalls }])
    const [one, other] = ['a', 'b'].map((id) => asAsked(id, 'send_mail', {}))
    const first = await run(['resume', 's', ...go, '--approve', `${one}`])
    expect(first.code).toBe(4)
    expect(first.err).toContain(`the run is waiting: send_mail() [${other}] needs approval.`)
    const second = await run(['resume', 's', ...go, '--reject', `${other}=No.`])
    expect(second.out).toMatch(/Rejected by the user: No\.[^]*All done\./)
    expect(second.err).toContain('the run is waiting: for a message.')
  })

  test('accepts a message from the command line, and waits for the next', async () => {
    const { run } = await interactive()
    const { code, out, err } = await run(['resume', 's', '--rehearsal=chat.json', 'Next.'])
    expect(code).toBe(4)
    expect(out).toMatch(/> Next\.\nTwo\.\n/)
    expect(err).toMatch(
      /the run is waiting: for a message\.\nContinue with: statewright resume s 'Your message' /,
    )
    const shown = (await run(['sessions', 'show', 's'])).out
    expect(shown).toContain('You\nCount.\n\nAssistant\nOne.\n\nYou\nNext.\n\nAssistant\nTwo.\n')
  })

  test('stays unchanged at a terminal when the process is terminated', async () => {
    const { run, withStore } = await interactive()
    const sigterm = new SigtermHandler()
    const { code, err } = await run(['resume', 's', '--rehearsal=chat.json'], {
      tty: true,
      sigterm,
      onOutput: (text) => void (text.includes('Your message') && sigterm.raise()),
    })
    expect(code).toBe(4)
    expect(err).toMatch(/\nContinue with: statewright resume s 'Your message' /)
    await withStore((store) =>
      expect(store.get('s')).toMatchObject({ holder: null, summary: { state: 'WAITING_FOR_INPUT' } }),
    )
  })

  test('is a conversation at a terminal, until an empty line', async () => {
    const { run } = await interactive()
    const { code, out } = await run(['resume', 's', '--rehearsal=chat.json'], {
      tty: true,
      input: 'Next.\nMore.\n\n',
      env: { NO_COLOR: '1' },
    })
    expect(code).toBe(4)
    expect(out).toMatch(/Your message[^]*Two\.[^]*Your message[^]*Three\.[^]*Your message/)
  })
})

describe('resume refuses', () => {
  test.each([
    [['resume'], "ID is missing. 'statewright sessions list' shows the ids."],
    [['resume', 'nobody'], "There is no session 'nobody' here. The store is empty."],
    [['resume', '../x'], '"../x" is not a valid session id.'],
    [['resume', 's', '--json', '--events'], 'cannot be combined'],
  ])('%j', async (args, message) => {
    const { code, out, err } = await (await createPlace()).run(args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(message)
  })

  test('an empty message', async () => {
    const { run } = await waitingFor(mail('a', 'ann'))
    expect(await run(['resume', 's', ' '])).toMatchObject({
      code: 2,
      err: expect.stringContaining('The message is empty'),
    })
  })

  test('a session of another process, and names the process and a command that shows the session', async () => {
    const { run, withStore } = await waitingFor(mail('a', 'ann'))
    await withStore((store) => store.acquire('s', { holder: 'run 4711', ttlMs: 60_000 }))
    for (const args of [
      ['resume', 's', '--approve', a],
      ['run', '--session', 's', '--rehearsal=end.json', 'Hi'],
    ]) {
      const { code, err } = await run(args)
      expect(code).toBe(2)
      expect(err).toMatch(/in use by run 4711.*statewright sessions show s\n$/)
    }
  })

  test('a session without a run', async () => {
    const { run, withStore } = await waitingFor(mail('a', 'ann'))
    const id = await withStore((store) => forkAt(store, 1))
    const { code, err } = await run(['resume', id])
    expect(code).toBe(2)
    expect(err).toContain(`has no run yet. Start one with statewright run --session ${id} 'Your prompt'.`)
  })

  test('a session whose run has not ended, and so does run', async () => {
    const { run } = await waitingFor(mail('a', 'ann'))
    const { code, err } = await run(['run', '--session', 's', '--rehearsal=end.json', 'Hi'])
    expect(code).toBe(2)
    expect(err).toMatch(
      /has a run that is WAITING_FOR_INPUT\..*statewright resume s, or cancel it with statewright send s cancel\.\n$/,
    )
  })
})

test('a session with a waiting run, with a readable message', async () => {
  const { run } = await createPlace({
    'mail.json': calls(['m', 'send_mail', { to: 'ann' }]),
    'tools.mjs': toolsModule,
  })
  const args = ['run', '--session', 's', '--rehearsal=mail.json', '-t', 'tools.mjs', 'Write.']
  expect((await run(args)).code).toBe(4)
  const again = await run(args)
  expect(again.code).toBe(2)
  expect(again.err).toMatch(
    /^statewright: Session 's' has a run that is WAITING_FOR_INPUT.*statewright resume s/,
  )
  expect(again.out).not.toContain('unfinished_run')
  expect((await run([...args, '--events'])).out).toMatch(/"type":"warning","code":"unfinished_run"/)
})

async function forkAt(store: SessionStore, seq: number): Promise<string> {
  const folded = await readSessionAt(store, 's', seq)
  return forkSession({ store, clock: systemClock }, { sessionId: 's', folded })
}
