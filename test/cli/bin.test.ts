import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { folder, removeFolders } from './support.js'
import { longTest } from '../support/extent.js'

/** The built command in a separate process, with real signals, pipes and exit codes. */
const bin = join(process.cwd(), 'dist/src/cli/main.js')
const isBuilt = existsSync(bin)
if (!isBuilt) process.stderr.write('test/cli/bin.test.ts is skipped: run npm run build first.\n')
const whenBuilt = isBuilt ? describe : describe.skip

afterEach(removeFolders)

interface Ended {
  code: number | null
  out: string
  err: string
}

function run(
  args: string[],
  cwd: string,
  onText?: (text: string, child: ReturnType<typeof spawn>) => unknown,
) {
  return command(['run', ...args], cwd, onText)
}

/** For NODE_OPTIONS: simulates a missing jiti. */
const withoutJiti = `--import=data:text/javascript,${encodeURIComponent(
  `import { register } from 'node:module'
   register('data:text/javascript,' + encodeURIComponent(\`export async function resolve(name, context, next) {
     if (name === 'jiti') throw Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' })
     return next(name, context)
   }\`))`,
)}`

/** The folder is the user's home. */
function command(
  args: string[],
  cwd: string,
  onText?: (text: string, child: ReturnType<typeof spawn>) => unknown,
  env: Record<string, string> = {},
) {
  const { PATH } = process.env
  const child = spawn(process.execPath, [bin, ...args], {
    cwd,
    env: { PATH, HOME: cwd, XDG_DATA_HOME: cwd, LOCALAPPDATA: cwd, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => {
    ended.out += chunk.toString()
    onText?.(chunk.toString(), child)
  })
  child.stderr.on('data', (chunk: Buffer) => {
    ended.err += chunk.toString()
  })
  return new Promise<Ended>((resolve) => child.on('close', (code) => resolve({ code, ...ended })))
}

const hanging = { turns: [{ text: 'Let me think about that for a while.', hang: 1 }] }

whenBuilt('the statewright command', () => {
  test('returns the exit code, and loads a tools module', async () => {
    const toolCalls = [{ name: 'days_between', arguments: { from: '2025-01-01', to: '2025-12-31' } }]
    const cwd = await folder({
      'play.json': { turns: [{ toolCalls }, { text: '364', expect: { toolResultsInclude: ['364'] } }] },
    })
    const { code, out, err } = await run(
      ['--rehearsal', 'play.json', '-t', join(process.cwd(), 'examples/tools.mjs')],
      cwd,
    )
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/✓ days_between \d+ ms {2}364/)
  })

  test('Ctrl-C cancels the run, shows its state, and exits with 130', async () => {
    const cwd = await folder({ 'play.json': hanging })
    const { code, out, err } = await run(['--rehearsal', 'play.json'], cwd, (text, child) => {
      if (text.includes('Let me')) child.kill('SIGINT')
    })
    expect({ code, err }).toEqual({ code: 130, err: '' })
    expect(out).toContain('CANCELLED · cancelled')
  })

  longTest('a killed run is interrupted, and resume continues it', async () => {
    const slow = `
      import { defineTool } from ${JSON.stringify(join(process.cwd(), 'dist/src/index.js'))}
      const execute = async () => {
        await new Promise((resolve) => { process.stdout.write('at work'); setTimeout(resolve, 60_000) })
      }
      export default [defineTool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute, readOnly: true })]`
    const cwd = await folder({
      'play.json': { turns: [{ toolCalls: [{ name: 'look' }] }] },
      'end.json': { turns: [{ text: 'All done.', expect: { toolResultsInclude: ['seen'] } }] },
      'slow.mjs': slow,
      'quick.mjs': slow.replace(/await new .*/, "return 'seen'"),
    })
    const killed = await run(
      ['--rehearsal=play.json', '-t', 'slow.mjs', '--session', 's', 'Go'],
      cwd,
      (text, child) => {
        if (text.includes('at work')) child.kill('SIGKILL')
      },
    )
    expect(killed.code).toBeNull()
    const listed = await command(['sessions', 'list', '--json'], cwd)
    expect(JSON.parse(listed.out)).toMatchObject({ id: 's', state: 'interrupted', holder: null })
    const { code, out } = await command(['resume', 's', '--rehearsal=end.json', '-t', 'quick.mjs'], cwd)
    expect(out).toMatch(/✓ look[^]*All done\.[^]*COMPLETED/)
    expect(code).toBe(0)
  })

  describe('SIGTERM', () => {
    /** A slow tool that records each execution. */
    const slow = (ms: number) => `
      import { appendFileSync } from 'node:fs'
      import { defineTool } from ${JSON.stringify(join(process.cwd(), 'dist/src/index.js'))}
      const input = { type: 'object' }
      const execute = async () => {
        appendFileSync('paid.txt', 'paid ')
        process.stdout.write('at work')
        await new Promise((resolve) => setTimeout(resolve, ${ms}))
        return 'seen'
      }
      export default [
        defineTool({ name: 'pay', description: 'Pays.', input, execute }),
        defineTool({ name: 'ask', description: 'Asks.', input, execute, needsApproval: true }),
      ]`
    const end = { turns: [{ text: 'All done.', expect: { toolResultsInclude: ['seen'] } }] }
    const paying = { turns: [{ toolCalls: [{ name: 'pay' }] }, ...end.turns] }
    const args = ['--rehearsal=play.json', '-t', 'slow.mjs', '--session', 's']
    const onWork = (text: string, child: ReturnType<typeof spawn>) => {
      if (text.includes('at work')) child.kill('SIGTERM')
    }

    longTest('leaves a run at its next durable point, and the printed command continues it', async () => {
      const cwd = await folder({ 'play.json': paying, 'end.json': end, 'slow.mjs': slow(300) })
      const { code, err } = await run([...args, '--drain', '0', 'Go'], cwd, onWork)
      expect(err).toContain('the run was released and can be resumed.\nContinue with: statewright resume s')
      expect(code).toBe(143)
      const listed = await command(['sessions', 'list', '--json'], cwd)
      expect(JSON.parse(listed.out)).toMatchObject({ id: 's', state: 'interrupted', holder: null })
      const resumed = await command(['resume', 's', '--rehearsal=end.json', '-t', 'slow.mjs'], cwd)
      expect(resumed.out).toMatch(/All done\.[^]*COMPLETED/)
      // The process waited for a call that must not run twice.
      expect(await readFile(join(cwd, 'paid.txt'), 'utf8')).toBe('paid ')
    })

    longTest('lets a run end within --drain', async () => {
      const cwd = await folder({ 'play.json': paying, 'slow.mjs': slow(200) })
      const { code, out, err } = await run([...args, 'Go'], cwd, onWork)
      expect(err).toContain('the run continues for at most 20 s')
      expect(out).toContain('COMPLETED')
      expect(code).toBe(0)
    })

    longTest('ends a resting run, and prints what it waits for', async () => {
      const turns = [{ toolCalls: [{ name: 'pay' }, { name: 'ask' }] }, { text: 'Done.' }]
      const cwd = await folder({ 'play.json': { turns }, 'slow.mjs': slow(200) })
      const { code, err } = await run([...args, 'Go'], cwd, onWork)
      expect(err).toMatch(/the run is waiting: ask[^]*\nContinue with: statewright resume s --approve/)
      expect(code).toBe(4)
    })

    longTest('ends it immediately when it is sent twice', async () => {
      const cwd = await folder({ 'play.json': paying, 'slow.mjs': slow(60_000) })
      const { code } = await run([...args, 'Go'], cwd, (text, child) => {
        child.stderr?.once('data', () => child.kill('SIGTERM'))
        onWork(text, child)
      })
      expect(code).toBe(143)
    })

    longTest('cancels a run whose session is not stored', async () => {
      const cwd = await folder({ 'play.json': hanging })
      const { code, out } = await run(['--rehearsal', 'play.json'], cwd, (text, child) => {
        if (text.includes('Let me')) child.kill('SIGTERM')
      })
      expect(out).toContain('CANCELLED · cancelled')
      expect(code).toBe(130)
    })
  })

  test('a second Ctrl-C exits immediately, whatever is running', async () => {
    const stuck = `
      process.on('SIGINT', () => process.stdout.write('still here'))
      setInterval(() => process.stdout.write(''), 1000)
      process.stdout.write('stuck')
      await new Promise(() => {})`
    const cwd = await folder({ 'stuck.mjs': stuck })
    const { code, out } = await run(['--rehearsal', '-t', 'stuck.mjs'], cwd, (_text, child) =>
      child.kill('SIGINT'),
    )
    expect(out).toBe('stuckstill here')
    expect(code).toBe(130)
  })

  longTest('a reader that closes the pipe causes no crash', async () => {
    const turns = [{ text: 'on and on '.repeat(100), chunkSize: 1, chunkDelayMs: 5 }]
    const cwd = await folder({ 'play.json': { turns } })
    const { code, err } = await run(['--rehearsal', 'play.json'], cwd, (_text, child) =>
      child.stdout?.destroy(),
    )
    expect(err).toBe('')
    expect(code).toBe(130)
  })

  longTest('TypeScript that Node cannot load itself names the required package', async () => {
    const cwd = await folder({
      'package.json': { type: 'module' },
      'enum.ts': 'export enum Color { Red }',
      'sibling.ts': `import './other.js'`,
      'other.ts': 'export const n: number = 1',
      'lost.mjs': `import './nowhere.js'`,
    })
    const readOutput = async (file: string) => {
      const { code, err } = await command(['diagram', file], cwd, undefined, { NODE_OPTIONS: withoutJiti })
      return `${code} ${err}`
    }
    const remedy = 'Run npm install jiti, or pass a compiled .js file.'
    expect(await readOutput('enum.ts')).toContain(remedy)
    expect(await readOutput('sibling.ts')).toContain(remedy)
    expect(await readOutput('lost.mjs')).not.toContain('jiti')
    expect(await readOutput('enum.ts')).toMatch(
      /^2 statewright: 'enum.ts' cannot be loaded: Node \d+\.\d+\.\d+ (only strips types|does not load TypeScript on its own)/,
    )
  })

  longTest('a module whose top-level await never settles is reported, instead of hanging', async () => {
    const cwd = await folder({ 'stuck.mjs': 'await new Promise(() => {})' })
    const { code, err } = await run(['--rehearsal', '-t', 'stuck.mjs'], cwd)
    expect(code).toBe(1)
    expect(err).toMatch(/^statewright: the run hangs/)
  })
})
