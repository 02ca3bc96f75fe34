import { createAgent, defineShield, patternShield } from '../../src/index.js'
import { memory } from '../../src/memory/index.js'
import { type Play, played, stage, tick } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { completed, forever, lines, openStepsOf, started } from '../support/steps.js'

const hide = (word: string) =>
  patternShield({ name: 'hide', patterns: [new RegExp(word, 'g')], action: 'redact' })
const forbid = (word: string) =>
  patternShield({ name: 'forbid', patterns: [new RegExp(word)], action: 'block' })

const handbook = () => memory({ documents: [{ source: 'leave.md', text: 'Thirty days of leave.' }] })

test('a run with shields, memory and a tool emits its steps in order, each with its outcome', async () => {
  const opened = await stage([call('look', { for: 'swordfish' }), text('Thirty days.')], {
    shields: {
      input: [hide('4712')],
      toolInput: [hide('swordfish')],
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
    'shield_call output …',
    'inference ok',
    'shield_call output ok',
  ])
  const [first, second] = completed(play, 'inference')
  expect(first).toMatchObject({
    attempt: 1,
    payload: {
      modelResponse: {
        text: '',
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
  expect(JSON.stringify(run)).not.toContain('swordfish')
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

/** A violation, regardless of its message. */
function like(violation: { action: string; shields: string[]; message: null } | null): unknown {
  return violation && expect.objectContaining({ action: violation.action, shields: violation.shields })
}

test('without shields, an inference emits its answer, and a tool its result and progress', async () => {
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

test('times match the clock', async () => {
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

test('each attempt at an answer is a step, and a failed one has the reason', async () => {
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

test('a failed call, and one of an unknown tool, are steps that end in an error', async () => {
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

test('a call that never starts has no step: refused, executed by the client, or blocked by a shield', async () => {
  const play = await stage([calls([['ask'], ['there'], ['look', { for: 'bomb' }]]), text('Well.')], {
    tools: [tool('ask', () => 'asked', { needsApproval: true }), clientTool('there'), tool('look')],
    shields: { toolInput: [forbid('bomb')] },
  })
  const run = play.run()
  const { pending = [] } = await run.rest()
  for (const { callId, name } of pending) {
    if (name === 'ask') run.run.reject(callId, 'No.')
  }
  for (const { callId } of (await run.rest()).pending ?? []) run.run.addToolOutput(callId, 'there it is')
  await run.end(2)
  expect(completed(run, 'tool_execution')).toEqual([])
  expect(lines(run).filter((line) => line.startsWith('tool'))).toEqual([])
})

test('an approved call starts when it runs, with the approved arguments', async () => {
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

describe('with output shields, an inference emits only cleared content', () => {
  const responses = (play: Play) =>
    completed(play, 'inference').map(({ payload }) => 'modelResponse' in payload && payload.modelResponse)

  test('text next to calls, the calls, the pieces of an answer, and redactions', async () => {
    const turns = [
      call('look', { for: 'it' }, { text: 'I ask for swordfish.' }),
      text('It is', { finishReason: 'length' }),
      text(' swordfish.'),
    ]
    const play = await played(turns, {
      shields: { output: [hide('swordfish')] },
      tools: [tool('look', () => 'found')],
    })
    expect(responses(play)).toMatchObject([
      {
        text: 'I ask for [redacted pattern 1].',
        toolCalls: play.of('tool_call').map(({ call: toolCall }) => toolCall),
      },
      { text: 'It is', finishReason: 'length' },
      { text: ' [redacted pattern 1].', toolCalls: [] },
    ])
    expect(JSON.stringify(play.events)).not.toContain('swordfish')
    // As without shields, an answer joins the transcript when its step has ended.
    const order = play.events.map(({ type }) => type)
    expect(order.lastIndexOf('step_completed')).toBeLessThan(order.lastIndexOf('assistant_message'))
    expect(openStepsOf(play.events)).toEqual([])
  })

  test('a refusal in text', async () => {
    const play = await played([{ refusal: 'I will not name swordfish.' }], {
      shields: { output: [hide('swordfish')] },
    })
    expect(responses(play)).toMatchObject([{ text: '', refusal: 'I will not name [redacted pattern 1].' }])
  })

  test('calls stay withheld for other shields', async () => {
    const play = await played([call('look', { for: 'swordfish' }, { text: 'I look.' }), text('Done.')], {
      shields: { output: [hide('swordfish')], toolInput: [hide('swordfish')] },
      tools: [tool('look', () => 'found')],
    })
    expect(responses(play)).toMatchObject([
      { text: 'I look.', toolCalls: null },
      { text: 'Done.', toolCalls: [] },
    ])
  })

  test('the step has the duration of the request', async () => {
    const opened = await stage([text('Hello.')], {
      stream: false,
      shields: {
        output: [
          defineShield({
            name: 'slow',
            check: () => {
              opened.clock.increment(700)
              return { action: 'allow' }
            },
          }),
        ],
      },
    })
    const play = opened.run()
    await play.end(1)
    const [step] = completed(play, 'inference')
    expect(step).toMatchObject({ completedAt: 0, payload: { modelResponse: { text: 'Hello.' } } })
    expect(completed(play, 'shield_call')).toMatchObject([{ startedAt: 0, completedAt: 700 }])
  })

  test('nothing, if the run stops during the check', async () => {
    const slow = defineShield({ name: 'slow', check: (_content, { signal }) => forever(signal) })
    const play = (await stage([text('The password.')], { shields: { output: [slow] } })).run()
    await started(play, 'shield_call')
    play.run.cancel()
    expect(await play.run.result).toMatchObject({ state: 'CANCELLED' })
    expect(completed(play, 'inference')).toMatchObject([
      { outcome: 'ok', payload: { modelResponse: { text: null, finishReason: 'stop' } } },
    ])
    expect(JSON.stringify(play.events)).not.toContain('password')
    expect(openStepsOf(play.events)).toEqual([])
  })
})

describe('withheld content is in no step', () => {
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

  test('a refusal in text is held like any other answer', async () => {
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

test("a sub-agent's question ends the step of its call, and its continuation starts the step again", async () => {
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

test('a summary is a separate inference next to the step that needs it', async () => {
  const long = (word: string) => `${word} `.repeat(300)
  const play = await stage([text(long('one')), text(long('two')), text('What was said.'), text('Done.')], {
    context: { window: 500, strategy: 'summarize' },
    limits: { maxSteps: 10 },
  })
  for (const input of ['First.', 'Second.', 'Third.']) {
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
