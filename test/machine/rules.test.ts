import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { z } from 'zod'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import { createAgent, defineTool, memoryJournal, type Run, ToolError } from '../../src/index.js'
import { findHistoryProblem } from '../support/history.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { fold } from '../support/fold.js'
import { sampled } from '../support/extent.js'

/** One run with a random user, a random model and random tools. */
class World {
  readonly model = new ManualModel()
  readonly clock = new SimulatedClock()
  readonly journal = memoryJournal()
  readonly events: AgentEvent[] = []
  readonly tools: { resolve(value: string): void; reject(error: Error): void; signal: AbortSignal }[] = []
  toolStarts = 0
  readonly run: Run
  #ids = 0

  constructor(options: { interactive: boolean; conclude: boolean; timeoutMs: number }) {
    const execute = (_input: object, { signal }: { signal: AbortSignal }): Promise<string> => {
      this.toolStarts++
      return new Promise((resolve, reject) => {
        this.tools.push({ resolve, reject, signal })
      })
    }
    const input = z.object({ n: z.number().optional() })
    const agent = createAgent({
      model: this.model,
      clock: this.clock,
      interactive: options.interactive,
      limits: {
        maxSteps: 6,
        timeoutMs: options.timeoutMs,
        tokenBudget: 400,
        onLimit: options.conclude ? 'conclude' : 'stop',
      },
      tools: [
        defineTool({ name: 'plain', description: 'Runs.', input, execute }),
        defineTool({ name: 'risky', description: 'Needs approval.', input, execute, needsApproval: true }),
        defineTool({ name: 'client', description: 'Runs at the client.', input, client: true }),
      ],
    })
    this.run = agent.run('Go.', { journal: this.journal })
    this.run.events$.subscribe((event) => {
      this.events.push(event)
    })
  }

  /** The possible events. */
  moves(): (() => void)[] {
    const { run, model } = this
    const moves: (() => void)[] = [() => this.clock.increment(50), () => this.clock.increment(5000)]
    const { pending } = model
    if (pending) {
      const calls = (...names: string[]) =>
        names.map((name) => call(`c${++this.#ids}`, name, { n: this.#ids % 3 }))
      moves.push(
        () => pending.delta('word '),
        () => pending.answer({ text: 'Done.' }),
        () => pending.answer({ toolCalls: calls('plain'), finishReason: 'tool_calls' }),
        () => pending.answer({ toolCalls: calls('plain', 'risky', 'client', 'risky'), text: 'Working.' }),
        () => pending.answer({ toolCalls: calls('client', 'nowhere') }),
        () => pending.answer({ toolCalls: [call('same', 'plain', {})] }),
        () => pending.answer({ toolCalls: calls('plain', 'plain'), finishReason: 'length' }),
        () => pending.answer({ text: 'cut', finishReason: 'length' }),
        () => pending.answer({}),
        () => pending.answer({ refusal: 'I will not.' }),
        () => pending.answer({ text: 'x', toolCalls: calls('plain'), finishReason: 'content_filter' }),
        () => pending.answer({ text: 'half', finishReason: null, complete: false }),
        () => pending.fail({ partialText: 'half' }),
        () => pending.fail({ kind: 'rate_limit', code: 'http_429', retryAfterMs: 100 }),
        () => pending.fail({ kind: 'fatal', code: 'invalid_api_key' }),
      )
    }
    for (const tool of this.tools) {
      moves.push(
        () => tool.resolve('same result'),
        () => tool.reject(new Error('broken')),
        () => tool.reject(new ToolError('policy_denied', 'never')),
      )
    }
    if (run.state === 'PAUSED')
      moves.push(
        () => run.resume(),
        () => run.steer('Another way.'),
      )
    else if (!this.isOver())
      moves.push(
        () => run.pause(),
        () => run.steer('Hurry.'),
        () => run.cancel(),
      )
    for (const { callId, needs } of this.pendingCalls()) {
      if (needs === 'client') moves.push(() => run.addToolOutput(callId, { ok: true }))
      else
        moves.push(
          () => run.approve(callId),
          () => run.approve(callId, { n: 7 }),
          () => run.reject(callId, 'no'),
        )
    }
    if (this.waitsForMessage()) moves.push(() => run.reply('And now?'))
    return moves
  }

  isOver(): boolean {
    return this.events.some(({ type }) => type === 'run_ended')
  }

  context() {
    return (this.run.snapshot() as { context: ReturnType<typeof fold>['context'] }).context
  }

  pendingCalls() {
    const { state, calls } = this.context()
    if (state !== 'WAITING_FOR_INPUT') return []
    return calls
      .filter(({ result, needs }) => !result && needs !== 'nobody')
      .map(({ id, needs }) => ({ callId: id, needs }))
  }

  waitsForMessage(): boolean {
    const { context, value } = this.run.snapshot() as ReturnType<typeof fold>
    return context.state === 'WAITING_FOR_INPUT' && JSON.stringify(value).includes('message')
  }
}

const worlds = fc.record({
  interactive: fc.boolean(),
  conclude: fc.boolean(),
  timeoutMs: fc.constantFrom(0, 20_000),
  choices: fc.array(fc.nat(10_000), { maxLength: 40 }),
})

describe('the rules of the machine, over random runs', () => {
  it('hold: every event is handled, the history is valid when settled, one terminal event, cancel takes precedence', async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async ({ choices, ...options }) => {
        const world = new World(options)
        await settled()
        for (const choice of choices) {
          const moves = world.moves()
          moves[choice % moves.length]?.()
          await settled()
          checkRest(world)
        }
        await checkCancel(world)
        checkStreams(world.events)
        checkJournal(world)
      }),
      { numRuns: sampled(300) },
    )
  })
})

