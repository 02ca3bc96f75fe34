import { calls, createPlace, says, toolsModule } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

/** Sessions 'a:1' and 'a:2' wait for an approval. Session 'b:1' has ended. */
async function tenants() {
  const place = await createPlace({
    'waits.json': calls(['m', 'send_mail', { to: 'ann' }]),
    'hi.json': says('Hello.'),
    'tools.mjs': toolsModule,
  })
  for (const id of ['a:1', 'a:2'])
    await place.run(['run', '--session', id, '--rehearsal=waits.json', '-t', 'tools.mjs', 'Mail?'])
  await place.run(['run', '--session', 'b:1', '--rehearsal=hi.json', 'Hello.'])
  return place
}

test('all matching sessions are cancelled, and the counts are printed', async () => {
  const { run, withStore } = await tenants()
  const output = await run(['send', '--all', '--prefix', 'a', 'cancel', 'Closed.'])
  expect(output).toEqual({ code: 0, out: '2 sessions:\n  2 done\n', err: '' })
  expect(
    await withStore((store) =>
      store
        .list({ state: 'CANCELLED' })
        .map(({ id }) => id)
        .sort(),
    ),
  ).toEqual(['a:1', 'a:2'])
  expect((await run(['send', '--all', '--prefix', 'a', 'cancel'])).out).toBe('No session matches.\n')
})

test('a terminal shows the progress on stderr, apart from the counts', async () => {
  const { run } = await tenants()
  const { out, err } = await run(['send', '--all', '--prefix', 'a', 'cancel'], { tty: true })
  expect(out).toBe('2 sessions:\n  2 done\n')
  expect(err).toMatch(/^\r1 session so far\u001B\[K.*\r\u001B\[K$/s)
})

test('refusals are printed with their sessions, and cause exit code 1', async () => {
  const { run } = await tenants()
  const output = await run(['send', '--all', '--state', 'WAITING_FOR_INPUT', 'resume'])
  expect(output.code).toBe(1)
  expect(output.out).toMatch(/^2 sessions:\n {2}2 refused\n {2}a:[12]: not_waiting: /)
  expect(output.out).toMatch(/Read its state with statewright sessions show a:[12], and resume/)
})

test('a queued message reaches ended sessions, once per key', async () => {
  const { run, withStore } = await tenants()
  const line = ['send', '--all', '--prefix', 'b', '--key', 'notice', '--json', 'message', 'We have moved.']
  await run(line)
  expect(JSON.parse((await run(line)).out)).toMatchObject({ sessions: 1, waiting: 1 })
  expect(await withStore((store) => store.inbox.read('b:1'))).toHaveLength(1)
})

test.each([
  [['--all', 'cancel'], '--all needs --tag'],
  [['--all', '--tag', 'x', 'cancel'], '--tag must be NAME=VALUE'],
  [['--all', '--state', 'GONE', 'cancel'], '--state must be one of'],
  [['--all', '--prefix', 'a'], 'MESSAGE is missing.'],
  [['--all', '--prefix', 'a', 'steer'], 'steer TEXT'],
  [['--all', '--prefix', 'a', 'pause', 'now'], 'send --all … pause'],
  [['--all', '--prefix', 'a', 'resume', 'soon'], 'soon'],
  [['--all', '--prefix', 'a', 'resume', '2026-05-04', 'x'], 'resume [DATE]'],
  [['--all', '--prefix', 'a', 'fly'], 'one of cancel, pause, resume, steer, message'],
  [['--all', '--prefix', 'a', 'approve', 'm'], "(got 'approve')"],
  [['--prefix', 'a', 'x', 'cancel'], '--prefix needs --all.'],
])('%j is refused', async (args, words) => {
  const { run } = await createPlace({})
  const { code, err } = await run(['send', ...args])
  expect(code).toBe(2)
  expect(err).toContain(words)
})
