import * as fc from 'fast-check'
import { createActor, SimulatedClock } from 'xstate'
import type { StepCompleted, StepStarted } from '../../machines/agent/announcements.js'
import {
  type AgentContext,
  type AgentEvent,
  createAgent,
  type Run,
  defineShield,
  patternShield,
} from '../../src/index.js'
import { memory } from '../../src/memory/index.js'
import { type Play, played, stage, tick } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'
import { ManualModel, settled } from '../support/manual-model.js'

const hide = (word: string) =>
  patternShield({ name: 'hide', patterns: [new RegExp(word, 'g')], action: 'redact' })
const forbid = (word: string) =>
  patternShield({ name: 'forbid', patterns: [new RegExp(word)], action: 'block' })

/** Where the steps of a run begin and end, a line each. */
function lines({ events }: Pick<Play, 'events'>): string[] {
  return events.flatMap((event) => {
    if (event.type !== 'step_started' && event.type !== 'step_completed') return []
    const what = event.stepType === 'shield_call' ? `shield_call ${event.point}` : event.stepType
    return [event.type === 'step_started' ? `${what} …` : `${what} ${event.outcome}`]
  })
}

function completed(play: Play, type: StepCompleted['stepType']): StepCompleted[] {
  return play.of('step_completed').filter(({ stepType }) => stepType === type)
}

/** Waits for a step to start. */
function started(play: Play, type: StepStarted['stepType']): Promise<unknown> {
  return play.event('step_started', ({ stepType }) => stepType === type)
}

/**
 * The steps that the events leave open. Throws where they break the rule: each step that starts is completed exactly
 * once, under the same id, and before the end of the session.
 */
function openStepsOf(events: readonly AgentEvent[]): string[] {
  const open = new Set<string>()
  for (const event of events) {
    if (event.type === 'run_ended' && open.size > 0) throw new Error(`open at the end: ${[...open].join()}`)
    if (event.type !== 'step_started' && event.type !== 'step_completed') continue
    const key = `${event.stepType} ${event.stepId} ${event.stepType === 'inference' ? event.attempt : ''}`
    if (open.has(key) === (event.type === 'step_started'))
      throw new Error(`${event.type} out of turn: ${key}`)
    if (event.type === 'step_started') open.add(key)
    else open.delete(key)
    if (event.type === 'step_completed' && event.completedAt < event.startedAt)
      throw new Error(`${key} ended before it began`)
  }
  return [...open]
}

/** Pending until its signal aborts. */
const forever = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(new Error('stopped'))
    })
  })

const handbook = () => memory({ documents: [{ source: 'leave.md', text: 'Thirty days of leave.' }] })

test('a run with shields, memory and a tool tells its steps in order, each with what came of it', async () => {
  const opened = await stage([call('look', { for: '4711' }), text('Thirty days.')], {
    shields: {
      input: [hide('4712')],
      toolInput: [hide('4711')],
      toolOutput: [forbid('never')],
      output: [forbid('never')],
    },
    memory: handbook(),
    tools: [tool('look', () => 'found')],
  })
  const play = opened.run('How many days of leave?')
  await play.end(2)
  expect(lines(play)).toEqual([
    'shield_call input …',
    'shield_call input ok',
    'memory_retrieval …',
    'memory_retrieval ok',
    'inference …',
    'inference ok',
    'shield_call toolInput …',
    'shield_call toolInput ok',
    'tool_execution …',
    'tool_execution ok',
    'shield_call toolOutput …',
    'shield_call toolOutput ok',
    'inference …',
    'inference ok',
    'shield_call output …',
    'shield_call output ok',
  ])
  const [first, second] = completed(play, 'inference')
  expect(first).toMatchObject({
    attempt: 1,
    payload: {
      modelResponse: {
        text: null,
        toolCalls: null,
        finishReason: 'tool_calls',
        usage: play.of('usage')[0]?.step,
      },
    },
  })
  expect(play.of('usage').map(({ stepId }) => stepId)).toEqual([first?.stepId, second?.stepId])
  expect(completed(play, 'tool_execution')).toMatchObject([
    {
      name: 'look',
      callId: play.of('tool_call')[0]?.call.id,
      payload: {
        toolCall: { id: play.of('tool_call')[0]?.call.id, function: { name: 'look' } },
        toolResponse: { status: 'ok', content: null },
      },
    },
  ])
  const [run] = completed(play, 'tool_execution')
  expect(JSON.stringify(run)).not.toContain('4711')
  expect(run?.stepId.startsWith(`${first?.stepId}.`)).toBe(true)
  expect(completed(play, 'memory_retrieval')).toMatchObject([
    { payload: { retrievedContext: [{ source: 'leave.md' }] } },
  ])
  expect(
    completed(play, 'shield_call').map((step) => 'violation' in step.payload && step.payload.violation),
  ).toEqual([null, { action: 'redact', message: null, shields: ['hide'] }, null, null].map(like))
  for (const step of play.of('step_completed')) {
    const begin = play.of('step_started').find(({ stepId }) => stepId === step.stepId)
    expect(step.startedAt).toBe(begin?.startedAt)
    expect(step.completedAt).toBe(step.at)
  }
})

