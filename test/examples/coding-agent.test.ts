import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jest } from '@jest/globals'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { longTest, sampledRows } from '../support/extent.js'

/** The example as its own process: it imports the built package, as a reader's copy does. */
const program = join(process.cwd(), 'examples/coding-agent/main.mjs')
const isBuilt = existsSync('dist/src/index.js')
if (!isBuilt)
  process.stderr.write('test/examples/coding-agent.test.ts is skipped: run npm run build first.\n')
const whenBuilt = isBuilt ? describe : describe.skip
/** Runs a program in a terminal of its own. */
const hasScript = spawnSync('script', ['--version']).status === 0

jest.setTimeout(120_000)

let temporary: string
beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'statewright-coding-'))
})
afterEach(async () => {
  await rm(temporary, { recursive: true, force: true })
})

interface Ended {
  code: number | null
  out: string
  folder: string
}

/** `react` is told all output so far, each time that there is more. */
function play(
  args: string[],
  react: (out: string, child: ChildProcess) => void = () => undefined,
  { env = {}, terminal = false }: { env?: Record<string, string>; terminal?: boolean } = {},
): Promise<Ended> {
  const command = terminal
    ? ['script', '-qec', [process.execPath, program, ...args].join(' '), '/dev/null']
    : [process.execPath, program, ...args]
  const child = spawn(command[0] as string, command.slice(1), {
    env: { PATH: process.env.PATH, HOME: temporary, TMPDIR: temporary, ...env },
    stdio: 'pipe',
  })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      react(out, child)
    })
  }
  return new Promise((resolve) =>
    child.on('close', (code) => {
      resolve({ code, out, folder: /Folder: (\S+)/.exec(out)?.[1] ?? '' })
    }),
  )
}

/** Types an answer to each question, in order; a function does something else instead. */
function answers(...args: (string | ((child: ChildProcess) => void))[]) {
  let requestCount = 0
  return (out: string, child: ChildProcess) => {
    if (out.split('Approve?').length - 1 <= requestCount || !out.trimEnd().endsWith('change:')) return
    const answer = args[requestCount]
    requestCount += 1
    if (typeof answer === 'function') answer(child)
    else if (answer !== undefined) child.stdin?.write(`${answer}\n`)
  }
}

const readCode = (folder: string) => readFile(join(folder, 'project/src/duration.mjs'), 'utf8')
const countComments = async (folder: string) =>
  (await readFile(join(folder, 'issues.json'), 'utf8')).split('Only the first unit was read').length - 1

whenBuilt('examples/coding-agent', () => {
  test('fixes the issue with --yes: skill, deferred tools, compaction, a review, and its cost', async () => {
    const { code, out, folder } = await play(['--yes'])
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('COMPLETED') })
    for (const part of [
      '◇ tools  issues_read_issue, issues_comment loaded',
      '✓ load_skill',
      '  ○ fix it',
      '✓ 3/5 fix it → get a review',
      '1 of 2 tests fail.',
      '  -   return Number(match[1]) * units[match[2]]',
      'All 2 tests pass.',
      'messages omitted (summarize)',
      'review › ✓ read_file',
    ])
      expect(out).toContain(part)
    expect(out).toMatch(/ {2}[\d,]+ tokens, \$0\.\d{4}\n/)
    expect(await readCode(folder)).toContain('sum + Number(count)')
    expect(await countComments(folder)).toBe(1)
  })

  longTest('shows each change to a person, who can request another', async () => {
    const { code, out, folder } = await play([], answers('y', 'Keep the old error.'))
    expect({ code, asked: out.split('Approve?').length - 1 }).toEqual({ code: 0, asked: 2 })
    expect(out).toContain('Rejected by the user: Keep the old error.')
    const written = await readCode(folder)
    expect(written).toContain('sum + Number(count)')
    expect(written).not.toContain('test(text)')
  })

  longTest(
    'continues with --resume after kill -9 at work and at a question, and repeats nothing',
    async () => {
      const killed = await play(['--yes'], (out, child) => {
        if (out.includes('review ›')) child.kill('SIGKILL')
      })
      const question = await play(
        ['--resume', killed.folder],
        answers((child) => child.kill('SIGKILL')),
      )
      expect([killed.code, question.code]).toEqual([null, null])
      const { code, out } = await play(['--resume', killed.folder, '--yes'])
      expect({ code, out }).toEqual({
        code: 0,
        out: expect.stringMatching(/COMPLETED · end_turn\n {2}steps {3}12\n/),
      })
      expect(await countComments(killed.folder)).toBe(1)
      const again = await play(['--resume', killed.folder])
      expect(again.out).toContain('COMPLETED: pass another TASK.')
    },
  )

  longTest('ends at a cost limit', async () => {
    const { code, out } = await play(['--yes', '--cost-limit', '0.003'])
    expect({ code, out }).toEqual({ code: 1, out: expect.stringContaining('BUDGET_EXCEEDED') })
  })

  const atTerminal = hasScript ? longTest : test.skip
  atTerminal(
    'at a terminal, Ctrl-C parks it, at work and at a question, and says the command that goes on',
    async () => {
      const press = (child: ChildProcess) => child.stdin?.write('\u0003')
      let isPressed = false
      const parked = await play(
        [],
        (out, child) => {
          if (isPressed || !out.includes('It is a bug')) return
          isPressed = true
          press(child)
        },
        { terminal: true },
      )
      expect(parked.out).toContain(
        `The agent is parked. Continue with:\r\n  node examples/coding-agent/main.mjs --resume ${parked.folder}`,
      )
      expect(parked.out).not.toContain('Approve?')
      const question = await play(['--resume', parked.folder], answers(press), { terminal: true })
      expect(question.out.split('The agent is parked').length - 1).toBe(1)
      const { out } = await play(['--resume', parked.folder, '--yes'])
      expect(out).toContain('COMPLETED')
    },
  )

  longTest('uses the model of --model', async () => {
    const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Nothing to do.' }] } })
    try {
      const env = { OPENAI_API_KEY: 'key', OPENAI_BASE_URL: rehearsal.url }
      const { code, out } = await play(
        ['--model', 'gpt-5-mini', '--cost-limit', '0', 'Look around.'],
        undefined,
        { env },
      )
      expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('Nothing to do.') })
      expect(rehearsal.requests[0]?.body).toMatchObject({ model: 'gpt-5-mini' })
    } finally {
      await rehearsal.close()
    }
  })

  const commands: [string[], number, string][] = [
    [['--help'], 0, '--resume FOLDER'],
    [['--fast'], 2, "Unknown option '--fast'"],
    [['--model', 'gpt-5-mini'], 2, 'Set OPENAI_API_KEY'],
    [['--cost-limit', 'much'], 2, 'limits.costLimit must be an amount in USD'],
  ]
  test.each(sampledRows(commands))('%j exits with %d', async (args, code, part) => {
    expect(await play(args)).toMatchObject({ code, out: expect.stringContaining(part) })
  })

  test('refuses --resume in a folder without a session, with exit code 2', async () => {
    expect(await play(['--resume', join(temporary, 'empty')])).toMatchObject({
      code: 2,
      out: expect.stringContaining("There is no session 'work'"),
    })
  })
})
