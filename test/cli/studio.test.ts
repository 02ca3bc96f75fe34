import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { existsSync } from 'node:fs'
import { packageRoot } from '../../src/studio/studio-page.js'
import type { EndView, SessionsView } from '../../src/studio/protocol.js'
import { ask } from '../studio/visitor.js'
import { calls, createPlace, toolsModule } from './kept.js'
import { cli, type CliCall, folder, removeFolders } from './support.js'

afterEach(removeFolders)

interface Visited {
  get: <View = SessionsView>(path: string) => Promise<View>
  post: (path: string, answer: unknown) => Promise<number>
}

/** Runs a command that stays open, acts on its page, and interrupts it. */
async function opened(
  args: readonly string[],
  call: CliCall,
  use: (get: Visited['get'], post: Visited['post']) => Promise<void>,
) {
  const interrupt = new AbortController()
  let address = (_url: string): void => undefined
  const url = new Promise<string>((resolve) => {
    address = resolve
  })
  const ended = cli(args, {
    ...call,
    signal: interrupt.signal,
    onError: (text) => {
      const [found] = /http:\/\/127\.0\.0\.1\S+/.exec(text) ?? []
      if (found) address(found)
    },
  })
  const shown = await Promise.race([url, ended.then(({ err }) => Promise.reject(new Error(err)))])
  const { headers } = await ask(shown)
  const cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  const { origin } = new URL(shown)
  const at = (path: string): string => new URL(`.${headers.location}.${path}`, shown).href
  await use(
    async (path) => JSON.parse((await ask(at(path), { headers: { cookie } })).body) as never,
    async (path, answer) => {
      const headers = { cookie, origin, 'content-type': 'application/json' }
      return (await ask(at(path), { method: 'POST', headers: headers, body: JSON.stringify(answer) })).status
    },
  )
  interrupt.abort(new Error('Ctrl-C'))
  return ended
}

const sessions = '/api/sessions'

test('statewright studio shows the stored sessions until it is interrupted', async () => {
  const { run, cwd } = await createPlace({
    'done.json': calls(['l', 'look', { at: 'x' }]),
    'tools.mjs': toolsModule,
  })
  await run(['run', '--session', 'done', '--rehearsal=done.json', '-t', 'tools.mjs', 'done?'])
  const { code, out, err } = await opened(['studio', '--store', 'file:kept'], { cwd }, async (get) => {
    const view = await get(sessions)
    expect(view.sessions.map(({ id, state }) => [id, state])).toEqual([['done', 'COMPLETED']])
    expect(view.readOnly).toContain('--agent MODULE')
  })
  expect([code, out]).toEqual([0, ''])
  expect(err).toMatch(/^Studio: http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}\nOpen it .* Ctrl-C ends it\.\n$/)
})

test('Enter at a terminal prints an address for another browser', async () => {
  const interrupt = new AbortController()
  const addresses: string[] = []
  const { code } = await cli(['studio', '--store', 'memory:'], {
    tty: true,
    input: '\n',
    signal: interrupt.signal,
    onError: (text) => {
      addresses.push(...(text.match(/http:\/\/127\.0\.0\.1\S+/g) ?? []))
      if (addresses.length === 1) void ask(addresses[0] ?? '').catch(() => undefined)
      if (addresses.length === 2) interrupt.abort(new Error('Ctrl-C'))
    },
  })
  expect([code, addresses.length]).toEqual([0, 2])
})

test('--agent accepts an agent, or a function that creates one for the store', async () => {
  const agentModule = `export default ({ store }) => ({ config: {}, store, resume: async () => ({}), fork: async () => 'x' })`
  const { run, cwd } = await createPlace({
    'agent.mjs': agentModule,
    'one.json': { turns: [{ text: 'Hello.' }] },
  })
  await run(['run', '--rehearsal=one.json', 'Hello?'])
  await opened(['studio', '--store', 'file:kept', '--agent', 'agent.mjs'], { cwd }, async (get) => {
    expect((await get(sessions)).readOnly).toBeNull()
  })
})

