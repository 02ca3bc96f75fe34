import type { ElicitationField } from '../../machines/agent/run-result.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { createAgent, defineShield, UsageError } from '../../src/index.js'
import { ManualModel } from '../support/manual-model.js'
import { accepted, book, page, seat } from '../support/asking.js'
import { stage, textOf } from '../support/play.js'
import { pair } from '../support/sub-agents.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'

const done = text('Done.')
const asks = call('book', { flight: 'X1' })

describe('a tool that asks a person during its call', () => {
  it('pauses the run, and is called again with the answer and its memo', async () => {
    const tools = [book()]
    const theatre = await stage([asks, done], { tools, store: memoryStore() })
    const play = theatre.run()
    const { pending, ...waiting } = await play.rest()
    expect(waiting).toMatchObject({ state: 'WAITING_FOR_INPUT', reason: 'tool_output' })
    expect(pending).toEqual([
      {
        callId: expect.stringMatching(/^call_1_1\/ask-[0-9a-f]{8}$/) as unknown,
        name: 'book',
        arguments: '{"flight":"X1"}',
        fingerprint: expect.any(String) as unknown,
        messageId: 'm2',
        needs: 'elicitation',
        elicitation: seat,
      },
    ])
    expect(play.of('elicitation_requested')).toMatchObject([
      { callId: pending?.[0]?.callId, name: 'book', elicitation: seat },
    ])
    const [question] = pending ?? []
    if (question?.needs === 'elicitation') play.run.addToolOutput(question, accepted)
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, accepted]])
    expect(theatre.wire(1).slice(-1).map(textOf)).toEqual(['booked'])
  })

  it('accepts no approval and no rejection', async () => {
    const theatre = await stage([asks, done], { tools: [book()] })
    const play = theatre.run()
    const [question] = (await play.rest()).pending ?? []
    expect(() => play.run.approve(question?.callId ?? '')).toThrow(/is not waiting for this answer/)
    expect(() => play.run.reject(question?.callId ?? '')).toThrow(/is not waiting for this answer/)
  })

  const misfits: [string, unknown, string][] = [
    ['no action', { content: {} }, 'action'],
    ['a string', 'yes', 'action'],
    ['no content', { action: 'accept' }, 'content.seat'],
    ['a list', { action: 'accept', content: [] }, 'content'],
    ['another type', { action: 'accept', content: { seat: 12 } }, 'content.seat'],
    ['a short text', { action: 'accept', content: { seat: 'A' } }, 'content.seat'],
    ['a number that is too large', { action: 'accept', content: { seat: '12A', meals: 3 } }, 'content.meals'],
    ['a fraction', { action: 'accept', content: { seat: '12A', meals: 0.5 } }, 'content.meals'],
    ['an unknown field', { action: 'accept', content: { seat: '12A', row: 1 } }, 'content.row'],
    [
      'an inherited field',
      { action: 'accept', content: { seat: '12A', constructor: 1 } },
      'content.constructor',
    ],
  ]
  it.each(misfits)('refuses an answer with %s, by its field, and stays open', async (_, answer, field) => {
    const theatre = await stage([asks, done], { tools: [book()] })
    const play = theatre.run()
    const { pending = [] } = await play.rest()
    const [question] = pending
    const refuse = () => play.run.addToolOutput(question?.callId ?? '', answer)
    expect(refuse).toThrow(expect.objectContaining({ code: 'invalid_answer', subject: field }))
    expect(play.run.state).toBe('WAITING_FOR_INPUT')
    play.run.addToolOutput(question?.callId ?? '', JSON.stringify(accepted))
    await play.end(2)
  })

  it.each(['decline', 'cancel'] as const)('reads that the person has chosen %s', async (action) => {
    const tools = [book()]
    const theatre = await stage([asks, done], { tools })
    const play = theatre.run()
    const [question] = (await play.rest()).pending ?? []
    play.run.addToolOutput(question?.callId ?? '', { action, content: { seat: 7 } })
    await play.end(2)
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, { action }]])
  })

  it('asks several things at once, and is called when all are answered', async () => {
    const tools = [book([seat, page])]
    const theatre = await stage([asks, done], { tools })
    const play = theatre.run()
    const [first, second] = (await play.rest()).pending ?? []
    play.run.addToolOutput(second?.callId ?? '', { action: 'accept', content: { forged: true } })
    expect((await play.rest()).pending).toMatchObject([{ callId: first?.callId }])
    expect(() => play.run.addToolOutput(second?.callId ?? '', { action: 'cancel' })).toThrow(
      expect.objectContaining({ code: 'already_answered' }),
    )
    play.run.addToolOutput(first?.callId ?? '', accepted)
    await play.end(2)
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, accepted, { action: 'accept' }]])
  })

  it('waits next to approvals and client calls, each for its own answer', async () => {
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const tools = [book(), pay, clientTool('pick')]
    const batch = calls([['book', { flight: 'X1' }], ['pay'], ['pick']])
    const theatre = await stage([batch, done], { tools })
    const play = theatre.run()
    const { pending = [], reason } = await play.rest()
    expect([reason, pending.map(({ needs }) => needs)]).toEqual([
      'approval',
      ['elicitation', 'approval', 'client'],
    ])
    play.run.addToolOutput(pending[0]?.callId ?? '', accepted)
    play.run.approve(pending[1]?.callId ?? '')
    expect((await play.rest()).pending?.map(({ needs }) => needs)).toEqual(['client'])
    play.run.addToolOutput(pending[2]?.callId ?? '', 'picked')
    await play.end(2)
    expect(theatre.wire(1).slice(-3).map(textOf)).toEqual(['booked', 'paid', 'picked'])
  })

  it('is answered from another process by a message, which is validated there', async () => {
    const store = memoryStore()
    const tools = [book()]
    const theatre = await stage([asks, done], { tools, store })
    const play = theatre.run('Go.', { session: 's' })
    const [question] = (await play.rest()).pending ?? []
    const { callId = '', fingerprint = '' } = question ?? {}
    const other = createAgent({ model: new ManualModel(), store })
    const wrong = other.send('s', { type: 'toolOutput', callId, value: { action: 'accept' } })
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_answer', subject: 'content.seat' })
    await other.send('s', { type: 'toolOutput', callId, fingerprint, value: accepted })
    expect(await (await theatre.agent.resume('s')).result).toMatchObject({ state: 'COMPLETED' })
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, accepted]])
    expect(tools[0]?.inputs).toHaveLength(2)
  })

  it('asks through a sub-agent, with the path to the sub-agent', async () => {
    const tools = [book()]
    const { parent } = await pair([call('research', { task: 'Book.' }), done], [asks, text('Booked.')], {
      child: { tools },
    })
    const play = parent.run()
    const { pending = [] } = await play.rest()
    expect(pending).toMatchObject([
      { needs: 'elicitation', path: ['research'], name: 'book', elicitation: seat },
    ])
    const [question] = pending
    expect(() => play.run.addToolOutput(question?.callId ?? '', {})).toThrow(UsageError)
    play.run.addToolOutput(question?.callId ?? '', accepted)
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(tools[0]?.does).toEqual([[{ flight: 'X1' }, accepted]])
  })

  it('is closed when the run is cancelled, and counts as interrupted', async () => {
    const theatre = await stage([asks], { tools: [book()], store: memoryStore() })
    const play = theatre.run()
    await play.rest()
    play.run.cancel()
    expect(await play.run.result).toMatchObject({ state: 'CANCELLED' })
    expect(play.of('tool_result')).toMatchObject([{ status: 'interrupted' }])
  })

  it('asks nothing that a shield blocks', async () => {
    const secret = defineShield({
      name: 'no-seats',
      check: (content) =>
        content.includes('Which seat') ? { action: 'block', message: 'No seats.' } : { action: 'allow' },
    })
    const theatre = await stage([asks, done], { tools: [book()], shields: { toolOutput: [secret] } })
    const play = theatre.run()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(JSON.stringify(play.events)).not.toContain('Which')
    expect(play.of('tool_result')).toMatchObject([{ status: 'blocked' }])
    expect(play.of('shield')).toMatchObject([{ shield: 'no-seats', action: 'block', point: 'toolOutput' }])
  })
})