/** A violation whatever its message says. */
function like(violation: { action: string; shields: string[]; message: null } | null): unknown {
  return violation && expect.objectContaining({ action: violation.action, shields: violation.shields })
}

test('without shields an inference tells its answer, and a tool its result and its progress', async () => {
  const play = await played([call('count', {}, { text: 'Let me see.' }), text('Two.')], {
    tools: [
      tool('count', (_input, { progress }) => {
        progress('half')
        return { rows: 2 }
      }),
    ],
  })
  expect(completed(play, 'inference').map(({ payload }) => payload)).toMatchObject([
    { modelResponse: { text: 'Let me see.' } },
    { modelResponse: { text: 'Two.', toolCalls: [], finishReason: 'stop' } },
  ])
  const [step] = play.of('step_started').filter(({ stepType }) => stepType === 'tool_execution')
  expect(play.of('step_progress')).toMatchObject([
    { stepId: step?.stepId, stepType: 'tool_execution', name: 'count', progress: 'half' },
  ])
  expect(completed(play, 'tool_execution')[0]?.payload).toMatchObject({
    toolResponse: { status: 'ok', content: '{"rows":2}' },
  })
})

test('time is told as it passed', async () => {
  const play = await stage([call('wait'), text('Done.')], {
    tools: [
      tool('wait', () => {
        play.clock.increment(1_500)
        return 'waited'
      }),
    ],
  })
  const run = play.run()
  await run.end(2)
  const [step] = completed(run, 'tool_execution')
  expect((step?.completedAt ?? 0) - (step?.startedAt ?? 0)).toBe(1_500)
})

test('each attempt at an answer is a step: the failed one says why', async () => {
  const play = await stage([{ status: 503 }, text('Hello.')])
  const run = play.run().skipBackOff()
  await run.end(2)
  const steps = completed(run, 'inference')
  expect(steps).toMatchObject([
    { attempt: 1, outcome: 'error', error: { code: 'server_error' }, payload: { modelResponse: null } },
    { attempt: 2, outcome: 'ok', payload: { modelResponse: { text: 'Hello.' } } },
  ])
  expect(steps[0]?.stepId).toBe(steps[1]?.stepId)
  expect(steps[0]).not.toHaveProperty('payload.modelResponse.text')
  expect(steps[1]).not.toHaveProperty('error')
})

test('a call that fails, and one of a tool that does not exist, are steps that end in an error', async () => {
  const play = await played([calls([['break'], ['nowhere']]), text('Sorry.')], {
    tools: [
      tool('break', () => {
        throw new Error('it broke')
      }),
    ],
  })
  expect(
    completed(play, 'tool_execution').map(({ outcome, payload }) => [
      outcome,
      'toolResponse' in payload ? payload.toolResponse?.status : null,
    ]),
  ).toEqual(
    expect.arrayContaining([
      ['error', 'error'],
      ['error', 'unknown_tool'],
    ]),
  )
  expect(openStepsOf(play.events)).toEqual([])
})

