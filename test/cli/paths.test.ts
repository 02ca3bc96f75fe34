import { SigtermHandler } from '../../src/cli/command.js'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { runCli } from '../../src/cli/cli.js'
import { cli, folder, removeFolders } from './support.js'

afterEach(removeFolders)

/** A module in a separate folder cannot resolve packages. */
const xstate = pathToFileURL(join(process.cwd(), 'node_modules/xstate/dist/xstate.esm.js')).href
const door = `
import { createMachine } from '${xstate}'
export default createMachine({
  id: 'door',
  initial: 'closed',
  states: { closed: { on: { OPEN: 'open', KICK: { guard: 'isStrong', target: 'broken' } } }, open: { on: { CLOSE: 'closed' } }, broken: {} },
}).provide({ guards: { isStrong: ({ event }) => event.force > 3 } })
`
const alphabet = `
export const alphabet = { open: { type: 'OPEN' }, close: { type: 'CLOSE' }, 'a kick': { type: 'KICK', force: 5 } }
`

describe('statewright paths', () => {
  test('explores the agent machine without a module: here its first states, all of them in .ci/run', async () => {
    const { code, out, err } = await cli(['paths', '--limit', '300'])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('Stopped at the limit of 300 states')
  })

  test('explores the machine of a module with its exported alphabet', async () => {
    const cwd = await folder({ 'door.mjs': door + alphabet })
    const { code, out, err } = await cli(['paths', 'door.mjs', '--coverage', 'pairs'], { cwd })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^door: 3 of 3 transitions, 4 of 4 states, 3 of 3 reachable pairs, by \d paths?/)
    expect(out).toContain('closed: KICK [isStrong] → broken')
  })

  test('tries each event bare without an alphabet, with a note, and fails for invalid ones', async () => {
    const cwd = await folder({ 'door.mjs': door })
    const { code, out, err } = await cli(['paths', 'door.mjs'], { cwd })
    expect(code).toBe(1)
    expect(err).toContain("'door.mjs' exports no alphabet")
    expect(out).toContain("its guard 'isStrong' was false")
  })

  test('prints the coverage as JSON', async () => {
    const cwd = await folder({ 'door.mjs': door + alphabet })
    const { out } = await cli(['paths', 'door.mjs', '--json'], { cwd })
    expect(out.trim().split('\n')).toHaveLength(1)
    expect(JSON.parse(out)).toMatchObject({ machine: 'door', transitions: { length: 3 } })
  })

  test('writes a Jest file, and the same one each time', async () => {
    const cwd = await folder({ 'door.mjs': door + alphabet })
    const { code, err } = await cli(['paths', 'door.mjs', '--emit', 'test/paths'], { cwd })
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(/^Wrote \d tests? to test\/paths\/door/),
    })
    const text = await readFile(join(cwd, 'test/paths/door.paths.test.js'), 'utf8')
    expect(text).toContain('import machine from "../../door.mjs"')
    expect(text).toContain('createMachineHarness(machine)')
    await cli(['paths', 'door.mjs', '--emit', 'test/paths'], { cwd })
    expect(await readFile(join(cwd, 'test/paths/door.paths.test.js'), 'utf8')).toBe(text)
    expect(await readdir(join(cwd, 'test/paths'))).toEqual(['door.paths.test.js'])
  })

  test('replaces no file that it has not generated', async () => {
    const cwd = await folder({ 'door.mjs': door + alphabet, 'door.paths.test.js': 'mine' })
    const { code, err } = await cli(['paths', 'door.mjs', '--emit', '.'], { cwd })
    expect(code).toBe(2)
    expect(err).toContain('is not a generated file, so it was not replaced')
    expect(await readFile(join(cwd, 'door.paths.test.js'), 'utf8')).toBe('mine')
  })

  test.each([true, false])(
    'shows the progress of a short exploration only at a terminal (%s)',
    async (isTTY) => {
      const cwd = await folder({ 'door.mjs': door + alphabet })
      const stderr = Object.assign(new PassThrough(), { isTTY })
      const { stdin, stdout } = { stdin: new PassThrough(), stdout: new PassThrough() }
      const { signal } = new AbortController()
      const dataFolder = () => Promise.resolve(null)
      await runCli(['paths', 'door.mjs'], {
        stdin,
        stdout,
        stderr,
        env: {},
        cwd,
        dataFolder,
        signal,
        sigterm: new SigtermHandler(),
      })
      const shown = String(stderr.read() ?? '')
      expect(shown).toMatch(isTTY ? /\r3 states, 9 events, 0 waiting\u001B\[K\r\u001B\[K$/ : /^$/)
    },
  )

  test.each([
    [['--coverage', 'states'], "--coverage must be one of transitions, pairs (got 'states')"],
    [['--limit', '0'], "--limit must be a whole number of at least 1 (got '0')"],
    [['--limit', 'many'], "--limit must be a whole number of at least 1 (got 'many')"],
    [['--limit', '1e3'], "--limit must be a whole number of at least 1 (got '1e3')"],
    [['--limit', '1'], 'Stopped at the limit of 1 states'],
    [['other.mjs'], "Unexpected argument 'other.mjs'."],
    [['--emit', 'door.mjs'], 'is not a folder'],
    [['--fast'], 'Unknown option --fast'],
  ])('%j is refused in one sentence', async (args, message) => {
    const cwd = await folder({ 'door.mjs': door + alphabet })
    const { code, err } = await cli(['paths', 'door.mjs', ...args], { cwd })
    expect(code).toBe(2)
    expect(err).toContain(message)
    expect(err).not.toContain('    at ')
  })

  test.each([
    ['export default 1', 'Expected an XState v5 state machine'],
    ['export const a = 1', 'Export a machine'],
    [`${door}\nexport const alphabet = 3`, "The option 'alphabet' must be"],
    [`${door}\nexport const alphabet = [{}]`, 'made of events with a type'],
    [`${door}\nexport const alphabet = [Object.create(null)]`, 'with a type, but contains {}'],
    [`${door}\nexport const alphabet = () => { throw new Error('oops') }`, 'The alphabet threw'],
    [`${door}${alphabet}\nexport const inputs = 3`, "The option 'inputs' must be"],
    [`${door}${alphabet}\nexport const serializeState = () => 1`, "The option 'serializeState' must be"],
  ])('a module that fails otherwise is refused with its error: %#', async (source, message) => {
    const cwd = await folder({ 'machine.mjs': source })
    const { code, err } = await cli(['paths', 'machine.mjs'], { cwd })
    expect(code).toBe(2)
    expect(err).toContain(message)
    expect(err).not.toContain('    at ')
  })

  test('a missing module is reported', async () => {
    const { code, err } = await cli(['paths', 'nope.mjs'], { cwd: await folder({}) })
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("there is no file 'nope.mjs'") })
  })
})
