import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as core from '../../src/index.js'
import * as testing from '../../src/testing/index.js'
import { provideEntries } from '../support/entries.js'
import { type Kept, createPlace } from './kept.js'
import { cli, removeFolders } from './support.js'

// In a separate file, because bundling replaces the text import.meta.url, which these tests write.
provideEntries({ statewright: core, 'statewright/testing': testing })

afterEach(removeFolders)

/** Runs a test file like its runner, and rethrows its failures. */
async function runTests({ cwd }: Kept, file: string): Promise<string[]> {
  const found: [string, () => Promise<void>][] = []
  Object.assign(globalThis, { found: (name: string, run: () => Promise<void>) => found.push([name, run]) })
  const text = (await readFile(join(cwd, file), 'utf8')).replace(/^import \{ test \} from .*$/m, '')
  // A new module each time, because imported modules are cached.
  const copy = file.replace('.mjs', `.${Math.random()}.mjs`)
  await writeFile(join(cwd, copy), `const test = globalThis.found\n${text}`)
  await import(pathToFileURL(join(cwd, copy)).href)
  for (const [, run] of found) await run()
  return found.map(([name]) => name)
}

/** An agent in a module, as in a custom program. */
const agentModule = (instructions: string, result = 'Rain.') => `
  import { createAgent, defineTool, openaiChat } from 'statewright'
  const weather = defineTool({
    name: 'weather', description: 'Tells the weather.', input: { type: 'object' }, execute: () => '${result}',
  })
  const model = openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9', apiKey: 'none' })
  export default ({ store }) => createAgent({ model, store, instructions: '${instructions}', tools: [weather], prices: null })
`

let played: string

/** The demo runs at a model's pace, so it is played once. */
beforeAll(async () => {
  played = await mkdtemp(join(tmpdir(), 'statewright-demo-'))
  await cli(['run', '--rehearsal', '--session', 'demo', '--store', 'file:kept'], { cwd: played })
})

afterAll(() => rm(played, { recursive: true, force: true }))

/** The session of `npm start -- --session demo`. */
async function demo(): Promise<Kept> {
  const place = await createPlace()
  await cp(join(played, 'kept'), join(place.cwd, 'kept'), { recursive: true })
  return place
}

async function weather(): Promise<Kept> {
  const place = await createPlace({
    'rain.json': { turns: [{ toolCalls: [{ name: 'weather', arguments: {} }] }, { text: 'It rains.' }] },
    'tools.mjs': `
      import { defineTool } from 'statewright'
      export default [
        defineTool({ name: 'weather', description: 'Tells the weather.', input: { type: 'object' }, execute: () => 'Rain.' }),
      ]`,
    'agent.mjs': agentModule('Be brief.'),
  })
  await place.run(['run', '--rehearsal=rain.json', '--session', 'w', '-t', 'tools.mjs', 'Does it rain?'])
  return place
}

const refused = async (running: Promise<unknown>): Promise<string> =>
  running.then(
    () => 'It passed.',
    (error: Error) => error.message,
  )