test('what never begins has no step: a refused call, a call of the client, a call that a shield blocks', async () => {
  const play = await stage([calls([['ask'], ['there'], ['look', { for: 'bomb' }]]), text('Well.')], {
    tools: [tool('ask', () => 'asked', { needsApproval: true }), clientTool('there'), tool('look')],
    shields: { toolInput: [forbid('bomb')] },
  })
  const run = play.run()
  const { pending = [] } = await run.rest()
  for (const { callId, name } of pending) {
    if (name === 'ask') run.run.reject(callId, 'No.')
  }
  for (const { callId } of (await run.rest()).pending ?? []) run.run.toolOutput(callId, 'there it is')
  await run.end(2)
  expect(completed(run, 'tool_execution')).toEqual([])
  expect(lines(run).filter((line) => line.startsWith('tool'))).toEqual([])
})

test('an approved call begins when it runs, with the arguments that were approved', async () => {
  const play = await stage([call('send', { to: 'all' }), text('Sent.')], {
    tools: [tool('send', () => 'sent', { needsApproval: true })],
  })
  const run = play.run()
  const { pending = [] } = await run.rest()
  expect(run.of('step_started').map(({ stepType }) => stepType)).toEqual(['inference'])
  play.clock.increment(5_000)
  run.run.approve(pending[0]?.callId ?? '', { to: 'me' })
  await run.end(2)
  const [step] = completed(run, 'tool_execution')
  expect(step).toMatchObject({
    startedAt: 5_000,
    payload: { toolCall: { function: { arguments: '{"to":"me"}' } } },
  })
})

describe('what was withheld is in no step', () => {
  test('an answer that an output shield blocks keeps its usage', async () => {
    const play = await played([text('The password is swordfish.')], {
      shields: { output: [forbid('swordfish')] },
    })
    expect(JSON.stringify(play.events)).not.toContain('swordfish')
    expect(completed(play, 'inference')).toMatchObject([
      {
        outcome: 'ok',
        payload: { modelResponse: { text: null, usage: { totalTokens: expect.any(Number) } } },
      },
    ])
    expect(completed(play, 'shield_call')).toMatchObject([
      { point: 'output', outcome: 'ok', payload: { violation: { action: 'block', shields: ['forbid'] } } },
    ])
  })

  test('a refusal in words is held like any other answer', async () => {
    const play = await played([{ refusal: 'I will not name swordfish.' }], {
      shields: { output: [forbid('swordfish')] },
    })
    expect(JSON.stringify(play.events)).not.toContain('swordfish')
  })

  test('a result that a shield blocks, and the progress on the way to it', async () => {
    const play = await played([call('read'), text('No luck.')], {
      shields: { toolOutput: [forbid('swordfish')] },
      tools: [
        tool('read', (_input, { progress }) => {
          progress('half')
          return 'swordfish'
        }),
      ],
    })
    expect(JSON.stringify(play.events)).not.toContain('swordfish')
    expect(play.of('step_progress')).toEqual([])
    expect(completed(play, 'tool_execution')).toMatchObject([{ outcome: 'ok' }])
    expect(completed(play, 'shield_call')).toMatchObject([
      {
        point: 'toolOutput',
        callId: play.of('tool_call')[0]?.call.id,
        payload: { violation: { action: 'block' } },
      },
    ])
  })

  test('a message that an input shield blocks', async () => {
    const play = await stage([text('Unheard.')], { shields: { input: [forbid('bomb')] } })
    const run = play.run([
      {
        content: [
          { type: 'text', text: 'Hello.' },
          { type: 'text', text: 'A bomb?' },
        ],
      },
    ])
    expect(await run.end(0)).toMatchObject({ state: 'BLOCKED' })
    expect(completed(run, 'shield_call')).toMatchObject([
      { point: 'input', payload: { violation: { action: 'block' } } },
    ])
    expect(JSON.stringify(run.of('step_completed'))).not.toContain('bomb')
  })
})