test.each([
  ['export const agent = {}', /has no default export/],
  ['export default 7', /has no agent as its default export/],
  [`export default () => { throw new Error('no key') }`, /failed: no key/],
])('--agent with %s is refused in one sentence', async (source, why) => {
  const cwd = await folder({ 'agent.mjs': source })
  const { code, err } = await cli(['studio', '--store', 'memory:', '--agent', 'agent.mjs'], { cwd })
  expect(code).toBe(2)
  expect(err).toMatch(why)
})

test.each([
  [['studio', 'work'], /Unexpected argument 'work'/],
  [['studio', '--port', '70000'], /from 0 to 65535/],
  [['studio', '--port', 'x'], /whole number/],
  [['studio', '--machine', 'nowhere.mjs'], /nowhere\.mjs/],
])('%p is refused', async (args, why) => {
  const { code, err } = await cli(args)
  expect([code, err]).toEqual([2, expect.stringMatching(why)])
})

test('run --studio shows the run, keeps the page open after its end, and exits with its code', async () => {
  const cwd = await folder({ 'one.json': { turns: [{ text: 'Hello.' }] } })
  const { code, out, err } = await opened(
    ['run', '--studio', '--rehearsal=one.json', 'Hello?'],
    { cwd },
    async (get) => {
      for (;;) {
        const { sessions: rows, readOnly } = await get(sessions)
        expect(readOnly).toBeNull()
        if (rows[0]?.state === 'COMPLETED') break
      }
    },
  )
  expect([code, out]).toEqual([0, expect.stringContaining('COMPLETED')])
  expect(err).toContain('The studio stays open until you press Ctrl-C.')
})

test('the address of run --studio leads to the run, and Enter prints it again', async () => {
  const cwd = await folder({ 'one.json': { turns: [{ text: 'Hello.' }] } })
  const interrupt = new AbortController()
  const addresses: string[] = []
  await cli(['run', '--studio', '--rehearsal=one.json', '--session', 'a:b', '--store', 'memory:', 'Hello?'], {
    cwd,
    tty: true,
    input: '\n',
    signal: interrupt.signal,
    onError: (text) => {
      addresses.push(...(text.match(/http:\/\/127\.0\.0\.1\S+/g) ?? []))
      if (addresses.length === 2) interrupt.abort(new Error('Ctrl-C'))
    },
  })
  expect(addresses.map((address) => new URL(address).hash)).toEqual(['#/session/a%3Ab', '#/session/a%3Ab'])
})

