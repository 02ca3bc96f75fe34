import { createDemoScenario, createDemoTools, demoPrompt } from '../../src/cli/demo.js'
import { createAgent, memoryStore, openaiChat } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { cli, removeFolders } from './support.js'

afterEach(removeFolders)

/** The demo at a terminal, with an answer to its question. */
async function atTerminal(answer: string) {
  let isAnswered = false
  return cli(['run', '--rehearsal'], {
    tty: true,
    env: { NO_COLOR: '1' },
    onOutput: (text, { stdin }) => {
      if (isAnswered || !text.includes('(e)dit')) return
      isAnswered = true
      stdin.write(answer)
      stdin.end()
    },
  })
}

describe('statewright run --rehearsal', () => {
  test('shows a retry, parallel calls, a limit and an approval, with its table rendered', async () => {
    const { code, out } = await atTerminal('y\n')
    expect(code).toBe(0)
    expect(out).toMatch(/↻ rate_limit_exceeded/)
    expect(out.match(/→ read_file/g)).toHaveLength(3)
    expect(out.match(/pay\(/g)).toHaveLength(1)
    expect(out).toContain('Run pay(invoice: "2025-034", amount: 814.5)? (y)es, (n)o, (e)dit: ')
    expect(out).toMatch(/✓ pay .*no money was moved/)
    expect(out).toContain('Invoice 2025-034 is paid.')
    expect(out).toContain('! budget  The budget is nearly used up')
    expect(out).toContain('\nTeam offsite     3,851.70\n')
    expect(out).toMatch(/tokens {2}[\d,]+ of 6,000/)
    expect(out).not.toMatch(/\*\*|\| ---/)
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
  })

  test('pays nothing if the user declines', async () => {
    const { code, out } = await atTerminal('n\n\n')
    expect(code).toBe(0)
    expect(out).toContain('I have not paid invoice 2025-034.')
    expect(out).not.toContain('✓ pay')
  })

  test('answers its own question without a terminal, and prints raw Markdown to a pipe', async () => {
    const { code, out } = await cli(['run', '--rehearsal'])
    expect(code).toBe(0)
    expect(out).toContain('Without a terminal, the demo approves its own call.')
    expect(out.match(/→ pay\(/g)).toHaveLength(1)
    expect(out).toContain('Invoice 2025-034 is paid.')
    expect(out).toContain('| Team offsite | 3,851.70 |')
  })

  test('prints only data to stdout with --json', async () => {
    const { code, out, err } = await cli(['run', '--rehearsal', '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ state: 'COMPLETED' })
    expect(err).toContain('the demo approves its own call.')
  })

  test('plays on in a fork, after the run has ended, too', async () => {
    const rehearsal = await startRehearsal({ scenario: createDemoScenario(), strict: true })
    const model = openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' })
    const agent = createAgent({ model, store: memoryStore(), tools: createDemoTools() })
    const run = agent.run(demoPrompt, { session: 'demo' })
    const { pending = [] } = await run.result
    for (const call of pending) run.approve(call)
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    // Record 4 is the result of list_files, so that each fork needs every later answer.
    const fork = await agent.fork('demo', 4)
    for (const session of [fork, await agent.fork(fork, 2)]) {
      const again = await agent.resume(session)
      expect((await again.result).pending).toMatchObject([{ name: 'pay' }])
    }
    await rehearsal.close()
  })

  test('declines an unknown question', async () => {
    const { code, out } = await cli(['run', '--rehearsal', 'Book me a train to Geneva'])
    expect(code).toBe(0)
    expect(out).toContain('I am a script, not a model')
    expect(out).not.toMatch(/→|Lisbon/)
  })
})
