import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as testing from '../../src/testing/index.js'
import { provideEntries } from '../support/entries.js'
import { cli, folder, removeFolders } from './support.js'

const { checkStory } = testing
provideEntries({ 'statewright/testing': testing })

afterEach(removeFolders)

const urlOf = (path: string) => JSON.stringify(pathToFileURL(join(process.cwd(), path)).href)
const request = `
import { createMachine } from ${urlOf('node_modules/xstate/dist/xstate.esm.js')}
export default createMachine({
  id: 'request',
  initial: 'asking',
  states: {
    asking: { on: { GRANT: 'granted', POSTPONE: 'postponed' } },
    postponed: { on: { REMIND: 'asking' } },
    granted: { type: 'final' },
  },
})
`
const alphabet = `export const alphabet = { 'it is granted': { type: 'GRANT' }, later: { type: 'POSTPONE' }, remind: { type: 'REMIND' } }`
/** The values that always, never, leadsTo and canReach create. A module can write them without the package. */
const granted = `export const properties = {
  'there is a way': { kind: 'canReach', q: 'granted' },
  'a request is granted in the end': { kind: 'leadsTo', p: 'asking', q: 'granted', fair: ['GRANT', 'REMIND'] },
}`

const files = {
  'request.mjs': `${request}${alphabet}`,
  'bare.mjs': request,
  'granted.mjs': granted,
  'granted.ts': `${granted}\nexport type Never = never\n`,
  'kept.mjs': `export const properties = {
    'no end without an event': { kind: 'never', p: ({ value, event }) => value === 'granted' && event.type !== 'GRANT' },
    'what is opened is closed': { kind: 'leadsTo', p: ({ event }) => event.type === 'OPEN', q: 'granted', fair: [] },
  }`,
  'postponed.mjs': `${alphabet.replace('alphabet = {', "alphabet = { never: { type: 'NEVER' },")}\n${granted}`,
  'none.mjs': 'export const answer = 42',
  'empty.mjs': 'export const properties = {}',
  'odd.mjs': `export const properties = { odd: { kind: 'sometimes' } }`,
  'thrown.mjs': `export const properties = { thrown: { kind: 'never', p: () => { throw new Error('Oh.') } } }`,
}