describe('a step that is stopped is completed all the same, before the end of the run', () => {
  const slow = () => defineShield({ name: 'slow', check: (_content, { signal }) => forever(signal) })
  const scenes = {
    inference: { turns: [text('Hello.', { delayMs: 60_000 })], options: {} },
    tool_execution: {
      turns: [call('hang')],
      options: { tools: [tool('hang', (_input, { signal }) => forever(signal))] },
    },
    'shield_call input': { turns: [text('Unheard.')], options: { shields: { input: [slow()] } } },
    'shield_call output': { turns: [text('Hello.')], options: { shields: { output: [slow()] } } },
    'shield_call toolInput': {
      turns: [call('look')],
      options: { shields: { toolInput: [slow()] }, tools: [tool('look')] },
    },
    'shield_call toolOutput': {
      turns: [call('look')],
      options: { shields: { toolOutput: [slow()] }, tools: [tool('look')] },
    },
    memory_retrieval: {
      turns: [text('Unheard.')],
      options: {
        memory: { retrieve: (_query: string, { signal }: { signal: AbortSignal }) => forever(signal) },
      },
    },
  }
  const cases = Object.entries(scenes)

  test.each(cases)('%s: by cancel()', async (name, { turns, options }) => {
    const play = await stage(turns, options)
    const run = play.run()
    await run.event('step_started', () => lines(run).at(-1) === `${name} …`)
    await tick()
    run.run.cancel()
    const { state } = await run.run.result
    expect(state).toBe('CANCELLED')
    expect(lines(run).slice(-2)).toEqual([`${name} …`, `${name} cancelled`])
    expect(run.events.at(-1)?.type).toBe('run_ended')
    expect(openStepsOf(run.events)).toEqual([])
  })

  test.each(cases)('%s: by a listener that hears of its start', async (name, { turns, options }) => {
    const play = await stage(turns, options)
    const run = play.run()
    run.run.events$.subscribe(({ type }) => {
      if (type === 'step_started' && lines(run).at(-1) === `${name} …`) run.run.cancel()
    })
    expect(await run.run.result).toMatchObject({ state: 'CANCELLED' })
    await tick()
    expect(lines(run).at(-1)).toBe(`${name} cancelled`)
    expect(run.events.at(-1)?.type).toBe('run_ended')
  })

  test.each(cases)('%s: by the deadline', async (name, { turns, options }) => {
    const play = await stage(turns, { ...options, limits: { timeoutMs: 1_000 } })
    const run = play.run()
    await run.event('step_started', () => lines(run).at(-1) === `${name} …`)
    await tick()
    play.clock.increment(1_000)
    expect(await run.run.result).toMatchObject({ state: 'TIMED_OUT' })
    const [step] = run.of('step_completed').slice(-1)
    expect(step).toMatchObject({ outcome: 'cancelled', startedAt: 0, completedAt: 1_000 })
    expect(lines(run).at(-1)).toBe(`${name} cancelled`)
    expect(openStepsOf(run.events)).toEqual([])
  })

  test('by a store that fails', async () => {
    const play = await stage([call('hang')], {
      tools: [tool('hang', (_input, { signal }) => forever(signal))],
    })
    const actor = createActor(play.agent.machine, { input: 'Go.' })
    const events: AgentEvent[] = []
    actor.on('*', (event) => {
      events.push(event as AgentEvent)
      if (event.type === 'step_started' && event.stepType === 'tool_execution')
        actor.send({ type: 'STORE_FAILED', failure: { code: 'disk_full', message: 'Full.' } })
    })
    const ended = new Promise<void>((resolve) => {
      actor.subscribe({ complete: resolve })
    })
    actor.start()
    await ended
    expect(lines({ events }).at(-1)).toBe('tool_execution cancelled')
    expect(openStepsOf(events)).toEqual([])
  })

  test('by stop() of the actor, though no final state is reached', async () => {
    const model = new ManualModel()
    const actor = createActor(createAgent({ model }).machine, { input: 'Go.' })
    const events: AgentEvent[] = []
    actor.on('*', (event) => {
      events.push(event as AgentEvent)
    })
    actor.start()
    await settled()
    expect(openStepsOf(events)).toHaveLength(1)
    actor.stop()
    expect(lines({ events })).toEqual(['inference …', 'inference cancelled'])
  })
})

