import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { type AgentContext, type AgentEvent, createAgent, type Run, defineShield } from '../../src/index.js'
import { clientTool, tool } from '../support/tools.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { lines, openStepsOf } from '../support/steps.js'
import { sampled } from '../support/extent.js'

/** One run with every pending operation under the test's control. */
class World {
  readonly model = new ManualModel()
  readonly clock = new SimulatedClock()
  readonly events: AgentEvent[] = []
  readonly run: Run
  #waiting: ((fails: boolean) => void)[] = []
  #ids = 0

  constructor() {
    const shield = defineShield({
      name: 'shield',
      check: async () => {
        await this.#wait()
        return { action: 'allow' }
      },
    })
    const agent = createAgent({
      model: this.model,
      clock: this.clock,
      interactive: true,
      limits: { maxSteps: 5, timeoutMs: 30_000, onLimit: 'conclude' },
      toolCalls: { concurrency: 2 },
      shields: { input: [shield], toolInput: [shield], toolOutput: [shield], output: [shield] },
      memory: { retrieve: () => this.#wait().then(() => []) },
      tools: [
        tool('plain', () => this.#wait()),
        tool('risky', () => this.#wait(), { needsApproval: true }),
        clientTool('client'),
      ],
    })
    this.run = agent.run('Go.')
    this.run.events$.subscribe((event) => {
      this.events.push(event)
    })
  }

  moves(): (() => void)[] {
    const { run, model } = this
    if (this.events.some(({ type }) => type === 'run_ended')) return [() => undefined]
    const moves = this.#waiting.flatMap((end, i) => {
      const once = (fails: boolean) => () => {
        this.#waiting = this.#waiting.filter((_, j) => j !== i)
        end(fails)
      }
      return [...Array.from({ length: 7 }, () => once(false)), once(true)]
    })
    const { pending } = model
    if (pending) {
      const findRequests = (...names: string[]) =>
        names.map((name) => ({
          id: `c${++this.#ids}`,
          type: 'function' as const,
          function: { name, arguments: '{}' },
        }))
      moves.push(
        () => pending.answer({ text: 'Done.' }),
        () => pending.answer({ toolCalls: findRequests('plain', 'plain', 'plain'), text: 'Working.' }),
        () => pending.answer({ toolCalls: findRequests('plain', 'risky', 'client', 'nowhere') }),
        () => pending.fail(),
        () => pending.fail({ kind: 'fatal', code: 'invalid_api_key' }),
      )
    }
    const { state, calls: open } = (run.snapshot() as { context: AgentContext }).context
    if (state === 'PAUSED') moves.push(() => run.resume())
    else moves.push(() => run.pause())
    if (state === 'WAITING_FOR_INPUT') {
      for (const { id, needs, result } of open) {
        if (result !== undefined) continue
        if (needs === 'client') moves.push(() => run.addToolOutput(id, 'out'))
        if (needs === 'approval') moves.push(() => run.approve(id))
      }
      if (open.length === 0) moves.push(() => run.reply('And now?'))
    }
    moves.push(() => this.clock.increment(1_000))
    return moves
  }

  #wait(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting.push((fails) => {
        if (fails) reject(new Error('broken'))
        else resolve('done')
      })
    })
  }
}

test('each started step is completed once, before the run ends, in any run', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(10_000), { maxLength: 60, size: 'max' }), async (choices) => {
      const world = new World()
      await settled()
      for (const choice of choices) {
        const moves = world.moves()
        moves[choice % moves.length]?.()
        await settled()
        openStepsOf(world.events)
      }
      world.run.cancel()
      await settled()
      expect(openStepsOf(world.events)).toEqual([])
      expect(world.events.at(-1)?.type).toBe('run_ended')
      for (const line of lines(world)) seen.add(line)
    }),
    // A fixed seed, because a few random runs might miss some states.
    { numRuns: sampled(200), ...(sampled(200) < 200 && { seed: 1 }) },
  )
  // The runs visited every state that has steps.
  for (const outcome of ['ok', 'cancelled']) {
    expect([...seen]).toContain(`inference ${outcome}`)
    expect([...seen]).toContain(`tool_execution ${outcome}`)
  }
}, 60_000)
