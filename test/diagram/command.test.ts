import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { cli, folder } from '../cli/support.js'

const xstate = pathToFileURL(createRequire(import.meta.url).resolve('xstate')).href
const light = `import xstate from '${xstate}'
export default xstate.createMachine({ id: 'light', initial: 'red', states: { red: { on: { GO: 'green' } }, green: { type: 'final' } } })`

describe('statewright diagram', () => {
  it('draws the agent machine as SVG on stdout', async () => {
    const { code, out, err } = await cli(['diagram'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/<svg [^>]*aria-label="agent"/)
    expect(out).toContain('>judgingCalls</text>')
  })

  it.each([
    ['mermaid', /^stateDiagram-v2\n/],
    ['json', /^{\n {2}"id": "agent"/],
    ['stately', /^import \{ createMachine \} from 'xstate'\n/],
    ['scxml', /^<\?xml .*\n<scxml /],
  ])('writes %s', async (format, beginning) => {
    const { code, out } = await cli(['diagram', '--format', format])
    expect(code).toBe(0)
    expect(out).toMatch(beginning)
  })

  it('draws the machine that a module exports, into a file', async () => {
    const cwd = await folder({ 'light.mjs': light })
    const outcome = await cli(['diagram', 'light.mjs', '-o', 'light.svg'], { cwd })
    expect(outcome).toEqual({ code: 0, out: '', err: '' })
    expect(await readFile(join(cwd, 'light.svg'), 'utf8')).toContain('>green</text>')
  })

  it('uses the only machine of a module without a default export', async () => {
    const cwd = await folder({ 'light.mjs': light.replace('export default', 'export const light =') })
    expect((await cli(['diagram', 'light.mjs', '-f', 'mermaid'], { cwd })).out).toContain(
      's_red --> s_green : GO',
    )
  })

  it('draws the machine of a TypeScript module, with its imports', async () => {
    const cwd = await folder({
      'light.ts': `import { createMachine } from '${xstate}'
        import { Color, type Go } from './color.js'
        export default createMachine({
          id: 'light', types: {} as { events: Go }, initial: Color.Red,
          states: { red: { on: { GO: Color.Green } }, green: { type: 'final' } },
        })`,
      'color.ts': `export enum Color { Red = 'red', Green = 'green' }
        export type Go = { type: 'GO' }`,
    })
    const { code, out, err } = await cli(['diagram', 'light.ts', '-f', 'mermaid'], { cwd })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('s_red --> s_green : GO')
    expect(await cli(['paths', 'light.ts'], { cwd })).toMatchObject({
      code: 0,
      out: expect.stringContaining('1 of 1 transitions'),
    })
  })

  it('shows a coverage', async () => {
    const coverage = { machine: 'light', transitions: [{ id: 'red: GO → green', count: 3 }] }
    const cwd = await folder({ 'light.mjs': light, 'c.json': coverage })
    expect((await cli(['diagram', 'light.mjs', '--coverage=c.json'], { cwd })).out).toContain('>3×<')
  })

  it('draws one compound state, or an overview', async () => {
    expect((await cli(['diagram', '--state', 'WAITING_FOR_INPUT'])).out).not.toContain('>accounting</text>')
    expect((await cli(['diagram', '--overview'])).out).toContain('agent, overview')
    const ofRunning = (await cli(['diagram', '--overview', '--state', 'RUNNING'])).out
    expect(ofRunning).toContain('RUNNING, overview')
    expect(ofRunning).toContain('requesting · backingOff · concluding · screeningOutput')
  })

  it.each([
    [['--format', 'png'], /--format must be one of svg, mermaid, json, stately, scxml \(got 'png'\)/],
    [['a.mjs', 'b.mjs'], /Unexpected argument 'b.mjs'. Usage: statewright diagram \[MODULE\]/],
    [['--format', 'json', '--overview'], /--overview needs --format svg\./],
    [
      ['--overview', '--coverage'],
      /--overview and --coverage cannot be combined\. An overview does not show individual transitions/,
    ],
    [['--overview', '--state', 'PAUSED'], /'PAUSED' is not a state with nested states/],
    [
      ['--state', 'NOWHERE'],
      /'NOWHERE' is not a state with nested states. States with nested states: RUNNING, /,
    ],
    [['missing.mjs'], /there is no file 'missing.mjs'/],
    [['none.mjs'], /'none.mjs' exports nothing. Export a machine: export default createMachine/],
    [['text.mjs'], /'text.mjs': Expected an XState v5 state machine, but found a string/],
    [['light.mjs', '--coverage'], /--coverage explores only the agent machine/],
    [['--coverage=missing.json'], /--coverage: there is no file 'missing.json'/],
    [['--coverage=text.mjs'], /--coverage: 'text.mjs' is not valid JSON/],
    [['--coverage=other.json'], /to the machine 'light', not to 'agent'/],
    [['--out', 'no/such/folder.svg'], /--out: there is no folder for 'no\/such\/folder.svg'/],
  ])('%j is refused in one sentence', async (args, message) => {
    const other = { machine: 'light', transitions: [] }
    const cwd = await folder({
      'none.mjs': '',
      'text.mjs': `export default 'x'`,
      'light.mjs': light,
      'other.json': other,
    })
    const { code, out, err } = await cli(['diagram', ...args], { cwd })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toMatch(message)
    expect(err).not.toMatch(/\n\s+at /)
  })
})
