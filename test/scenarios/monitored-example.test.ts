import { ChildProcess } from 'node:child_process'
import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as memory from '../../src/memory/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'

interface Monitored {
  monitoredAgent: (models: { model: core.ModelProvider; guardModel: core.ModelProvider }) => core.Agent
  monitoredSession: (tell: (step: core.StepStarted | core.StepCompleted) => void) => Promise<core.RunResult[]>
}

interface Limits {
  timeoutMs?: number
  memoryMb?: number
  maxBytes?: number
}

interface RunCode {
  runCode: (limits: Limits) => core.Tool
}

const stages: rehearsal.Rehearsal[] = []

async function startRehearsal(options: rehearsal.RehearsalOptions) {
  const started = await rehearsal.startRehearsal(options)
  stages.push(started)
  return started
}

jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
jest.unstable_mockModule('statewright/memory', () => ({ ...memory }), { virtual: true })
jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal, startRehearsal }), { virtual: true })

const folder = '../../examples'
const { monitoredAgent, monitoredSession } = (await import(`${folder}/monitored-session.mjs`)) as Monitored
const { runCode } = (await import(`${folder}/run-code.mjs`)) as RunCode

afterEach(async () => {
  await Promise.all(stages.splice(0).map((started) => started.close()))
})

describe('examples/monitored-session.mjs', () => {
  it('answers one turn with the tool, blocks the next, and prints every step with its payload', async () => {
    const events: (core.StepStarted | core.StepCompleted)[] = []
    const results = await monitoredSession((step) => events.push(step))

    expect(results).toMatchObject([
      { state: 'COMPLETED', reason: 'end_turn', output: expect.stringContaining('the median is 10') },
      { state: 'BLOCKED', reason: 'shield', steps: 0 },
    ])
    const violation = 'Llama Guard found the text unsafe: Code Interpreter Abuse.'
    expect(results[1]?.messages.at(-1)).toMatchObject({ role: 'assistant', content: violation })

    const completed = events.filter((step) => step.type === 'step_completed')
    expect(completed).toMatchObject([
      { stepType: 'shield_call', point: 'input', payload: { violation: null } },
      { stepType: 'inference', payload: { modelResponse: { finishReason: 'tool_calls' } } },
      { stepType: 'shield_call', point: 'output', payload: { violation: null } },
      {
        stepType: 'tool_execution',
        payload: {
          toolCall: { function: { name: 'run_code' } },
          toolResponse: { status: 'ok', content: '101\n' },
        },
      },
      { stepType: 'inference', payload: { modelResponse: { finishReason: 'stop' } } },
      { stepType: 'shield_call', point: 'output', payload: { violation: null } },
      {
        stepType: 'shield_call',
        point: 'input',
        payload: { violation: { action: 'block', message: violation, shields: ['llama-guard'] } },
      },
    ])
    const started = events.filter(({ type }) => type === 'step_started')
    expect(started.map(({ stepId }) => stepId)).toEqual(completed.map(({ stepId }) => stepId))

    const bodies = stages.flatMap(({ requests }) =>
      requests.filter(({ scenario }) => scenario === 'programmer'),
    )
    expect(bodies).toHaveLength(2)
    for (const { body } of bodies)
      expect(body).toMatchObject({ temperature: 0.7, top_p: 0.95, max_tokens: 2_048 })
  })

  it('calls the model at most five times a turn', async () => {
    const turn = { toolCalls: [{ name: 'run_code', arguments: { code: 'console.log(1)' } }] }
    const { url, requests } = await startRehearsal({
      scenarios: {
        programmer: { turns: [turn], onExhausted: 'loop' },
        guard: { turns: [{ text: 'safe' }], onExhausted: 'loop' },
      },
    })
    const model = (name: string) => core.openaiChat({ model: `rehearsal/${name}`, baseURL: url })
    const agent = monitoredAgent({ model: model('programmer'), guardModel: model('guard') })
    expect(await agent.run('Go on.').result).toMatchObject({ state: 'MAX_STEPS', steps: 5 })
    expect(requests.filter(({ scenario }) => scenario === 'programmer')).toHaveLength(5)
  })
})

describe('examples/run-code.mjs', () => {
  const kill = jest.spyOn(ChildProcess.prototype, 'kill')
  beforeEach(() => kill.mockClear())

  /** The tool's return value, or the error that it throws. */
  const outcome = async (code: string, limits: Limits = {}, signal = new AbortController().signal) => {
    const execution = { signal } as core.ToolExecution
    return await Promise.resolve(runCode(limits).execute?.({ code }, execution)).catch(
      (error: unknown) => error,
    )
  }
  const failed = (message: RegExp) =>
    expect.objectContaining({ code: 'failed', message: expect.stringMatching(message) }) as unknown

  it('kills an endless loop, even one that ignores signals', async () => {
    const code = "process.on('SIGTERM', () => {}); for (;;);"
    const error = await outcome(code, { timeoutMs: 500 })
    expect(error).toEqual(failed(/^It took longer than 500 ms and was killed\.$/))
    expect(kill.mock.contexts).toMatchObject([{ signalCode: 'SIGKILL' }])
  })

  it('ends a program that exceeds its memory limit', async () => {
    const code = 'const hoard = []; for (;;) hoard.push(new Array(10_000).fill(0.5))'
    const error = await outcome(code, { memoryMb: 16, timeoutMs: 15_000 })
    expect(error).toEqual(failed(/^It needed more than 16 MB, and died\.$/))
  })

  it('truncates the output of a program that prints endlessly, and kills it', async () => {
    const code = "for (;;) await new Promise((done) => process.stdout.write('12345678\\n', done))"
    const error = await outcome(code, { maxBytes: 20, timeoutMs: 15_000 })
    expect(error).toEqual(failed(/^It printed more than 20 bytes and .*:\n12345678\n12345678\n12$/))
  })

  it('kills the program when the run is cancelled', async () => {
    const cancelled = new AbortController()
    const code = "process.on('SIGTERM', () => {}); for (;;);"
    const ended = outcome(code, { timeoutMs: 15_000 }, cancelled.signal)
    cancelled.abort()
    expect(await ended).toMatchObject({ name: 'AbortError' })
    expect(kill.mock.contexts).toMatchObject([{ signalCode: 'SIGKILL' }])
  })

  it.each([
    ['starts processes', "import { spawn } from 'node:child_process'; spawn('node')"],
    ['reads files', "import { readFileSync } from 'node:fs'; readFileSync(process.execPath)"],
  ])('fails a program that %s', async (_, code) => {
    expect(await outcome(code)).toEqual(failed(/^It failed with exit code 1\.[^]*ERR_ACCESS_DENIED/))
  })

  it('gives a program neither input nor environment, for any program text', async () => {
    const code = '-1; for await (const line of process.stdin) console.log(line); console.log(process.env)'
    expect(await outcome(code)).toBe('{}\n')
  })
})
