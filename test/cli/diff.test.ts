import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cli, folder, removeFolders } from './support.js'

afterEach(removeFolders)

const urlOf = (path: string) => JSON.stringify(pathToFileURL(join(process.cwd(), path)).href)
const door = (kick: string, more = '') => `
import { createMachine } from ${urlOf('node_modules/xstate/dist/xstate.esm.js')}
export default createMachine({
  id: 'door',
  initial: 'closed',
  states: { closed: { on: { OPEN: 'open', KICK: '${kick}' } }, open: { on: { CLOSE: 'closed' } }, broken: { type: 'final' } },
})
${more}`
const alphabet = `export const alphabet = { open: { type: 'OPEN' }, 'a kick': { type: 'KICK', force: 5 } }`

const files = {
  'before.mjs': door('broken', alphabet),
  'after.mjs': door('open', alphabet),
  'after.ts': `${door('open', alphabet)}\nexport type Kick = { force: number }\n`,
  'bare.mjs': door('broken'),
  'none.mjs': 'export const answer = 42',
  'damaged.mjs': 'export default {',
}

describe('statewright diff', () => {
  test('prints the shortest trace of each change, and fails', async () => {
    const cwd = await folder(files)
    const { code, out, err } = await cli(['diff', 'before.mjs', 'after.mjs'], { cwd })
    expect({ code, err }).toEqual({ code: 1, err: '' })
    expect(out).toBe(`The machines differ at 1 transition. The comparison covers all 2 pairs of states.
Declared only before:
  closed: KICK → broken
Declared only after:
  closed: KICK → open

1. closed: KICK → broken: is missing. New: closed: KICK → open
Starting with input 1:
  start → closed
  a kick
    before → broken (done)
    after  → open
`)
  })

  test('shows what the mistake of the example changes', async () => {
    const modules = ['examples/sign-off.machine.mjs', 'examples/hasty-sign-off.machine.mjs']
    const { code, out, err } = await cli(['diff', ...modules], { cwd: process.cwd() })
    expect({ code, err }).toEqual({ code: 1, err: '' })
    expect(out).toContain(
      '1. running.awaitingSignatures: SIGN [isNewSignature] → (stays): is not taken. Taken instead:',
    )
    expect(out).toContain('[isLastSignature] → running.working\nStarting with a deployment:\n')
  })

  test('loads TypeScript, and passes if the machines behave alike', async () => {
    const cwd = await folder(files)
    const { code, out } = await cli(['diff', 'after.mjs', 'after.ts'], { cwd })
    expect({ code, out }).toEqual({
      code: 0,
      out: 'The machines behave the same in all 2 pairs of states.\n',
    })
  })

  test('uses the events of either module; without any, each event once, with a note', async () => {
    const cwd = await folder(files)
    const one = await cli(['diff', 'bare.mjs', 'after.mjs'], { cwd })
    expect({ code: one.code, err: one.err }).toEqual({ code: 1, err: '' })
    expect(one.out).toContain('a kick')
    const none = await cli(['diff', 'bare.mjs', 'bare.mjs'], { cwd })
    expect(none.code).toBe(0)
    expect(none.err).toContain("'bare.mjs' exports no alphabet")
  })

  test('draws the difference', async () => {
    const cwd = await folder(files)
    const { code } = await cli(['diff', 'before.mjs', 'after.mjs', '--format', 'svg', '--out', 'd.svg'], {
      cwd,
    })
    expect(code).toBe(1)
    const svg = await readFile(join(cwd, 'd.svg'), 'utf8')
    expect(svg).toContain('<svg role="img" aria-label="difference"')
    for (const word of ['before: a kick', 'after: a kick', 'broken (done)', 'open'])
      expect(svg.replaceAll('&#160;', ' ')).toContain(word)
    const { out } = await cli(['diff', 'before.mjs', 'after.mjs', '-f', 'mermaid'], { cwd })
    expect(out).toMatch(/^stateDiagram-v2\n/)
    expect(out).toMatch(/before#58; a kick/)
  })

  test('prints JSON without snapshots, and its limits', async () => {
    const cwd = await folder(files)
    const { out, err } = await cli(['diff', 'before.mjs', 'after.mjs', '-f', 'json', '--limit', '1'], { cwd })
    expect(err).toContain('Stopped at the limit of 1 states')
    const diff = JSON.parse(out) as { differences: { before: { steps: object[] } }[] }
    expect(diff).toMatchObject({ pairs: 1, bounded: expect.stringContaining('limit') })
    const whole = JSON.parse(
      (await cli(['diff', 'before.mjs', 'after.mjs', '-f', 'json'], { cwd })).out,
    ) as typeof diff
    expect(whole.differences[0]?.before.steps[1]).toEqual({
      event: { type: 'KICK', force: 5 },
      label: 'a kick',
      state: { value: 'broken', status: 'done' },
      transitions: ['closed: KICK → broken'],
    })
  })

  test('writes tests that the changed machine fails', async () => {
    const cwd = await folder(files)
    const { err } = await cli(['diff', 'before.mjs', 'after.mjs', '--emit', 'tests'], { cwd })
    expect(err).toBe('Wrote 1 test to tests/door.diff.test.js\n')
    const text = await readFile(join(cwd, 'tests/door.diff.test.js'), 'utf8')
    expect(text).toContain(`import machine from "../after.mjs"`)
    expect(text).toContain('state: {"value":"broken","status":"done"}')
  })

  test.each([
    [['before.mjs'], /AFTER is missing/],
    [['before.mjs', 'after.mjs', 'bare.mjs'], /Unexpected argument 'bare.mjs'/],
    [['before.mjs', 'gone.mjs'], /there is no file 'gone.mjs'/],
    [['before.mjs', 'none.mjs'], /'none.mjs' exports answer\. Export a machine/],
    [['damaged.mjs', 'after.mjs'], /'damaged.mjs' cannot be loaded: SyntaxError/],
    [
      ['before.mjs', 'after.mjs', '-f', 'png'],
      /--format must be one of text, json, svg, mermaid \(got 'png'\)/,
    ],
    [['before.mjs', 'after.mjs', '--limit', '0'], /--limit must be a whole number of at least 1/],
    [['before.mjs', 'after.mjs', '--out', 'no/such/file'], /--out: there is no folder for 'no\/such\/file'/],
  ])('%j is refused in one sentence', async (args, pattern) => {
    const cwd = await folder(files)
    const { code, err } = await cli(['diff', ...args], { cwd })
    expect(code).toBe(2)
    expect(err).toMatch(pattern)
    expect(err).not.toMatch(/\n\s+at /)
  })
})
