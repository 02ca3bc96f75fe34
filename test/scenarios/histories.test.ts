import { createSession, ToolError } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { clientTool, call, calls, text, times, tool } from '../support/tools.js'
import { type Stage, stage, textOf } from '../support/play.js'
import { sampledRows } from '../support/extent.js'

/** A lone surrogate, left by a cut through an emoji. */
const half = '\ud83d'

/** One run and one more message to the same session. Both end well, and every sent message was accepted. */
async function twice(opened: Stage, more: { input?: Parameters<Stage['run']>[0] } = {}) {
  const session = createSession()
  const first = await opened.run(more.input ?? 'Go.', { session }).run.result
  expect(first).toMatchObject({ state: 'COMPLETED' })
  const second = await opened.run('And now?', { session }).run.result
  expect(second).toMatchObject({ state: 'COMPLETED', output: 'Fine.' })
  expect(opened.requests.map(({ refused }) => refused).filter(Boolean)).toEqual([])
  return { first, sent: opened.wire(-1) }
}

const deep = `${'{"a":'.repeat(5_000)}"\\ud83d"${'}'.repeat(5_000)}`

const mistakes: [what: string, turn: Turn, kept: object, sent: object][] = [
  ['a name without a character', call('', {}), { name: '' }, { name: 'unnamed' }],
  ['a name with a dot', call('a.b', {}), { name: 'a.b' }, { name: 'a_b' }],
  ['a name of 80 characters', call('n'.repeat(80)), { name: 'n'.repeat(80) }, { name: 'n'.repeat(64) }],
  ['a list as arguments', call('look', '[]'), { arguments: '[]' }, { arguments: '{"no_object":[]}' }],
  ['a number as arguments', call('look', '42'), { arguments: '42' }, { arguments: '{"no_object":42}' }],
  ['a string as arguments', call('look', '"a"'), { arguments: '"a"' }, { arguments: '{"no_object":"a"}' }],
  [
    'arguments nested too deeply',
    call('look', deep),
    { arguments: deep },
    { arguments: JSON.stringify({ nested_too_deeply: deep }) },
  ],
  ['null as arguments', call('look', 'null'), { arguments: '{}' }, { arguments: '{}' }],
  [
    'half an object as arguments',
    call('look', '{"a'),
    { arguments: '{"a' },
    { arguments: '{"invalid_json":"{\\"a"}' },
  ],
  [
    'half a surrogate pair in arguments',
    call('look', `{"a":"${half}"}`),
    { arguments: `{"a":"${half}"}` },
    { arguments: '{"a":"\ufffd"}' },
  ],
  [
    'half a surrogate pair in arguments, written as an escape',
    call('look', '{"a":"\\ud83d"}'),
    { arguments: '{"a":"\\ud83d"}' },
    { arguments: '{"a":"\ufffd"}' },
  ],
]

describe.each(sampledRows([true, false]))('with stream: %s, a call with an error of the model', (stream) => {
  it.each(mistakes)(
    '%s: is stored unchanged, and sent in a form that every provider accepts',
    async (_, turn, createStore, sent) => {
      const opened = await stage([turn, text('Well.'), text('Fine.')], { tools: [tool('look')], stream })
      const { first, sent: wire } = await twice(opened)
      expect(first.messages[1]).toMatchObject({ tool_calls: [{ function: createStore }] })
      expect(wire[1]).toMatchObject({ tool_calls: [{ function: sent }] })
    },
  )
})