describe('statewright properties', () => {
  test('prints the shortest run that breaks a property, and fails', async () => {
    const cwd = await folder(files)
    const { code, out, err } = await cli(['properties', 'request.mjs', 'granted.mjs'], { cwd })
    expect({ code, err }).toEqual({ code: 1, err: '' })
    expect(out).toBe(`✓ there is a way: holds in all 3 states
✗ a request is granted in the end: 'granted' never holds, even if every fair event that stays possible happens
Starting with input 1:
  start → asking
and then repeats:
  later  → postponed
  remind → asking
2 properties: 1 hold, 1 broken
`)
  })

  test('passes if all hold, and names those that never started', async () => {
    const cwd = await folder(files)
    const { code, out } = await cli(['properties', 'request.mjs', 'kept.mjs'], { cwd })
    expect(code).toBe(0)
    expect(out).toContain('✓ what is opened is closed: holds in all 3 states; it was never triggered\n')
    expect(out).toContain('2 properties: 2 hold, 0 broken\n')
  })

  test('the example shows which properties the mistake of its other machine breaks', async () => {
    const check = (machine: string) =>
      cli(['properties', `examples/${machine}.machine.mjs`, 'examples/sign-off.properties.mjs'], {
        cwd: process.cwd(),
      })
    expect(await check('sign-off')).toMatchObject({ code: 0, err: '' })
    const { code, out } = await check('hasty-sign-off')
    expect(code).toBe(1)
    expect(out).toContain('✗ a call waits until two people have signed it: is violated in running.working')
  })

  test('loads TypeScript; tries each event once if neither module has an alphabet, with a note', async () => {
    const cwd = await folder(files)
    const bare = await cli(['properties', 'bare.mjs', 'granted.ts'], { cwd })
    expect({ code: bare.code, err: bare.err }).toEqual({
      code: 1,
      err: expect.stringContaining("'bare.mjs' exports no alphabet"),
    })
    const own = await cli(['properties', 'bare.mjs', 'postponed.mjs'], { cwd })
    expect({ code: own.code, err: own.err }).toEqual({ code: 1, err: '' })
    expect(own.out).toContain('  later  → postponed')
  })

  test('prints JSON without snapshots, and is undecided if the limit came first', async () => {
    const cwd = await folder(files)
    const { out } = await cli(['properties', 'request.mjs', 'granted.mjs', '--json'], { cwd })
    expect(JSON.parse(out)).toMatchObject({
      'there is a way': { holds: true, states: 3, counterexample: null },
      'a request is granted in the end': {
        holds: false,
        counterexample: {
          steps: [{ state: { value: 'asking', status: 'active' } }],
          loop: [
            { event: { type: 'POSTPONE' }, label: 'later', transitions: ['asking: POSTPONE → postponed'] },
            {},
          ],
        },
      },
    })
    const limited = await cli(['properties', 'request.mjs', 'kept.mjs', '--limit', '1'], { cwd })
    expect(limited.code).toBe(1)
    expect(limited.out).toContain(
      '? no end without an event: no violation in 1 state. Stopped at the limit of 1 state',
    )
    expect(limited.out).toContain('2 properties: 0 hold, 0 broken, 2 unknown\n')
  })

  test('writes a test that fails until the machine is corrected', async () => {
    const cwd = await folder(files)
    const { err } = await cli(['properties', 'request.mjs', 'granted.mjs', '--emit', 'stories'], { cwd })
    expect(err).toBe('Wrote 1 test to stories/request.properties.test.js\n')
    const text = await readFile(join(cwd, 'stories/request.properties.test.js'), 'utf8')
    const messages: unknown[] = []
    const [machine, properties] = [
      await import(join(cwd, 'request.mjs')),
      await import(join(cwd, 'granted.mjs')),
    ]
    const body = text.replace(/^import .*$/gm, '')
    // oxlint-disable-next-line no-implied-eval, no-new-func -- the file's own text, with injected imports
    new Function('checkStory', 'machine', 'ofMachine', 'ofProperties', 'describe', 'test', 'expect', body)(
      checkStory,
      machine.default,
      machine,
      properties,
      (_: string, run: () => void) => run(),
      (_: string, run: () => void) => run(),
      ({ message }: { message: string; property: testing.Property }) => ({
        toEqual: () => messages.push(message),
      }),
    )
    expect(messages).toEqual([expect.stringContaining("'granted' never holds")])
    for (const path of ['../request.mjs', '../granted.mjs']) expect(text).toContain(`from "${path}"`)
  })

  test.each([
    [['request.mjs'], /PROPERTIES is missing/],
    [['request.mjs', 'granted.mjs', 'bare.mjs'], /Unexpected argument 'bare.mjs'/],
    [['request.mjs', 'gone.mjs'], /there is no file 'gone.mjs'/],
    [['none.mjs', 'granted.mjs'], /'none.mjs' exports answer\. Export a machine/],
    [['request.mjs', 'none.mjs'], /'none.mjs' exports no properties\. It needs: export const properties/],
    [['request.mjs', 'empty.mjs'], /Pass at least one property by name/],
    [['request.mjs', 'odd.mjs'], /The property 'odd' must be created by always, never/],
    [['request.mjs', 'thrown.mjs'], /'thrown'.*Oh\./],
    [['request.mjs', 'granted.mjs', '--limit', '0'], /--limit must be a whole number of at least 1/],
  ])('%j is refused in one sentence', async (args, pattern) => {
    const cwd = await folder(files)
    const { code, err } = await cli(['properties', ...args], { cwd })
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(pattern) })
    expect(err).not.toMatch(/\n\s+at /)
  })
})
