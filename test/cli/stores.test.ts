import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { RunResult } from '../../machines/agent/run-result.js'
import { formatCarriedOptions } from '../../src/cli/options.js'
import { says } from './kept.js'
import { cli, folder, removeFolders } from './support.js'

afterEach(removeFolders)

const play = ['run', '--rehearsal=play.json', 'Hi']
const files = { 'play.json': says('Hello.') }

describe('the sessions of the command line', () => {
  test('outlive their command, in the folder of this user', async () => {
    const [cwd, dataFolder] = [await folder(files), await folder({})]
    const { code, out } = await cli([...play, '--session', 'work'], { cwd, dataFolder })
    expect(code).toBe(0)
    expect(out).toMatch(/COMPLETED[^]*\nSession work\n$/)
    expect((await cli(['sessions', 'list'], { dataFolder })).out).toMatch(
      /\nwork +COMPLETED +just now +2 .* Hi\n$/,
    )
    const again = await cli([...play, '--session', 'work', '--json'], { cwd, dataFolder })
    expect((JSON.parse(again.out) as RunResult).messages).toHaveLength(4)
  })

  test('are not stored by a rehearsal without an option', async () => {
    const [cwd, dataFolder] = [await folder(files), await folder({})]
    const { out } = await cli(play, { cwd, dataFolder, env: { STATEWRIGHT_STORE: 'file:elsewhere' } })
    expect(out).toContain('COMPLETED')
    expect(out).not.toContain('Session ')
    expect(existsSync(join(cwd, 'elsewhere'))).toBe(false)
    expect((await cli(['sessions', 'list'], { dataFolder })).out).toContain(
      'There are no sessions in the store ',
    )
  })

  test('--store overrides STATEWRIGHT_STORE, and a relative folder starts at the working folder', async () => {
    const cwd = await folder(files)
    const env = { STATEWRIGHT_STORE: 'file:of-the-environment' }
    await cli([...play, '--session', 'a'], { cwd, env })
    await cli([...play, '--store', 'file:of-the-option'], { cwd, env })
    expect(existsSync(join(cwd, 'of-the-environment', 'sessions.db'))).toBe(true)
    expect(existsSync(join(cwd, 'of-the-option', 'sessions.db'))).toBe(true)
    expect((await cli(['sessions', 'list', '--json'], { cwd, env })).out.trim().split('\n')).toHaveLength(1)
  })

  test.each([
    [
      'a folder without file:',
      './s',
      '--store: The text does not name a session store. Use memory:, file:DIR, file:///DIR or',
    ],
    [
      'a URL of another scheme',
      'redis://me:secret@host',
      '--store: A URL with redis: does not name a session store.',
    ],
  ])('%s is refused by the name of the option', async (_what, url, words) => {
    for (const command of [play, ['sessions', 'list'], ['send', 'a', 'pause']]) {
      const { code, err } = await cli([...command, '--store', url], { cwd: await folder(files) })
      expect(code).toBe(2)
      expect(err).toContain(words)
      expect(err).not.toContain('secret')
    }
  })

  test('a folder without file: gets a suggestion', async () => {
    const env = { STATEWRIGHT_STORE: './s' }
    const { err } = await cli(['sessions', 'list'], { env })
    expect(err).toContain('STATEWRIGHT_STORE: The text does not name a session store.')
    expect(err).toContain("For the folder './s': file:./s\n")
  })

  test.each([
    ['no home', () => Promise.resolve(null), 'There is no home folder'],
    [
      'a folder that cannot be used',
      async () => join(await folder({ file: '' }), 'file', 'x'),
      'cannot be used',
    ],
  ])('with %s a run continues in memory and prints one line about it', async (_what, place, why) => {
    const [cwd, dataFolder] = [await folder(files), await place()]
    const { code, out, err } = await cli([...play, '--session', 'work'], { cwd, dataFolder })
    expect(code).toBe(0)
    expect(out).not.toContain('Session work')
    expect(err).toMatch(/^statewright: this session is stored only in memory\. .*\n$/)
    expect(err).toContain(why)
    const listed = await cli(['sessions', 'list'], { dataFolder })
    expect(listed).toMatchObject({ code: 2, out: '', err: expect.stringContaining(why) })
  })

  test.each([
    ['--store', { args: ['--store', 'file:file/x'] }],
    ['STATEWRIGHT_STORE', { args: ['--session', 's'], env: { STATEWRIGHT_STORE: 'file:file/x' } }],
  ])('an unusable store named by %s is an error', async (_what, { args, ...call }) => {
    const cwd = await folder({ ...files, file: '' })
    const { code, out, err } = await cli([...play, ...args], { cwd, ...call })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(/^statewright: .*sessions\.db cannot be used.*\n$/)
  })

  test('an invalid store name is an error that lists the valid ones', async () => {
    const { code, err } = await cli(['sessions', 'list', '--store', 'sessions'])
    expect(code).toBe(2)
    expect(err).toContain('Use memory:, file:DIR, file:///DIR or postgres://')
  })

  test.each([['--session=s'], ['--store=file:kept']])(
    'without a model, no rehearsal is played into a stored session (%s)',
    async (option) => {
      const { code, out, err } = await cli(['run', option, 'Hi'], { cwd: await folder({}) })
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).toContain('No model is configured.')
    },
  )
})

describe('a cancelled run', () => {
  test('prints how to continue its session, with the same options', async () => {
    const cwd = await folder({ 'play.json': { turns: [{ text: 'Let me think.', hang: 1 }] } })
    const interrupt = new AbortController()
    const { code, out } = await cli([...play, '--session', 'work'], {
      cwd,
      signal: interrupt.signal,
      onOutput: (text) => {
        if (text.includes('Let me')) interrupt.abort()
      },
    })
    expect(code).toBe(130)
    expect(out).toMatch(
      /Session work\nContinue with: statewright run --session work --rehearsal=play\.json 'Continue\.'\n$/,
    )
  })
})

describe('the options for the next command', () => {
  test('are quoted for a shell', () => {
    const options = { tools: './my tools.mjs', model: 'gpt-5', instructions: "Don't.", rehearsal: true }
    expect(formatCarriedOptions(options)).toBe(
      ` --tools='./my tools.mjs' --model=gpt-5 --instructions='Don'\\''t.' --rehearsal`,
    )
  })

  test('never contain a possible secret', () => {
    const shown = formatCarriedOptions({
      store: 'postgres://me:secret@host/db',
      baseURL: 'https://host/v1?key=secret',
      mcp: ['TOKEN=secret npx server', 'https://user:secret@host/mcp', 'npx server'],
    })
    expect(shown).toBe(` --store … --mcp … --mcp … --mcp='npx server' --base-url …`)
  })
})