describe('an unpaired surrogate is stored, and sent as U+FFFD', () => {
  const torn = `a${half}b`
  const whole = 'a\ufffdb'

  it.each([
    ['a result of a tool', () => torn],
    ['an error of a tool', () => Promise.reject(new Error(torn))],
    ['a refusal of a tool', () => Promise.reject(new ToolError('policy_denied', torn))],
  ])('in %s', async (_, execute) => {
    const opened = await stage([call('look'), text('Well.'), text('Fine.')], {
      tools: [tool('look', execute)],
    })
    const { first, sent } = await twice(opened)
    expect(textOf(first.messages[2])).toContain(half)
    expect(textOf(sent[2])).toContain('\ufffd')
  })

  it("in the model's text, reasoning and refusals", async () => {
    const turn = { text: torn, reasoning: torn }
    const opened = await stage([turn, text('Fine.')])
    expect((await twice(opened)).sent[1]).toEqual({ role: 'assistant', content: whole })
    const refused = await stage([{ refusal: torn }, text('Fine.')])
    expect((await twice(refused)).sent[1]).toEqual({ role: 'assistant', content: whole })
  })

  it("in the user's messages, instructions and steering", async () => {
    const opened = await stage([text('Well.'), text('Fine.')], { instructions: torn })
    const { sent } = await twice(opened, { input: [{ content: [{ type: 'text', text: torn }] }] })
    expect(sent.slice(0, 2)).toEqual([
      { role: 'system', content: whole },
      { role: 'user', content: [{ type: 'text', text: whole }] },
    ])
    const steered = await stage([call('look'), text('Well.')], {
      tools: [tool('look', () => play.run.steer(torn))],
    })
    const play = steered.run()
    await play.end(2)
    expect(steered.wire(-1).at(-1)).toEqual({ role: 'user', content: whole })
  })

  it("in a person's answers", async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const opened = await stage([calls([['pay'], ['pick']]), text('Fine.')], {
      tools: [pay, clientTool('pick')],
    })
    const { run } = opened.run()
    const [question] = (await run.result).pending ?? []
    run.reject(question?.callId ?? '', torn)
    const [open] = (await run.result).pending ?? []
    run.addToolOutput(open?.callId ?? '', torn)
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
    expect(opened.wire(-1).slice(2).map(textOf)).toEqual([expect.stringContaining(whole), whole])
  })
})

describe('an answer that was truncated before its first word', () => {
  it.each([true, false])('is stored, and not sent (stream: %s)', async (stream) => {
    const cut = { finishReason: 'length' }
    const opened = await stage([cut, { ...cut, reasoning: 'Hm.' }, text('Well.'), text('Fine.')], { stream })
    const { first, sent } = await twice(opened)
    expect(first.messages[1]).toMatchObject({ role: 'assistant', content: '' })
    expect(first.messages[3]).toMatchObject({ role: 'assistant', content: '', reasoning: 'Hm.' })
    expect(sent.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })

  it('does not break a session that ends with it', async () => {
    const opened = await stage([{ finishReason: 'length' }, text('Fine.')], {
      guardrails: { maxTokensRecoveries: 0 },
    })
    const session = createSession()
    await opened.run('Go.', { session }).run.result
    expect(await opened.run('And now?', { session }).run.result).toMatchObject({ state: 'COMPLETED' })
    expect(opened.wire(-1)).toEqual([{ role: 'user', content: 'Go.\n\nAnd now?' }])
  })
})

it('sends a placeholder for an empty result', async () => {
  const opened = await stage([call('look'), text('Well.'), text('Fine.')], {
    tools: [tool('look', () => '')],
  })
  const { first, sent } = await twice(opened)
  expect(first.messages[2]).toMatchObject({ content: '' })
  expect(sent[2]).toMatchObject({ content: '(empty)' })
})

it('splits a batch with more calls than a message may have', async () => {
  const many = calls(times(300, ['look'] as const))
  const opened = await stage([many, text('Well.'), text('Fine.')], { tools: [tool('look')] })
  const { first, sent } = await twice(opened)
  expect(first.messages).toHaveLength(303)
  expect(sent.flatMap(({ tool_calls: calls }) => (calls ? [calls.length] : []))).toEqual([128, 128, 44])
  expect(sent.filter(({ role }) => role === 'tool')).toHaveLength(300)
})

it('shortens ids that are too long for OpenAI, consistently for a call and its result', async () => {
  const id = `chatcmpl-tool-${'0'.repeat(32)}`
  const opened = await stage([{ toolCalls: [{ id, name: 'look' }] }, text('Well.'), text('Fine.')], {
    tools: [tool('look')],
  })
  const { first, sent } = await twice(opened)
  const short = sent[1]?.tool_calls?.[0]?.id
  expect(first.messages[1]).toMatchObject({ tool_calls: [{ id }] })
  expect(short).toMatch(/^call_[\da-f]{32}$/)
  expect(sent[2]).toMatchObject({ tool_call_id: short })
})
