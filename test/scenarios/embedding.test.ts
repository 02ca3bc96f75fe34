import { assign, createActor, sendTo, setup, toPromise } from 'xstate'
import type { AgentEvent, Reason, RunResult } from '../../src/index.js'
import { stage, textOf } from '../support/play.js'
import { call, text, times, tool } from '../support/tools.js'

describe('agent.machine', () => {
  it('runs in a plain actor, from a string', async () => {
    const theatre = await stage([call('look'), text('Hello.')], { tools: [tool('look')] })
    const events: AgentEvent[] = []
    const actor = createActor(theatre.agent.machine, { input: 'Hi.' })
    actor.on('*', (event) => events.push(event as AgentEvent))
    actor.start()
    const output = await toPromise(actor)
    expect(output).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: 'Hello.', steps: 2 })
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
    expect(events.at(-1)).toMatchObject({ type: 'run_ended', runId: output.runId })
    expect(theatre.requests).toHaveLength(2)
  })

  it('accepts the return value of agent.createInput() with the options of a run', async () => {
    const work = tool('work', (_input, { context }) => context)
    const theatre = await stage([call('work'), text('Done.')], { tools: [work] })
    const input = theatre.agent.createInput('Go.', { context: { user: 7 }, limits: { maxSteps: 1 } })
    const actor = createActor(theatre.agent.machine, { input })
    actor.start()
    const output = await toPromise(actor)
    expect(output).toMatchObject({ state: 'MAX_STEPS', runId: input.runId })
    expect(output.messages.at(-1)).toMatchObject({ content: '{"user":7}' })
  })

  it('accepts the public events of a plain actor, but not forged ones', async () => {
    const theatre = await stage([{ hang: true }])
    const actor = createActor(theatre.agent.machine, { input: 'Hi.' })
    actor.start()
    await theatre.arrival()
    expect(actor.getSnapshot().matches({ RUNNING: { asking: 'requesting' } })).toBe(true)
    actor.send({ type: 'CANCEL' })
    expect((await toPromise(actor)).state).toBe('CANCELLED')
  })

  it('shares no tools with other agents, and no guards with its own copies', async () => {
    const first = await stage([call('look'), call('look'), text('First.')], { tools: [tool('look')] })
    const second = await stage([call('find'), text('Second.')], { tools: [tool('find')] })
    const { machine } = first.agent
    const play = async (of: typeof machine) =>
      (await toPromise(createActor(of, { input: 'Hi.' }).start())).state
    const capped = machine.provide({ guards: { isAtStepCap: () => true } as never })
    expect(await play(capped)).toBe('MAX_STEPS')
    expect(await play(second.agent.machine)).toBe('COMPLETED')
    expect(await play(machine)).toBe('COMPLETED')
  })

  it('is a child of another machine: its output is the result, and its text streams through the child', async () => {
    const theatre = await stage([text('In two pieces.', { chunkSize: 7 })])
    const parent = setup({
      types: {} as { context: { result: RunResult | null } },
      actors: { agent: theatre.agent.machine },
    }).createMachine({
      context: { result: null },
      initial: 'asking',
      states: {
        asking: {
          invoke: {
            id: 'agent',
            src: 'agent',
            input: 'Hi.',
            onDone: { target: 'done', actions: assign({ result: ({ event }) => event.output }) },
          },
        },
        done: { type: 'final' },
      },
    })
    const actor = createActor(parent)
    actor.start()
    let streamed = ''
    const child = actor.getSnapshot().children.agent
    child?.on('stream_chunk', (event) => (streamed += event.text))
    const states: (Reason | null)[] = []
    child?.on('state_changed', (event) => states.push(event.reason))
    await ended(actor)
    expect(actor.getSnapshot().context.result).toMatchObject({ state: 'COMPLETED', output: 'In two pieces.' })
    expect(streamed).toBe('In two pieces.')
    expect(states).toEqual(['end_turn'])
  })

  it('is cancelled by its parent with sendTo, and when the parent exits the state', async () => {
    const theatre = await stage([text('One two three', { chunkSize: 4, hang: 1 }), { hang: true }])
    const parent = setup({
      types: {} as { context: { result: RunResult | null }; events: { type: 'STOP' } | { type: 'LEAVE' } },
      actors: { agent: theatre.agent.machine },
    }).createMachine({
      context: { result: null },
      initial: 'asking',
      states: {
        asking: {
          invoke: {
            id: 'agent',
            src: 'agent',
            input: 'Hi.',
            onDone: { target: 'done', actions: assign({ result: ({ event }) => event.output }) },
          },
          on: { STOP: { actions: sendTo('agent', { type: 'CANCEL' }) }, LEAVE: 'done' },
        },
        done: { type: 'final' },
      },
    })
    const stopped = createActor(parent).start()
    await new Promise<void>((resolve) => {
      stopped.getSnapshot().children.agent?.on('stream_chunk', () => resolve())
    })
    stopped.send({ type: 'STOP' })
    await ended(stopped)
    expect(stopped.getSnapshot().context.result).toMatchObject({ state: 'CANCELLED', output: 'One ' })

    const left = createActor(parent).start()
    const chunks: AgentEvent[] = []
    left.getSnapshot().children.agent?.on('stream_chunk', (event) => chunks.push(event as AgentEvent))
    await theatre.arrival(2)
    left.send({ type: 'LEAVE' })
    await ended(left)
    expect(chunks).toMatchObject([{ finished: true }])
  })

  it('keeps two concurrent runs apart', async () => {
    const echo = tool('echo', ({ word }, { runId, context }) => ({ word, runId, context }))
    const theatre = await stage(times(4, answer), { tools: [echo] })
    const plays = ['one', 'two'].map((word) => theatre.run(word, { context: word }))
    await Promise.all(plays.map(({ run }) => run.result))
    for (const [i, word] of ['one', 'two'].entries()) {
      const play = plays[i]
      const result = await play?.end(4)
      expect(result?.output).toBe(`You said ${word}.`)
      expect(JSON.parse(textOf(result?.messages[2]))).toEqual({
        word,
        runId: play?.run.id,
        context: word,
      })
      expect(new Set(play?.events.map(({ runId }) => runId))).toEqual(new Set([play?.run.id]))
      expect(
        play
          ?.of('stream_chunk')
          .map(({ text }) => text)
          .join(''),
      ).toBe(`You said ${word}.`)
    }
  })
})

/** Calls `echo` with the user's text, then answers with it. */
const answer: Parameters<typeof stage>[0][number] = ({ body: { messages } }) => {
  const word = textOf(messages[0])
  return messages.length === 1 ? call('echo', { word }) : text(`You said ${word}.`)
}

function ended(actor: {
  subscribe(observer: { complete(): void }): unknown
  getSnapshot(): { status: string }
}) {
  return new Promise<void>((resolve) => {
    if (actor.getSnapshot().status !== 'active') resolve()
    actor.subscribe({ complete: resolve })
  })
}
