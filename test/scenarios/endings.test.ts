import { played, stage } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

const cut = (words: string) => text(words, { finishReason: 'length' })

describe.each(sampledRows([true, false]))('a truncated answer (stream: %s)', (stream) => {
  it('is continued and joined, without showing the nudge to anyone', async () => {
    const { result, stage, of, events } = await played([cut('One, two, '), cut('three, '), text('four.')], {
      stream,
    })
    expect(result).toMatchObject({
      state: 'COMPLETED',
      reason: 'end_turn',
      output: 'One, two, three, four.',
      steps: 3,
    })
    const internal = result.messages.filter(({ internal }) => internal)
    expect(internal).toMatchObject(times(2, { role: 'user', data: { reason: 'max_tokens_recovery' } }))
    expect(of('user_message')).toHaveLength(1)
    expect(stage.wire(1).at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('cut off') })
    const shown = events.map((event) => (event.type === 'stream_chunk' ? event.text : '')).join('')
    expect(shown).toBe('One, two, three, four.')
  })

  it('completes with max_tokens after the last recovery', async () => {
    const { result } = await played(times(3, cut('more ')), { stream })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'max_tokens', output: 'more more more ' })
  })

  it('is accepted unchanged with maxTokensRecoveries 0', async () => {
    const { result } = await played([cut('Half')], { stream, guardrails: { maxTokensRecoveries: 0 } })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'max_tokens', output: 'Half', steps: 1 })
  })
})

describe('a truncated call', () => {
  const wipe = tool('wipe')
  const half = call('wipe', { path: '/tmp' }, { finishReason: 'length', text: 'I will.' })
  beforeEach(() => wipe.inputs.splice(0))

  it('is never executed, even if its JSON parses: it is closed, and the model is asked again', async () => {
    const { result, stage, of } = await played([half, call('wipe', { path: '/tmp/x' }), text('Done.')], {
      tools: [wipe],
    })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(wipe.inputs).toEqual([{ path: '/tmp/x' }])
    const [, closed, nudge] = stage.wire(1).slice(-3)
    expect(closed).toMatchObject({ role: 'tool', content: expect.stringContaining('cut off') })
    expect(nudge).toMatchObject({ role: 'user' })
    expect(of('guardrail')).toMatchObject([{ guard: 'max_tokens', action: 'recover' }])
  })

  it('ends in ERROR/max_tokens after the last recovery', async () => {
    const { result } = await played(times(3, half), { tools: [wipe] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'max_tokens' })
    expect(result.error?.message).toMatch(/sampling\.maxTokens/)
    expect(wipe.inputs).toEqual([])
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', data: { status: 'not_executed' } })
  })

  it('does not count as a failure', async () => {
    const { result } = await played([...times(5, half), text('Done.')], {
      tools: [wipe],
      guardrails: { maxTokensRecoveries: 9 },
    })
    expect(result.state).toBe('COMPLETED')
  })
})

describe('an empty answer', () => {
  it('is requested again once', async () => {
    const { result, stage } = await played([{}, text('Here I am.')])
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Here I am.', steps: 2 })
    expect(stage.wire(1)).toEqual(stage.wire(0))
  })

  it('ends in ERROR/empty_response if it occurs twice', async () => {
    const { result } = await played([{}, text(' \n')])
    expect(result).toMatchObject({ state: 'ERROR', reason: 'empty_response' })
    expect(result.error?.message).toMatch(/neither text nor tool calls/)
  })

  it('after a failed tool causes at most two new prompts', async () => {
    const broken = tool('broken', () => {
      throw new Error('no such file')
    })
    const { result, stage, of } = await played([call('broken'), {}, {}, {}], { tools: [broken] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'empty_response', steps: 4 })
    expect(stage.wire(2).at(-1)?.content).toMatch(/tool call failed/)
    expect(of('user_message')).toHaveLength(1)
    const mended = await played([call('broken'), {}, text('There is no such file.')], { tools: [broken] })
    expect(mended.result.output).toBe('There is no such file.')
  })

  it('with finish reason tool_calls but no call ends like any other, without a loop', async () => {
    const { result } = await played([text('I would call.', { finishReason: 'tool_calls' })])
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: 'I would call.' })
    const empty = await played(times(2, { finishReason: 'tool_calls' }))
    expect(empty.result).toMatchObject({ state: 'ERROR', reason: 'empty_response' })
  })

  it('is accepted if the guard is off', async () => {
    const { result } = await played([{}], { guardrails: { emptyAnswer: null } })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: '' })
  })

  it('with reasoning alone is empty', async () => {
    const { result } = await played([{ reasoning: 'Hm, hm.' }, text('Yes.')])
    expect(result).toMatchObject({ output: 'Yes.', steps: 2 })
  })
})

describe('the end of a turn', () => {
  it('can be a refusal, whose text is the output', async () => {
    const { result } = await played([{ refusal: 'I cannot help with that.' }])
    expect(result).toMatchObject({
      state: 'COMPLETED',
      reason: 'refusal',
      output: 'I cannot help with that.',
    })
    expect(result.messages.at(-1)).toMatchObject({ refusal: 'I cannot help with that.' })
  })

  it('can be the content filter, whose calls never run', async () => {
    const work = tool('work')
    const { result } = await played([call('work', {}, { text: 'Well,', finishReason: 'content_filter' })], {
      tools: [work],
    })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'content_filter', output: 'Well,' })
    expect(work.inputs).toEqual([])
    expect(result.messages.at(-1)).toMatchObject({ role: 'tool', data: { status: 'not_executed' } })
  })

  it('can be an unknown finish reason', async () => {
    const { result } = await played([text('Enough.', { finishReason: 'because_i_say_so' })])
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn' })
  })

  it('is not a finish reason stop with calls, which run', async () => {
    const work = tool('work')
    const { result } = await played([call('work', {}, { finishReason: 'stop' }), text('Done.')], {
      tools: [work],
    })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(work.inputs).toHaveLength(1)
  })

  it('keeps two calls with the same id apart', async () => {
    const work = tool('work', ({ n }) => `did ${n}`)
    const toolCalls = [1, 2].map((n) => ({ id: 'same', name: 'work', arguments: { n } }))
    const { result } = await played([{ toolCalls }, text('Done.')], { tools: [work] })
    expect(result.messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { content: 'did 1' },
      { content: 'did 2' },
    ])
  })

  it('always leaves a history that other messages can follow', async () => {
    const turns = [
      calls([['work'], ['work', { n: 2 }]], { finishReason: 'content_filter' }),
      call('work', {}, { refusal: 'No.' }),
      text('Fine.'),
    ]
    const theatre = await stage(turns, { tools: [tool('work')] })
    for (const [index, reason] of ['content_filter', 'refusal', 'end_turn'].entries()) {
      expect((await theatre.run('Go.', { session: 's' }).end(index + 1)).reason).toBe(reason)
    }
  })
})