describe('run --studio of a run that waits for a person', () => {
  const turns = (...ids: string[]) => [
    ...ids.map((id) => ({ toolCalls: [{ id, name: 'send_mail', arguments: { to: id } }] })),
    { text: 'Sent.' },
  ]
  const args = [
    'run',
    '--studio',
    '--rehearsal=mails.json',
    '-t',
    'tools.mjs',
    '--session',
    'mail',
    'Send them.',
  ]
  const files = (...ids: string[]) => ({ 'mails.json': { turns: turns(...ids) }, 'tools.mjs': toolsModule })
  const endPath = '/api/sessions/mail/end'
  /** Approves the pending calls in the page. */
  const approve = async ({ get, post }: Visited, id: string): Promise<void> => {
    for (;;) {
      const { moment } = await get<EndView>(endPath)
      const call = moment?.pending.find(({ callId }) => callId === id)
      if (!call) continue
      const { callId, fingerprint } = call
      expect(await post('/api/sessions/mail/answers', { type: 'approve', callId, fingerprint })).toBe(200)
      return
    }
  }

  test('is answered at the terminal', async () => {
    const { code, out, err } = await opened(
      [...args, '--store', 'file:kept'],
      {
        cwd: await folder(files('ann')),
        tty: true,
        onOutput: (text, { stdin }) => {
          if (text.includes('(y)es, (n)o, (e)dit')) stdin.write('y\n')
        },
      },
      async (get) => {
        while ((await get(sessions)).sessions[0]?.state !== 'COMPLETED');
      },
    )
    expect([code, out]).toEqual([0, expect.stringContaining('Sent.')])
    expect(err).toContain('Answer here, or in the studio.')
  })

  test('is answered in the page, which withdraws the question; input for it answers no other', async () => {
    let questions = 0
    const { code, out } = await opened(
      [...args, '--store', 'file:kept'],
      {
        cwd: await folder(files('ann', 'bob')),
        tty: true,
        onOutput: (text, { stdin }) => {
          if (!text.includes('(y)es, (n)o, (e)dit')) return
          questions += 1
          // The page answers the first prompt. The line is typed at the second prompt.
          if (questions > 1) stdin.write(questions === 2 ? 'n\n' : 'y\n')
        },
      },
      async (get, post) => {
        await approve({ get, post }, 'ann')
        while ((await get(sessions)).sessions[0]?.state !== 'COMPLETED');
      },
    )
    expect([code, questions]).toEqual([0, 3])
    expect(out).toContain('Answered in the studio.')
    expect(out).toContain('The question has changed in the meantime.')
    expect(out).toContain('Sent.')
  })

  test('without a terminal, reports that it is answered in the page, and continues with that answer', async () => {
    const { code, out, err } = await opened(
      [...args, '--store', 'file:kept'],
      { cwd: await folder(files('ann')) },
      async (get, post) => {
        await approve({ get, post }, 'ann')
        while ((await get(sessions)).sessions[0]?.state !== 'COMPLETED');
      },
    )
    expect([code, out]).toEqual([0, expect.stringContaining('Sent.')])
    expect(err).toContain('Answer in the studio.')
  })

  test('stays unchanged after Ctrl-C, and can be continued', async () => {
    const { run, cwd } = await createPlace(files('ann'))
    const { code, err } = await opened([...args, '--store', 'file:kept'], { cwd }, async (get) => {
      while ((await get(sessions)).sessions[0]?.state !== 'WAITING_FOR_INPUT');
    })
    expect(code).toBe(4)
    expect(err).toContain('Continue with: statewright resume mail')
    expect((await run(['sessions', 'list'])).out).toMatch(/waiting/i)
  })
})

test('a folder without sessions is reported, and not created', async () => {
  const cwd = await folder({})
  const { code, err } = await cli(['studio', '--store', 'file:nowhere'], { cwd })
  expect([code, err]).toEqual([
    2,
    expect.stringMatching(/--store: there is no store in .*nowhere.*statewright run --store/),
  ])
  expect(existsSync(join(cwd, 'nowhere'))).toBe(false)
  const named = await cli(['studio'], { cwd, env: { STATEWRIGHT_STORE: 'file:nowhere' } })
  expect([named.code, named.err]).toEqual([
    2,
    expect.stringContaining('STATEWRIGHT_STORE: there is no store'),
  ])
})

const isBuilt = existsSync(join(packageRoot, 'dist/src/studio/client.js'))

test('sessions export --html writes one file that loads nothing, or reports what is missing', async () => {
  const { run, cwd } = await createPlace({
    'done.json': calls(['l', 'look', { at: 'x' }]),
    'tools.mjs': toolsModule,
  })
  await run([
    'run',
    '--session',
    'done',
    '--rehearsal=done.json',
    '-t',
    'tools.mjs',
    '</script><script>alert(1)</script>',
  ])
  const { code, err } = await run(['sessions', 'export', 'done', '--html', '--out', 'done.html'])
  if (!isBuilt) {
    expect([code, err]).toEqual([2, expect.stringContaining('npm run build')])
    return
  }
  expect(code).toBe(0)
  const html = await readFile(join(cwd, 'done.html'), 'utf8')
  expect(html).toMatch(/content-security-policy" content="default-src 'none'; script-src 'sha256-/)
  // The page's code contains these texts, but its elements do not.
  const elements = html.replaceAll(/(<script[^>]*>)[^]*?<\/script>/g, '$1')
  expect(elements).not.toMatch(/<(?:script|link|img)[^>]*(?:src|href)="(?!data:)/)
  expect(html).not.toContain('<script>alert(1)')
})

test('--html and --markdown cannot be combined', async () => {
  const { code, err } = await cli(['sessions', 'export', 'x', '--html', '--markdown'])
  expect([code, err]).toEqual([2, expect.stringContaining('cannot be combined')])
})
