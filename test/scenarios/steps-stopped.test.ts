import { createActor } from 'xstate'
import { type AgentEvent, createAgent, defineShield } from '../../src/index.js'
import { stage, tick } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { forever, lines, openStepsOf } from '../support/steps.js'

describe('a stopped step is completed before the end of the run', () => {
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
    // An answer under a shield check is reported unchanged, because it has arrived.
    const came = name === 'shield_call output' ? ['inference ok'] : []
    expect(lines(run).slice(lines(run).lastIndexOf(`${name} …`) + 1)).toEqual([...came, `${name} cancelled`])
    expect(run.events.at(-1)?.type).toBe('run_ended')
    expect(openStepsOf(run.events)).toEqual([])
  })

  test.each(cases)('%s: by a listener that receives its start', async (name, { turns, options }) => {
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
