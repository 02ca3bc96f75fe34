import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { existsSync } from 'node:fs'
import { packageRoot } from '../../src/studio/package-root.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { ask } from '../studio/visitor.js'
import { calls, kept, toolsModule } from './kept.js'
import { cli, type CliCall, folder, removeFolders } from './support.js'

afterEach(removeFolders)

/** Runs a command that stays open, does something with the page, and interrupts it. */
async function opened(
  args: readonly string[],
  call: CliCall,
  use: (get: (path: string) => Promise<SessionsView>) => Promise<void>,
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
  await use(async (path) => {
    const { body } = await ask(new URL(`.${headers.location}.${path}`, shown).href, { headers: { cookie } })
    return JSON.parse(body) as SessionsView
  })
  interrupt.abort(new Error('Ctrl-C'))
  return ended
}

const sessions = '/api/sessions'

test('statewright studio shows the sessions that are kept, until it is interrupted', async () => {
  const { run, cwd } = await kept({
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

test('at a terminal Enter gives an address for another browser', async () => {
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

test('--agent takes an agent, or what makes one of the store', async () => {
  const made = `export default ({ store }) => ({ config: {}, store, resume: async () => ({}), fork: async () => 'x' })`
  const cwd = await folder({ 'agent.mjs': made })
  await opened(['studio', '--store', 'file:kept', '--agent', 'agent.mjs'], { cwd }, async (get) => {
    expect((await get(sessions)).readOnly).toBeNull()
  })
})

test.each([
  ['export const agent = {}', /has no default export/],
  ['export default 7', /has no agent as its default export/],
  [`export default () => { throw new Error('no key') }`, /could not make an agent: no key/],
])('--agent with %s is refused in a sentence', async (source, why) => {
  const cwd = await folder({ 'agent.mjs': source })
  const { code, err } = await cli(['studio', '--store', 'memory:', '--agent', 'agent.mjs'], { cwd })
  expect(code).toBe(2)
  expect(err).toMatch(why)
})

test.each([
  [['studio', 'work'], /no such thing as 'work'/],
  [['studio', '--port', '70000'], /at most 65535/],
  [['studio', '--port', 'x'], /whole number/],
  [['studio', '--machine', 'nowhere.mjs'], /nowhere\.mjs/],
])('%p is refused', async (args, why) => {
  const { code, err } = await cli(args)
  expect([code, err]).toEqual([2, expect.stringMatching(why)])
})

test('run --studio shows the run, keeps it open when it has ended, and ends with its code', async () => {
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
  expect(err).toContain('The studio stays open: Ctrl-C ends it.')
})

const isBuilt = existsSync(join(packageRoot, 'dist/src/studio/client.js'))

test('sessions export --html is one file that asks nobody for anything, or says what is missing', async () => {
  const { run, cwd } = await kept({
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
  expect(html).not.toMatch(/<(?:script|link|img)[^>]*(?:src|href)="(?!data:)/)
  expect(html).not.toContain('<script>alert(1)')
})

test('--html and --markdown exclude each other', async () => {
  const { code, err } = await cli(['sessions', 'export', 'x', '--html', '--markdown'])
  expect([code, err]).toEqual([2, expect.stringContaining('exclude each other')])
})