describe('sessions export --as test', () => {
  test('turns a session of npm start into a test that passes, and fails after a change of its prompt', async () => {
    const place = await demo()
    const { code, out, err } = await place.run(['sessions', 'export', 'demo', '--as', 'test'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toBe(
      'Wrote demo.test.mjs and demo.session.json. Run it: NODE_OPTIONS=--experimental-vm-modules npx jest demo.test.mjs\n',
    )
    expect(await runTests(place, 'demo.test.mjs')).toEqual(['session demo replays as recorded'])

    const file = join(place.cwd, 'demo.test.mjs')
    const text = await readFile(file, 'utf8')
    expect(text).toContain("  instructions: '',")
    await writeFile(file, text.replace("instructions: ''", "instructions: 'You are a pirate.'"))
    const message = await refused(runTests(place, 'demo.test.mjs'))
    expect(message).toContain('The prompt has changed (instructions):\n  - (none)\n  + You are a pirate.')
  })

  test('imports the agent of a module, and records again after a permanent change', async () => {
    const place = await weather()
    const options = [
      'sessions',
      'export',
      'w',
      '--as',
      'test',
      '--agent',
      'agent.mjs',
      '--out',
      'test/rain.test.mjs',
    ]
    expect((await place.run(options)).code).toBe(0)
    expect(await readFile(join(place.cwd, 'test/rain.test.mjs'), 'utf8')).toContain(
      "import createAgent from '../agent.mjs'",
    )
    await runTests(place, 'test/rain.test.mjs')
    const again = await place.run(options)
    expect([again.code, again.err]).toEqual([
      2,
      expect.stringContaining('To store a new recording for this test, pass --update.'),
    ])

    // Modules are cached per process, so the changed module has another name.
    await writeFile(join(place.cwd, 'other.mjs'), agentModule('Be polite.'))
    const file = join(place.cwd, 'test/rain.test.mjs')
    await writeFile(file, (await readFile(file, 'utf8')).replace('../agent.mjs', '../other.mjs'))
    expect(await refused(runTests(place, 'test/rain.test.mjs'))).toContain('  - Be brief.\n  + Be polite.')

    const updated = options.map((option) => (option === 'agent.mjs' ? 'other.mjs' : option))
    const { code, out } = await place.run([...updated, '--update'])
    expect([code, out]).toEqual([
      0,
      'Stored a new recording: test/rain.session.json. The test test/rain.test.mjs is unchanged.\n',
    ])
    await runTests(place, 'test/rain.test.mjs')
  })

  test('executes calls with --tools live, and uses the schemas of their module', async () => {
    const place = await weather()
    const command = [
      'sessions',
      'export',
      'w',
      '--as',
      'test',
      '--runner',
      'node',
      '-i',
      '',
      '-t',
      'tools.mjs',
      '-t',
      'live',
    ]
    expect(await place.run(command.filter((option) => option !== '-i' && option !== ''))).toMatchObject({
      code: 0,
      out: expect.stringContaining('node --test --test-force-exit w.test.mjs'),
      err: '',
    })
    const text = await readFile(join(place.cwd, 'w.test.mjs'), 'utf8')
    expect(text).toContain("replaySession(agent, recording, { tools: 'live' })")
    expect(text).toContain("import { test } from 'node:test'")
    await runTests(place, 'w.test.mjs')
    await writeFile(
      join(place.cwd, 'dry.mjs'),
      (await readFile(join(place.cwd, 'tools.mjs'), 'utf8')).replace('Rain.', 'Sun.'),
    )
    await writeFile(join(place.cwd, 'w.test.mjs'), text.replace('./tools.mjs', './dry.mjs'))
    expect(await refused(runTests(place, 'w.test.mjs'))).toContain('  - Rain.\n  + Sun.')
  })

  test('writes no test that fails initially', async () => {
    const place = await weather()
    await writeFile(
      join(place.cwd, 'few.mjs'),
      agentModule('Be brief.').replace('tools: [weather]', 'tools: []'),
    )
    const { code, err } = await place.run(['sessions', 'export', 'w', '--as', 'test', '--agent', 'few.mjs'])
    expect(code).toBe(2)
    expect(err).toContain("Tool 'weather' is missing. The session calls it in step 1. Current tools: none.")
    expect(err).toContain('Nothing was written')
    await writeFile(
      join(place.cwd, 'asks.mjs'),
      agentModule('Be brief.').replace('execute:', 'needsApproval: true, execute:'),
    )
    const asks = await place.run(['sessions', 'export', 'w', '--as', 'test', '--agent', 'asks.mjs'])
    expect(asks.err).toContain('waits for a person to approve it now')
    // The messages are exported although the store does not name the agent.
    const bare = await place.run(['sessions', 'export', 'w', '--as', 'test', '--out', 'bare.test.mjs'])
    expect([bare.code, bare.err]).toEqual([0, expect.stringContaining("This session's agent is unknown")])
    await runTests(place, 'bare.test.mjs')
    await expect(stat(join(place.cwd, 'w.test.mjs'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('refuses contradictory options and missing sessions', async () => {
    const place = await demo()
    const wrong: [string[], string][] = [
      [['--runner', 'jest'], 'needs --as test'],
      [['--as', 'poem'], 'must be one of json, markdown, html, card, film, test'],
      [['--as', 'test', '--runner', 'mocha'], 'must be one of jest, vitest, node'],
      [['--as', 'test', '--html'], 'cannot be combined'],
      [['--as', 'test', '--agent', 'a.mjs', '-i', 'Be.'], 'cannot be combined'],
      [['--as', 'test', '-t', 'a.mjs', '-t', 'b.mjs'], 'accepts one module'],
      [['--as', 'test', '-t', 'live'], '--tools live needs tools'],
      [['--as', 'test', '--agent', 'a.mjs'], "there is no file 'a.mjs'"],
    ]
    for (const [options, words] of wrong) {
      const { code, err } = await place.run(['sessions', 'export', 'demo', ...options])
      expect(code).toBeGreaterThan(0)
      expect(err).toContain(words)
    }
  })
})
