import { type AGUIEvent, toAGUI, toAGUIMessages } from '../../src/agui/index.js'
import { createSession, defineGuard, defineShield, type Run, type Tool } from '../../src/index.js'
import { latch, type Play, stage, tick } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'
import { AGUIPage, comparable } from './page.js'

type Of<Type extends AGUIEvent['type']> = Extract<AGUIEvent, { type: Type }>

/** All events up to the next rest, validated by the AG-UI client. */
async function eventsOf(
  page: AGUIPage,
  run: Run,
  input?: { messages: { id: string; role: string }[] },
): Promise<AGUIEvent[]> {
  const events: AGUIEvent[] = []
  const options = input && { input: { threadId: 'ann', runId: 'r1', ...input } }
  for await (const event of toAGUI(run, options)) events.push(event)
  await page.take(events)
  return events
}

const of = <Type extends AGUIEvent['type']>(events: readonly AGUIEvent[], type: Type): Of<Type>[] =>
  events.filter((event): event is Of<Type> => event.type === type)

const typesOf = (events: readonly AGUIEvent[]): string[] => [...new Set(events.map(({ type }) => type))]

const custom = (events: readonly AGUIEvent[], name: string) =>
  of(events, 'CUSTOM').filter((event) => event.name === `statewright.${name}`)

const outcomeOf = (events: readonly AGUIEvent[]) => {
  const [last] = events.slice(-1)
  return last?.type === 'RUN_FINISHED' ? last.outcome : last
}

/** A page with the user's message. */
function asking(words = 'Go.'): { page: AGUIPage; input: { messages: { id: string; role: string }[] } } {
  const page = new AGUIPage()
  page.say('u1', words)
  return { page, input: { messages: page.messages } }
}

const showsTranscript = (page: AGUIPage, { messages }: Awaited<Run['result']>): void => {
  const named = toAGUIMessages(messages).map((message) =>
    message.id === 'm1' ? { ...message, id: 'u1' } : message,
  )
  expect(comparable(page.messages as never)).toEqual(comparable(named))
}

