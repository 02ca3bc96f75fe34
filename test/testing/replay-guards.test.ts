import type { Message } from '../../machines/agent/messages.js'
import { defaultConfig } from '../../src/core/config/resolve-config.js'
import { noGuards } from '../../guards/roster.js'
import { compareGuards, type RecordedStep, replayGuards, replaySteps } from '../../src/testing/index.js'
import { played } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'

const look = (n = 0): RecordedStep => ({
  calls: [{ name: 'look', arguments: JSON.stringify({ n }), result: 'nothing' }],
})

describe('replayGuards', () => {
  it('returns for a transcript the decisions of the live guards', async () => {
    const turns = [
      ...times(8, call('look')),
      call('look', { n: 1 }),
      calls(times(6, ['mail'] as const)),
      text('Done.'),
    ]
    const live = await played(turns, {
      tools: [tool('look', () => 'same', { readOnly: true }), tool('mail')],
    })
    const { findings } = replayGuards(live.result.messages, {}, { look: { readOnly: true } })
    const answerMessage = live
      .of('guardrail')
      .map(({ guard, action, rule, message, evidence }) => ({ guard, action, rule, message, evidence }))
    expect(answerMessage.length).toBeGreaterThan(4)
    expect(
      findings.map(({ guard, action, rule, message, evidence }) => ({
        guard,
        action,
        rule,
        message,
        evidence,
      })),
    ).toEqual(answerMessage)
  })

  it('returns the decisions under another configuration', async () => {
    const live = await played([...times(5, call('look')), text('Done.')], { tools: [tool('look')] })
    const strict = replayGuards(live.result.messages, { guardrails: { maxRepeatedToolSteps: 3 } })
    expect(strict.halt).toMatchObject({ step: 3, when: 'before', guard: 'repeated_call', action: 'halt' })
    expect(strict).toMatchObject({ steps: 5, calls: { executed: 3, refused: 0 } })
    expect(replayGuards(live.result.messages, { guardrails: { progress: null } }).findings).toEqual([])
  })

  it('starts a turn with each user message, and with no other', () => {
    const callTurn = (id: string): Message[] => [
      {
        role: 'assistant',
        id,
        createdAt: 0,
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', id: `${id}r`, createdAt: 0, tool_call_id: 'c', content: 'nothing' },
    ]
    const answerMessage = (more: object): Message =>
      ({ role: 'user', id: 'u', createdAt: 0, content: 'Go.', ...more }) as Message
    const transcript = (between: Message) => [
      answerMessage({}),
      ...callTurn('a'),
      between,
      ...callTurn('b'),
      between,
      ...callTurn('c'),
    ]
    expect(replayGuards(transcript(answerMessage({}))).findings).toEqual([])
    for (const more of [{ internal: true }, { data: { reason: 'steering' } }]) {
      expect(replayGuards(transcript(answerMessage(more))).findings).toMatchObject([
        { action: 'nudge', step: 2 },
      ])
    }
  })

  it('accepts results that are not text, calls without a result, and statuses', () => {
    const messages = times(4, [
      {
        role: 'assistant',
        id: 'a',
        createdAt: 0,
        content: null,
        tool_calls: ['x', 'y'].map((id) => ({
          id,
          type: 'function',
          function: { name: 'look', arguments: '{}' },
        })),
      },
      {
        role: 'tool',
        id: 'r',
        createdAt: 0,
        tool_call_id: 'x',
        content: [{ type: 'text', text: 'no' }],
        data: { status: 'denied' },
      },
    ]).flat() as unknown as Message[]
    expect(replayGuards(messages).halt).toMatchObject({ guard: 'policy_denied', step: 1 })
  })

  it('refuses an invalid configuration', () => {
    expect(() => replayGuards([], { guardrails: { progress: { memory: 65 } } })).toThrow(
      /progress\.memory must be/,
    )
  })
})

describe('replaySteps', () => {
  it('stops at a halt, and continues with the next turn', () => {
    const steps = [...times(30, look()), { ...look(), user: true }, look(), look()]
    const { findings, halt, calls: counted } = replaySteps(steps)
    expect(halt?.step).toBe(20)
    expect(findings.at(-1)).toMatchObject({ step: 32, action: 'nudge' })
    expect(counted).toEqual({ executed: 8, refused: 16 })
  })

  it('uses the annotations of tools, and the durations of calls', () => {
    const polls = times(30, look())
    expect(replaySteps(polls, {}, { look: { polling: true } }).findings).toEqual([])
    const lasting = (durationMs: number) =>
      polls.map(({ calls: [one] }) => ({ calls: one ? [{ ...one, durationMs }] : [] }))
    const actions = (durationMs: number) =>
      replaySteps(lasting(durationMs)).findings.map(({ action }) => action)
    expect(actions(3_000)).toEqual(['nudge', 'nudge'])
    expect(actions(30_000)).toEqual([])
    const prototype = replaySteps([{ calls: [{ name: '__proto__', arguments: '{}', result: '' }] }])
    expect(prototype.calls.executed).toBe(1)
  })

  it('hashes megabytes and thousands of calls', () => {
    const long = 'x 12:30:01 '.repeat(100_000)
    const big = [1, 2, 3].map(() => ({ calls: [{ name: 'look', arguments: '{}', result: long }] }))
    expect(replaySteps(big).findings).toMatchObject([{ action: 'nudge' }])
    const many = Array.from({ length: 3_000 }, (_, n) => look(n).calls).flat()
    const { findings } = replaySteps([{ calls: many }, { calls: many }], defaultConfig)
    expect(findings.filter(({ action }) => action === 'halt')).toEqual([])
  })
})

describe('compareGuards', () => {
  const callTurn = (id: string): Message[] => [
    {
      role: 'assistant',
      id,
      createdAt: 0,
      content: null,
      tool_calls: [{ id: `${id}c`, type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', id: `${id}r`, createdAt: 0, tool_call_id: `${id}c`, content: 'nothing' },
  ]
  const answerMessage: Message = { role: 'user', id: 'u', createdAt: 0, content: 'Go.' }
  const turn = (name: string, length: number): Message[] => [
    answerMessage,
    ...Array.from({ length }, (_, i) => callTurn(`${name}${i}`)).flat(),
  ]
  const transcript = [...turn('a', 5), ...turn('b', 2), ...turn('c', 4)]
  const usage = Array.from({ length: 11 }, () => ({ totalTokens: 10, cost: 0.5 }))

  it('counts the rest of the turn after each stop', () => {
    const [strict, lax] = compareGuards(
      transcript,
      {
        strict: { guardrails: { ...noGuards, maxRepeatedToolSteps: 2, repeatedCall: { haltAt: 'reached' } } },
        lax: { guardrails: noGuards },
      },
      { usage },
    )
    expect(strict?.stops.map(({ step, when, by }) => [step, when, by])).toEqual([
      [1, 'after', 'repeated_call'],
      [6, 'after', 'repeated_call'],
      [8, 'after', 'repeated_call'],
    ])
    expect(strict?.saved).toEqual({ responses: 5, calls: 5, tokens: 50, cost: 2.5 })
    expect(lax).toMatchObject({ stops: [], saved: { responses: 0, calls: 0, tokens: 0, cost: 0 } })
  })

  it('counts the step cap if it comes first', () => {
    const config = { limits: { maxSteps: 3 }, guardrails: noGuards }
    const [capped] = compareGuards(transcript, { capped: config }, { usage })
    expect(capped?.stops.map(({ step, by }) => [step, by])).toEqual([
      [2, 'max_steps'],
      [9, 'max_steps'],
    ])
    expect(capped?.saved).toMatchObject({ responses: 3, calls: 3, tokens: 30 })
  })

  it('reports unknown values as unknown', () => {
    const configs = { capped: { limits: { maxSteps: 3 }, guardrails: noGuards } }
    const free = usage.map((one) => ({ ...one, cost: null }))
    expect(compareGuards(transcript, configs)[0]?.saved).toMatchObject({ tokens: null, cost: null })
    expect(compareGuards(transcript, configs, { usage: free })[0]?.saved).toMatchObject({
      tokens: 30,
      cost: null,
    })
    expect(() => compareGuards(transcript, { x: { limits: { maxSteps: -1 } } })).toThrow(/maxSteps/)
    expect(() => compareGuards('no' as never, {})).toThrow(/must be a list of messages/)
  })
})