function checkRest(world: World): void {
  const snapshot = world.run.snapshot() as { status: string; error?: unknown }
  expect(snapshot).not.toMatchObject({ status: 'error' })
  const { state, messages, calls } = world.context()
  if (state === 'RUNNING' || state === 'WAITING_FOR_TOOL') return
  // Open calls are the calls in the waiting state, and approved calls that wait for the others.
  const open = state === 'WAITING_FOR_INPUT' ? calls.filter((call) => !call.result) : []
  expect(
    findHistoryProblem(
      messages,
      open.map(({ id }) => id),
    ),
  ).toBeNull()
}

/** CANCEL reaches CANCELLED from every state. Nothing starts after it, and late results have no effect. */
async function checkCancel(world: World): Promise<void> {
  const wasOver = world.isOver()
  const before = { attempts: world.model.attempts.length, toolStarts: world.toolStarts }
  world.run.cancel()
  const after = JSON.stringify(world.context())
  for (const attempt of world.model.attempts) attempt.answer({ text: 'late' })
  for (const tool of world.tools) tool.resolve('late')
  world.clock.increment(1_000_000)
  await settled()
  expect({ attempts: world.model.attempts.length, toolStarts: world.toolStarts }).toEqual(before)
  expect(JSON.stringify(world.context())).toBe(after)
  const ends = world.events.filter(({ type }) => type === 'run_ended')
  expect(ends).toHaveLength(1)
  if (!wasOver) expect(ends[0]).toMatchObject({ state: 'CANCELLED', reason: 'cancelled' })
  expect(world.events.at(-1)?.type).toBe('run_ended')
  expect(world.events.map(({ seq }) => seq)).toEqual(world.events.map((_, i) => i + 1))
  const { state } = await world.run.result
  const bad = world.events.filter(({ type }) => type === 'error')
  expect(bad).toHaveLength(state === 'COMPLETED' || state === 'CANCELLED' ? 0 : 1)
}

/** One chunk with `finished: true` per stream attempt. A later attempt resets first. */
function checkStreams(events: AgentEvent[]): void {
  const attempts = new Map<string, { finished: number; texts: number; reset: boolean }>()
  for (const event of events) {
    if (event.type !== 'stream_chunk') continue
    const key = `${event.stepId} ${event.attempt}`
    const seen = attempts.get(key) ?? { finished: 0, texts: 0, reset: event.reset === true }
    expect(seen.finished).toBe(0)
    attempts.set(key, { ...seen, finished: seen.finished + (event.finished ? 1 : 0), texts: seen.texts + 1 })
    if (event.attempt > 1) expect(attempts.get(key)?.reset).toBe(true)
  }
  for (const [key, { finished }] of attempts) expect([key, finished]).toEqual([key, 1])
}

/** The event log is the run. It is plain JSON, and folding it produces the same state. */
function checkJournal(world: World): void {
  const stored = JSON.parse(JSON.stringify(world.journal.entries)) as typeof world.journal.entries
  expect(stored).toEqual(world.journal.entries)
  const folded = fold(stored)
  const live = world.run.snapshot() as ReturnType<typeof fold>
  expect(JSON.stringify(folded.value)).toBe(JSON.stringify(live.value))
  expect(JSON.stringify(folded.context)).toBe(JSON.stringify(live.context))
}