describe('toAGUI', () => {
  it('sends the text, the calls, the state and the usage of a run', async () => {
    const look = tool('look', () => 'A heron.')
    const { agent } = await stage([call('look', { at: 'lake' }, { text: 'Wait.' }), text('It is a heron.')], {
      tools: [look],
    })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    expect(typesOf(events)).toEqual([
      'RUN_STARTED',
      'STATE_DELTA',
      'STEP_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'TOOL_CALL_START',
      'TOOL_CALL_ARGS',
      'STEP_FINISHED',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT',
      'RUN_FINISHED',
    ])
    const result = await run.result
    showsTranscript(page, result)
    expect(events[0]).toEqual({ type: 'RUN_STARTED', threadId: 'ann', runId: 'r1', protocolVersion: '1.0' })
    const { inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens } = result.usage
    expect(events.at(-1)).toMatchObject({
      outcome: { type: 'success' },
      result: { state: 'COMPLETED', reason: 'end_turn' },
      usage: [{ inputTokens, outputTokens, totalTokens, reasoningTokens, cachedInputTokens }],
    })
    expect(page.state).toEqual({ statewright: { state: 'COMPLETED', reason: 'end_turn' } })
  })

  const longInput = { text: 'The heron stands in the water. '.repeat(10) }
  const argumentsOf = (events: readonly AGUIEvent[]) => of(events, 'TOOL_CALL_ARGS').map(({ delta }) => delta)

  it('streams the arguments of a call', async () => {
    const { agent } = await stage([call('look', longInput, { text: 'Wait.' }), text('Done.')], {
      tools: [tool('look')],
    })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    expect(argumentsOf(events).length).toBeGreaterThan(10)
    expect(JSON.parse(argumentsOf(events).join(''))).toEqual(longInput)
    expect(of(events, 'TOOL_CALL_START')).toHaveLength(1)
    expect(of(events, 'TOOL_CALL_END')).toHaveLength(1)
    expect(of(events, 'MESSAGES_SNAPSHOT')).toEqual([])
    showsTranscript(page, await run.result)
  })

  it.each([
    ['calls something else', [call('look', { at: 1 }), text('Done.')]],
    ['calls nothing', [text('Done.')]],
  ])('removes streamed arguments when the retry %s', async (_, after) => {
    const opened = await stage([call('look', longInput, { text: 'Wait.', cutAfter: 6 }), ...after], {
      tools: [tool('look')],
    })
    const { page, input } = asking()
    const play = opened.run().skipBackOff()
    const events = await eventsOf(page, play.run, input)
    expect(argumentsOf(events).length).toBeGreaterThan(2)
    showsTranscript(page, await play.run.result)
  })

  it('removes streamed arguments when the run is cancelled', async () => {
    const opened = await stage([call('look', longInput, { text: 'Wait.', hang: 6 })], {
      tools: [tool('look')],
    })
    const { page, input } = asking()
    const play = opened.run()
    const events = eventsOf(page, play.run, input)
    await play.event('tool_call_delta', ({ delta }) => delta !== '')
    play.run.cancel()
    expect(argumentsOf(await events).length).toBeGreaterThan(0)
    showsTranscript(page, await play.run.result)
  })

  it('shows the text of a retry once', async () => {
    const opened = await stage([{ text: 'It is a herring', cutAfter: 2 }, text('It is a heron.')])
    const { page, input } = asking()
    const play = opened.run().skipBackOff()
    const events = await eventsOf(page, play.run, input)
    expect(of(events, 'MESSAGES_SNAPSHOT')).toHaveLength(1)
    expect(custom(events, 'retry')).toMatchObject([{ value: { attempt: 2 } }])
    expect(page.messages).toMatchObject([{ id: 'u1' }, { id: 'm2', content: 'It is a heron.' }])
    expect(page.messages).toHaveLength(2)
  })

  it('ends with an interrupt for each approval, and continues after the answers', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { agent } = await stage(
      [
        calls([
          ['pay', { n: 1 }],
          ['pay', { n: 2 }],
        ]),
        text('Done.'),
      ],
      { tools: [pay] },
    )
    const { page, input } = asking()
    const run = agent.run('Go.')
    const first = await eventsOf(page, run, input)
    const { pending = [] } = await run.result
    const outcome = outcomeOf(first)
    expect(outcome).toMatchObject({
      type: 'interrupt',
      interrupts: pending.map(({ callId, messageId, fingerprint }) => ({
        id: `${callId}~${messageId}~${fingerprint}`,
        reason: 'tool_call',
        toolCallId: callId,
        responseSchema: { required: ['approved'] },
      })),
    })
    for (const one of pending) run.approve(one)
    const second = await eventsOf(page, run, { messages: page.messages })
    expect(outcomeOf(second)).toEqual({ type: 'success' })
    expect(of(second, 'TOOL_CALL_START')).toEqual([])
    expect(of(second, 'TOOL_CALL_RESULT').map(({ toolCallId }) => toolCallId)).toEqual(
      pending.map(({ callId }) => callId),
    )
    showsTranscript(page, await run.result)
  })

  it('lists client calls in a successful outcome, as AG-UI does', async () => {
    const { agent } = await stage([call('pick', {}), text('Done.')], { tools: [clientTool('pick')] })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    const { pending = [] } = await run.result
    expect(outcomeOf(events)).toEqual({ type: 'success', pendingToolCallIds: [pending[0]?.callId] })
  })

  it('distinguishes sub-agents and their requests', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const child = await stage([call('pay', { n: 1 }, { text: 'I pay.' }), text('Paid.')], { tools: [pay] })
    const research = child.agent.asTool({ name: 'research', description: 'Finds out.' }) as Tool
    const { agent } = await stage([call('research', { task: 'Pay.' }), text('All paid.')], {
      tools: [research],
    })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const first = await eventsOf(page, run, input)
    const { pending = [] } = await run.result
    const [start] = of(first, 'SUBAGENT_STARTED')
    const [callOfLead] = of(first, 'TOOL_CALL_START')
    expect(start).toMatchObject({ name: 'research', parentToolCallId: callOfLead?.toolCallId })
    const id = `${pending[0]?.callId}~${pending[0]?.messageId}~${pending[0]?.fingerprint}`
    expect(of(first, 'SUBAGENT_FINISHED')).toMatchObject([
      { subagentRunId: start?.subagentRunId, outcome: { type: 'suspended', interruptIds: [id] } },
    ])
    expect(outcomeOf(first)).toMatchObject({
      type: 'interrupt',
      interrupts: [{ id, subagentRunId: start?.subagentRunId, message: 'Run research › pay?' }],
    })
    expect(of(first, 'TEXT_MESSAGE_CONTENT')).toMatchObject([
      { delta: 'I pay.', subagentRunId: start?.subagentRunId },
    ])
    for (const one of pending) run.approve(one)
    const second = await eventsOf(page, run, { messages: page.messages })
    expect(of(second, 'SUBAGENT_STARTED')).toMatchObject([{ subagentRunId: start?.subagentRunId }])
    expect(of(second, 'SUBAGENT_FINISHED')).toMatchObject([{ outcome: { type: 'success' } }])
    expect(outcomeOf(second)).toEqual({ type: 'success' })
    const own = page.messages.filter((message) => !('subagentRunId' in message))
    const { messages } = await run.result
    expect(own.map(({ role }) => role)).toEqual(messages.map(({ role }) => role))
  })

  it('sends no text that an output shield has not cleared', async () => {
    const discreet = defineShield({
      name: 'discreet',
      check: (text) => ({ action: 'redact', content: text.replaceAll('swordfish', '[card]') }),
    })
    const { agent } = await stage([text('The card is swordfish.')], { shields: { output: [discreet] } })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    expect(JSON.stringify(events)).not.toContain('swordfish')
    expect(custom(events, 'shield')).toMatchObject([{ value: { shield: 'discreet', action: 'redact' } }])
    expect(page.messages).toMatchObject([{ id: 'u1' }, { content: 'The card is [card].' }])
  })

  it('shows steering messages', async () => {
    const gate = latch()
    const wait = tool('wait', () => gate.opened.then(() => 'ok'))
    const { agent } = await stage([call('wait'), text('Done.')], { tools: [wait] })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = eventsOf(page, run, input)
    while (wait.inputs.length === 0) await tick()
    run.steer('Be brief.')
    gate.open()
    expect(custom(await events, 'steering')).toMatchObject([{ value: { text: 'Be brief.' } }])
    showsTranscript(page, await run.result)
  })

  it.each([
    ['a limit', { limits: { maxSteps: 1 } }, { type: 'cancelled' }, 'MAX_STEPS'],
    ['only the end', {}, { type: 'success' }, undefined],
  ])('reports that %s ended a run', async (_, options, outcome, halt) => {
    const { agent } = await stage([call('look'), text('Done.')], { tools: [tool('look')], ...options })
    const { page, input } = asking()
    const events = await eventsOf(page, agent.run('Go.'), input)
    expect(outcomeOf(events)).toEqual(outcome)
    expect(custom(events, 'halt')).toMatchObject(halt === undefined ? [] : [{ value: { state: halt } }])
  })

  it('reports a cancellation, and keeps the text', async () => {
    const opened = await stage([{ text: 'It is a heron.', hang: 1 }])
    const { page, input } = asking()
    const play: Play = opened.run()
    const events = eventsOf(page, play.run, input)
    await play.event('stream_chunk')
    play.run.cancel()
    expect(outcomeOf(await events)).toEqual({ type: 'cancelled' })
    showsTranscript(page, await play.run.result)
  })

  it('fails with only the message and the code of the error', async () => {
    const { agent } = await stage([{ status: 401 }])
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    const { error } = await run.result
    const { timestamp: _, usage: _usage, ...last } = events.at(-1) as Of<'RUN_ERROR'>
    expect(last).toEqual({ type: 'RUN_ERROR', code: error?.code, message: error?.message })
  })

  it('fails if the run is refused', async () => {
    const opened = await stage([{ text: 'It is', hang: 1 }])
    const session = createSession()
    opened.run('Go.', { session })
    const events: AGUIEvent[] = []
    for await (const event of toAGUI(opened.agent.run('Go again.', { session }))) events.push(event)
    expect(events).toMatchObject([{ type: 'RUN_STARTED' }, { type: 'RUN_ERROR', code: 'session_busy' }])
    await new AGUIPage().take(events)
  })

  it('gives calls unique names if a provider restarts their numbers', async () => {
    const look = tool('look')
    const again = { toolCalls: [{ id: 'call_0', name: 'look', arguments: {} }] }
    const { agent } = await stage([again, again, text('Done.')], { tools: [look] })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    const names = of(events, 'TOOL_CALL_START').map(({ toolCallId }) => toolCallId)
    expect(names).toEqual(['call_0', 'call_0_4'])
    expect(of(events, 'TOOL_CALL_RESULT').map(({ toolCallId }) => toolCallId)).toEqual(names)
    showsTranscript(page, await run.result)
  })

  it('asks whether to resume a paused run', async () => {
    const opened = await stage([call('look'), text('Done.')], { tools: [tool('look')] })
    const { page, input } = asking()
    const run = opened.agent.run('Go.')
    run.pause()
    const outcome = outcomeOf(await eventsOf(page, run, input))
    expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ reason: 'paused' }] })
    run.resume()
    expect(outcomeOf(await eventsOf(page, run, input))).toEqual({ type: 'success' })
    showsTranscript(page, await run.result)
  })

  it('ends at each rest of an interactive run', async () => {
    const { agent } = await stage([text('Hello.'), text('Again.')], { interactive: true })
    const { page, input } = asking()
    const run = agent.run('Go.')
    expect(outcomeOf(await eventsOf(page, run, input))).toEqual({ type: 'success' })
    run.reply('And now?')
    page.say('u2', 'And now?')
    expect(outcomeOf(await eventsOf(page, run, { messages: page.messages }))).toEqual({ type: 'success' })
    expect(page.messages.map(({ id, content }) => ({ id, content }))).toEqual([
      { id: 'u1', content: 'Go.' },
      { id: 'm2', content: 'Hello.' },
      { id: 'u2', content: 'And now?' },
      { id: 'm4', content: 'Again.' },
    ])
    run.cancel()
  })

  it('shows everything to a page that connects late', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { agent } = await stage([call('pay', {}, { text: 'I pay.' }), text('Done.')], { tools: [pay] })
    const run = agent.run('Go.')
    const { pending = [] } = await run.result
    const page = new AGUIPage()
    const events: AGUIEvent[] = []
    for await (const event of toAGUI(run, { restate: true })) events.push(event)
    await page.take(events)
    expect(page.messages).toMatchObject([{ content: 'Go.' }, { content: 'I pay.', toolCalls: [{}] }])
    expect(outcomeOf(events)).toMatchObject({ interrupts: [{ toolCallId: pending[0]?.callId }] })
  })

  it('shows reasoning separately, and removes the reasoning of failed attempts', async () => {
    const opened = await stage([
      { reasoning: 'It has a neck.', text: 'It is a herring', cutAfter: 3 },
      { reasoning: 'It has long legs.', text: 'It is a heron.' },
    ])
    const { page, input } = asking()
    const play = opened.run().skipBackOff()
    await eventsOf(page, play.run, input)
    showsTranscript(page, await play.run.result)
    expect(page.messages).toMatchObject([
      { id: 'u1' },
      { role: 'reasoning', content: 'It has long legs.' },
      { role: 'assistant', content: 'It is a heron.' },
    ])
  })

  it('sends unstreamed text in one piece', async () => {
    const forbidding = defineShield({
      name: 'forbid',
      check: () => ({ action: 'block', message: 'No herons.' }),
    })
    const { agent } = await stage([text('Never.')], { shields: { input: [forbidding] } })
    const { page, input } = asking()
    const run = agent.run('Go.')
    const events = await eventsOf(page, run, input)
    expect(of(events, 'TEXT_MESSAGE_CHUNK')).toMatchObject([{ delta: 'No herons.' }])
    expect(outcomeOf(events)).toEqual({ type: 'cancelled' })
    showsTranscript(page, await run.result)
  })

  it('does not affect a run that is no longer read', async () => {
    const { agent } = await stage([text('It is a heron.')])
    const run = agent.run('Go.')
    for await (const event of toAGUI(run)) if (event.type === 'RUN_STARTED') break
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'It is a heron.' })
  })

  it('does not send evidence, memory texts or warning messages', async () => {
    const minding = defineGuard({
      name: 'mind',
      verdict: (_, { fact }) => (fact.type === 'calls' ? { action: 'nudge', message: 'Mind.' } : undefined),
    })
    const opened = await stage([call('look'), text('Done.')], {
      tools: [tool('look')],
      guards: [minding],
      memory: { retrieve: () => Promise.resolve([{ source: 'birds.md', text: 'SNIPPET', score: 2 }]) },
    })
    const { page, input } = asking()
    const play = opened.run()
    play.run.text$.subscribe(() => {
      throw new Error('TROUBLE')
    })
    const events = await eventsOf(page, play.run, input)
    expect(play.of('guardrail')).toMatchObject([{ evidence: 'mind: look({})' }])
    expect(play.of('warning')).toMatchObject([{ message: expect.stringContaining('TROUBLE') }])
    expect(custom(events, 'guardrail')).toMatchObject([{ value: { message: 'Mind.' } }])
    expect(custom(events, 'warning')).toMatchObject([{ value: { code: 'subscriber_error' } }])
    expect(custom(events, 'memory')).toMatchObject([
      { value: { sources: [{ source: 'birds.md', score: 2 }] } },
    ])
    expect(JSON.stringify(events)).not.toMatch(/mind: look|SNIPPET|TROUBLE/)
  })
})