test('a sub-agent that asks ends the step of its call; when it goes on, the step begins again', async () => {
  const model = new ManualModel()
  const child = createAgent({ model, tools: [tool('ask', () => 'asked', { needsApproval: true })] })
  const play = await stage([call('help', { task: 'Ask.' }), text('Done.')], {
    tools: [child.asTool({ name: 'help', description: 'Helps.', maxSteps: 3 })],
  })
  const run = play.run()
  await started(run, 'tool_execution')
  await settled()
  model.pending?.answer({
    toolCalls: [{ id: 'c1', type: 'function', function: { name: 'ask', arguments: '{}' } }],
  })
  const { pending = [] } = await run.rest()
  expect(lines(run)).toEqual(['inference …', 'inference ok', 'tool_execution …', 'tool_execution cancelled'])
  run.run.approve(pending[0]?.callId ?? '')
  while (!model.pending) await tick()
  model.pending.answer({ text: 'Asked.' })
  await run.run.result
  expect(lines(run).slice(4)).toEqual([
    'tool_execution …',
    'tool_execution ok',
    'inference …',
    'inference ok',
  ])
  const ids = completed(run, 'tool_execution').map(({ stepId }) => stepId)
  expect(ids[0]).toBe(ids[1])
  const inner = run.of('child_event').map(({ event }) => event)
  expect(openStepsOf(inner)).toEqual([])
  expect(inner.filter(({ type }) => type === 'step_completed')).toHaveLength(3)
})

test('a summary is an inference of its own, beside the step that it makes room for', async () => {
  const long = (word: string) => `${word} `.repeat(300)
  const play = await stage([text(long('one')), text(long('two')), text('What was said.'), text('Done.')], {
    context: { window: 500, strategy: 'summarize' },
    limits: { maxSteps: 10 },
  })
  for (const input of ['First.', 'Second.', 'Third.']) {
    // oxlint-disable-next-line no-await-in-loop -- one run after the other
    await play.run(input, { session: 's' }).run.result
  }
  const [, , third] = play.plays
  const steps = third ? completed(third, 'inference') : []
  expect(steps).toMatchObject([
    { summary: true, outcome: 'ok', payload: { modelResponse: { text: 'What was said.' } } },
    { outcome: 'ok', payload: { modelResponse: { text: 'Done.' } } },
  ])
  expect(steps[0]?.stepId).toBe(`${steps[1]?.stepId}.summary`)
})

/** One run in which everything that waits is in the hands of the test. */
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
      const asked = (...names: string[]) =>
        names.map((name) => ({
          id: `c${++this.#ids}`,
          type: 'function' as const,
          function: { name, arguments: '{}' },
        }))
      moves.push(
        () => pending.answer({ text: 'Done.' }),
        () => pending.answer({ toolCalls: asked('plain', 'plain', 'plain'), text: 'Working.' }),
        () => pending.answer({ toolCalls: asked('plain', 'risky', 'client', 'nowhere') }),
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
        if (needs === 'client') moves.push(() => run.toolOutput(id, 'out'))
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

test('whatever happens, each step that starts is completed once, and before the run ends', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(10_000), { maxLength: 60, size: 'max' }), async (choices) => {
      const world = new World()
      await settled()
      for (const choice of choices) {
        const moves = world.moves()
        moves[choice % moves.length]?.()
        // oxlint-disable-next-line no-await-in-loop -- one move after the other
        await settled()
        openStepsOf(world.events)
      }
      world.run.cancel()
      await settled()
      expect(openStepsOf(world.events)).toEqual([])
      expect(world.events.at(-1)?.type).toBe('run_ended')
      for (const line of lines(world)) seen.add(line)
    }),
    { numRuns: 200 },
  )
  // The runs have been where steps are.
  for (const outcome of ['ok', 'cancelled']) {
    expect([...seen]).toContain(`inference ${outcome}`)
    expect([...seen]).toContain(`tool_execution ${outcome}`)
  }
}, 60_000)
