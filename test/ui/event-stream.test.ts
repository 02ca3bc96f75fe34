import type { AgentEvent } from '../../src/index.js'
import { toEventStreamResponse, foldTranscript, type Transcript } from '../../src/ui/index.js'
import { again, type Stage, stage, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'

interface Told {
  id: string
  event: AgentEvent
}

/** The events of an `EventSource`. */
async function toldBy(response: Response, most = Infinity): Promise<Told[]> {
  const events: Told[] = []
  let buffered = ''
  const reader = (response.body as ReadableStream<BufferSource>)
    .pipeThrough(new TextDecoderStream())
    .getReader()
  while (events.length < most) {
    const { done: isOver, value = '' } = await reader.read()
    const frames = (buffered + value).split('\n\n')
    buffered = frames.pop() ?? ''
    for (const frame of frames) {
      const [, id = '', data = ''] = /^id: (.*)\ndata: (.*)$/.exec(frame) ?? []
      if (data !== '') events.push({ id, event: JSON.parse(data) as AgentEvent })
    }
    if (isOver) break
  }
  await reader.cancel()
  return events
}

const fold = (events: readonly AgentEvent[]): Transcript | undefined =>
  events.reduce<Transcript | undefined>(foldTranscript, undefined)

/** A run that requests approval, receives it and ends. */
async function asking(): Promise<Stage> {
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  return stage([call('pay', { to: 'Ann' }, { text: 'Let me pay.' }), text('All is paid.')], {
    tools: [pay],
  })
}

it('sends every event unchanged, across rests, until the end', async () => {
  const play = (await asking()).run('Pay.')
  const response = toEventStreamResponse(play.run)
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const frames = toldBy(response)
  for (const question of (await play.rest()).pending ?? []) play.run.approve(question)
  await play.end(2)
  const events = (await frames).map(({ event }) => event)
  expect(fold(events)).toEqual(fold(play.events))
  expect(events.at(-1)).toEqual(play.events.at(-1))
  expect((await frames).map(({ id }) => id)).toEqual(events.map(({ id }) => id))
})

it('sends a reconnecting page the events that it missed, and nothing after the end', async () => {
  const play = (await asking()).run('Pay.')
  const first = toldBy(toEventStreamResponse(play.run))
  for (const question of (await play.rest()).pending ?? []) play.run.approve(question)
  await play.end(2)
  await first
  const whole = fold(play.events)
  for (const [i, { id }] of play.events.entries()) {
    const before = play.events.slice(0, i + 1)
    const response = toEventStreamResponse(play.run, { lastEventId: id })
    const after = response.status === 204 ? [] : (await toldBy(response)).map(({ event }) => event)
    expect(fold([...before, ...after])).toEqual(whole)
    expect(response.status).toBe(i === play.events.length - 1 ? 204 : 200)
  }
  const foreign = await toldBy(toEventStreamResponse(play.run, { lastEventId: 'another:3' }))
  expect(fold(foreign.map(({ event }) => event))).toEqual(whole)
})

it('sends a page that reconnects in the middle of arguments their start', async () => {
  const input = { text: 'The heron stands in the water. '.repeat(10) }
  const opened = await stage([call('pay', input, { text: 'Let me pay.', hang: 14 })], {
    tools: [tool('pay')],
  })
  const play = opened.run('Pay.')
  const first = toldBy(toEventStreamResponse(play.run))
  await play.event('tool_call_delta', ({ delta }) => delta !== '')
  await until(() => play.of('tool_call_delta').length >= 8)
  const so = [...play.events]
  const shown = fold(so)
  expect(shown?.items.at(-1)).toMatchObject({ type: 'call', name: 'pay', isOpen: true })
  for (const [i, { id }] of so.entries()) {
    const most = 1
    const response = toEventStreamResponse(play.run, { lastEventId: id })
    if (i === so.length - 1) break
    const after = (await toldBy(response, most)).map(({ event }) => event)
    expect(fold([...so.slice(0, i + 1), ...after])?.items.at(-1)).toEqual(shown?.items.at(-1))
  }
  play.run.cancel()
  const events = (await first).map(({ event }) => event)
  expect(fold(events)).toEqual(fold(play.events))
  expect(fold(events)?.items.some(({ type }) => type === 'call')).toBe(false)
})

it('accepts any events, and releases them when the page disconnects', async () => {
  const play = (await asking()).run('Pay.')
  await play.rest()
  let isOpen = true
  async function* some(): AsyncGenerator<AgentEvent> {
    try {
      yield* play.events
      await new Promise(() => undefined)
    } finally {
      isOpen = false
    }
  }
  const few = (async function* () {
    yield* play.events.slice(0, 3)
  })()
  expect((await toldBy(toEventStreamResponse(few))).map(({ event }) => event)).toEqual(
    play.events.slice(0, 3),
  )
  await toldBy(toEventStreamResponse(some()), 2)
  await new Promise((resolve) => setImmediate(resolve))
  expect(isOpen).toBe(false)
})

describe('foldTranscript', () => {
  it('does not search a long transcript for streaming arguments if there are none', async () => {
    const play = (await asking()).run('Pay.')
    await play.rest()
    const shown = fold(play.events) as Transcript
    const event = play.events.find(({ type }) => type === 'state_changed') as AgentEvent
    const unread = new Proxy(shown.items, {
      get: () => {
        throw new Error('The items were read.')
      },
    })
    expect(foldTranscript({ ...shown, items: unread }, event).items === unread).toBe(true)
  })

  it('contains messages, calls and pending requests', async () => {
    const play = (await asking()).run('Pay.')
    await play.rest()
    expect(fold(play.events)).toMatchObject({
      state: 'WAITING_FOR_INPUT',
      items: [
        { type: 'user', text: 'Pay.' },
        { type: 'assistant', text: 'Let me pay.', isOpen: false },
        { type: 'call', name: 'pay', status: 'called' },
      ],
      questions: [{ callId: 'call_1_1', name: 'pay', arguments: '{"to":"Ann"}' }],
    })
    for (const question of fold(play.events)?.questions ?? []) play.run.approve(question)
    await play.end(2)
    expect(fold(play.events)).toMatchObject({
      state: 'COMPLETED',
      items: [{}, {}, { status: 'ok', result: 'paid' }, { type: 'assistant', text: 'All is paid.' }],
      questions: [],
      usage: { totalTokens: expect.any(Number) },
    })
  })

  it('removes the text of failed attempts, and never mutates', async () => {
    const theatre = await stage([text('Half of', { cutAfter: 1 }), text('Whole.')])
    const play = theatre.run().skipBackOff()
    await play.end(2)
    const steps = play.events.reduce<Transcript[]>(
      (all, event) => [...all, foldTranscript(all.at(-1), event)],
      [],
    )
    const copies = steps.map((step) => JSON.stringify(step))
    expect(steps.at(-1)?.items.at(-1)).toMatchObject({ text: 'Whole.', isOpen: false })
    // A list of events gives the same transcript as its events one by one, from any earlier transcript.
    for (const [i, step] of steps.entries())
      expect(foldTranscript(step, play.events.slice(i + 1))).toEqual(steps.at(-1))
    expect(steps.map((step) => JSON.stringify(step))).toEqual(copies)
  })

  it('contains sub-agents under their calls, and the error of a run', async () => {
    const child = await stage([call('look'), text('Found.')])
    const worker = again(child, { tools: [tool('look', () => 'seen')] })
    const research = worker.asTool({ name: 'research', description: 'Researches.', maxSteps: 5 })
    const theatre = await stage([call('research', { task: 'Look.' }), { status: 400 }], { tools: [research] })
    const play = theatre.run()
    await play.run.result
    expect(foldTranscript(undefined, play.events)).toEqual(fold(play.events))
    expect(fold(play.events)).toMatchObject({
      state: 'ERROR',
      error: expect.any(String),
      items: [
        { type: 'user' },
        {
          type: 'call',
          name: 'research',
          status: 'ok',
          child: { items: [{ type: 'user' }, { name: 'look', result: 'seen' }, { text: 'Found.' }] },
        },
        { type: 'end', state: 'ERROR', reason: 'provider_error' },
      ],
    })
  })
})
