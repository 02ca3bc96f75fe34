import { calls, type Kept, createPlace, toolsModule } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

/** A session 'waits' with two calls. One needs approval, one runs on the client. */
async function waiting(): Promise<Kept> {
  const place = await createPlace({
    'waits.json': calls(['m', 'send_mail', { to: 'ann' }]),
    'tools.mjs': toolsModule,
  })
  await place.run(['run', '--session', 'waits', '--rehearsal=waits.json', '-t', 'tools.mjs', 'Mail?'])
  return place
}

test('an answer waits in the inbox for the process that resumes, and a second one is refused', async () => {
  const { run, withStore } = await waiting()
  const output = await run(['send', 'waits', 'approve', 'm'])
  expect(output).toMatchObject({ code: 0, err: '' })
  expect(output.out).toBe(
    'Stored for waits, which is idle. Continue with: statewright resume waits --store=file:kept\n',
  )
  const [message] = await withStore((store) => store.inbox.read('waits'))
  expect(JSON.parse(message?.text ?? '')).toMatchObject({
    type: 'APPROVE',
    callId: 'm',
    fingerprint: expect.stringMatching(/^[0-9a-f]{16,}$/),
  })
  const again = await run(['send', 'waits', 'reject', 'm', 'No.'])
  expect(again.code).toBe(2)
  expect(again.err).toContain("Call 'm' was already answered.")
})

test('cancel takes effect immediately, and later messages are refused', async () => {
  const { run } = await waiting()
  expect(await run(['send', 'waits', 'cancel', 'Not any more.'])).toMatchObject({
    code: 0,
    out: 'Cancelled waits.\n',
    err: '',
  })
  expect((await run(['sessions', 'list'])).out).toMatch(/^waits +CANCELLED/m)
  const late = await run(['send', 'waits', 'steer', 'Faster.'])
  expect(late.code).toBe(2)
  expect(late.err).toContain("statewright run --session waits 'Your prompt'")
})

test.each([
  [[], 'ID is missing.'],
  [['waits'], 'one of cancel, pause, resume, steer'],
  [['waits', 'stop'], "(got 'stop')"],
  [['waits', 'steer'], 'statewright send ID steer TEXT'],
  [['waits', 'pause', 'now'], 'statewright send ID pause'],
  [['waits', 'tool-output', 'm', 'plain'], "A call's output must be JSON"],
])('%j is not a message', async (args, words) => {
  const { run } = await waiting()
  const { code, err } = await run(['send', ...args])
  expect(code).toBe(2)
  expect(err).toContain(words)
})

test('an unexpected answer is refused, in terms of the command line', async () => {
  const { run } = await waiting()
  for (const [args, words] of [
    [['nobody', 'pause'], "There is no session 'nobody' here."],
    [['waits', 'reply', 'And?'], 'is not waiting for a message'],
    [['waits', 'approve', 'm@0000000000000000'], 'is for outdated arguments'],
    [['waits', 'tool-output', 'm', '{"sent":true}'], 'is not waiting for this answer'],
  ] as const) {
    const { code, err } = await run(['send', ...args])
    expect(code).not.toBe(0)
    expect(err).toContain(words)
  }
})

test('--help lists the messages', async () => {
  const { run } = await createPlace()
  const { code, out } = await run(['send', '--help'])
  expect(code).toBe(0)
  for (const words of [
    'cancel [WHY]',
    'steer TEXT',
    'approve CALL',
    'reject CALL [REASON]',
    'tool-output CALL JSON',
  ])
    expect(out).toContain(words)
})