describe('a field of a form', () => {
  const fits: [string, ElicitationField, unknown[], unknown[]][] = [
    ['a text', { type: 'string', maxLength: 2 }, ['', 'ab', '👍👍'], ['abc', 1, null]],
    ['an address', { type: 'string', format: 'email' }, ['a@b.c'], ['a', 'a b@c']],
    ['a link', { type: 'string', format: 'uri' }, ['https://a.b'], ['a']],
    ['a day', { type: 'string', format: 'date' }, ['2026-11-26'], ['2026-13-01', '26.11.2026']],
    ['a time', { type: 'string', format: 'date-time' }, ['2026-11-26T10:00:00Z'], ['2026-11-26', 'now']],
    ['a number', { type: 'number', minimum: 0 }, [0, 1.5], [-1, '1', Infinity, NaN]],
    ['yes or no', { type: 'boolean' }, [true, false], ['true', 0]],
    ['a choice', { type: 'string', enum: ['a', 'b'] }, ['a'], ['c', 'constructor']],
    ['a named choice', { type: 'string', oneOf: [{ const: 'a', title: 'A' }] }, ['a'], ['A']],
    [
      'choices',
      { type: 'array', items: { enum: ['a', 'b'] }, minItems: 1, maxItems: 1 },
      [['a']],
      [[], ['a', 'b'], ['c'], 'a'],
    ],
    [
      'named choices',
      { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }] } },
      [[], ['a']],
      [['A']],
    ],
  ]
  it.each(fits)('accepts valid values: %s', async (_, field, good, bad) => {
    const { findFault } = await import('../../src/core/sessions/elicitation-answer.js')
    expect(good.map((value) => findFault(field, value))).toEqual(good.map(() => false))
    for (const value of bad) expect(findFault(field, value)).toMatch(/^it must (be|have) /)
  })
})
