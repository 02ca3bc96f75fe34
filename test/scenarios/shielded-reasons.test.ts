import { defineShield, memoryStore, patternShield } from '../../src/index.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import { replaySession, recordSession } from '../../src/testing/index.js'
import { stage, tick } from '../support/play.js'
import { openStepsOf } from '../support/steps.js'
import { call, calls, text, tool } from '../support/tools.js'

const secret = /SECRET/

test.each([
  ['redact', 'Rejected by the user: it is [redacted].'],
  ['block', 'Rejected by the user, for a reason that a shield withheld.'],
] as const)('the reason for a rejection is checked like any result (%s)', async (action, outcome) => {
  const shields = {
    toolOutput: [patternShield({ patterns: [secret], action, replacement: '[redacted]' })],
  }
  const store = memoryStore()
  const tools = [tool('pay', () => 'paid', { needsApproval: true }), tool('look', () => 'seen')]
  const turn = calls([['look'], ['pay', { n: 1 }], ['pay', { n: 2 }]])
  const theatre = await stage([turn, text('Then not.')], { store, tools, shields })
  const play = theatre.run('Go.', { session: 's' })
  const { pending = [] } = await play.run.result
  for (const one of pending) play.run.reject(one, 'it is SECRET.')
  const result = await play.run.result
  expect(result).toMatchObject({ state: 'COMPLETED' })
  const results = result.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results).toEqual(['seen', outcome, outcome])
  expect(JSON.stringify([play.events, result, theatre.requests.map(({ body }) => body)])).not.toMatch(secret)
  expect(play.of('tool_result').map(({ status }) => status)).toEqual(['ok', 'rejected', 'rejected'])

  const records = store.read('s')
  expect(JSON.stringify(records)).toMatch(secret)
  expect(JSON.stringify(clearRecords(records, 's'))).not.toMatch(secret)
  const recording = await recordSession(theatre.agent, 's')
  expect(JSON.stringify(recording)).not.toMatch(secret)
  await replaySession(theatre.agent, recording)
})

describe.each(['input', 'input and toolOutput'])('with shields for %s', (points) => {
  test.each([
    ['redact', 'Rejected by the user: it is [redacted].'],
    ['block', 'Rejected by the user, for a reason that a shield withheld.'],
  ] as const)("the reason for a rejection is checked as a person's message (%s)", async (action, outcome) => {
    const shield = patternShield({ name: 'hides', patterns: [secret], action, replacement: '[redacted]' })
    const seen: string[] = []
    const sees = defineShield({
      name: 'sees',
      check: (content, { point, toolName }) => {
        seen.push(`${point} ${toolName}: ${content}`)
        return { action: 'allow' }
      },
    })
    const shields = { input: [shield], ...(points !== 'input' && { toolOutput: [sees] }) }
    const store = memoryStore()
    const tools = [tool('pay', () => 'paid', { needsApproval: true })]
    const theatre = await stage(
      [
        calls([
          ['pay', { n: 1 }],
          ['pay', { n: 2 }],
        ]),
        text('Then not.'),
      ],
      {
        store,
        tools,
        shields,
      },
    )
    const play = theatre.run('Go.', { session: 's' })
    const { pending = [] } = await play.run.result
    for (const one of pending) play.run.reject(one, 'it is SECRET.')
    const result = await play.run.result
    expect(result).toMatchObject({ state: 'COMPLETED' })
    const results = result.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
    expect(results).toEqual([outcome, outcome])
    const everything = JSON.stringify([play.events, result, theatre.requests.map(({ body }) => body)])
    expect(everything).not.toMatch(secret)
    const ids = pending.map(({ callId }) => callId)
    expect(play.of('shield').map(({ point, shield: by, callId }) => [point, by, callId])).toEqual(
      ids.map((id) => ['input', 'hides', id]),
    )
    // Content that an input shield rejects goes to no other shield.
    const isSeen = points !== 'input' && action === 'redact'
    expect(seen).toEqual(isSeen ? ids.map(() => `toolOutput pay: ${outcome}`) : [])
    const steps = play.of('step_completed').flatMap((step) => {
      if (step.stepType !== 'shield_call' || step.callId === undefined) return []
      return [[step.point, step.callId, step.payload.violation?.action ?? null]]
    })
    expect(steps.filter(([point]) => point === 'input')).toEqual(ids.map((id) => ['input', id, action]))
    expect(steps).toHaveLength(isSeen ? 4 : 2)
    expect(openStepsOf(play.events)).toEqual([])

    const records = store.read('s')
    expect(JSON.stringify(records)).toMatch(secret)
    expect(JSON.stringify(clearRecords(records, 's'))).not.toMatch(secret)
    const recording = await recordSession(theatre.agent, 's')
    expect(JSON.stringify(recording)).not.toMatch(secret)
    await replaySession(theatre.agent, recording)
  })
})

test('a rejection that arrives while a tool runs is checked before the model reads it', async () => {
  let finish = (): void => undefined
  const works = new Promise<void>((resolve) => {
    finish = resolve
  })
  const tools = [
    tool('look', () => works.then(() => 'seen')),
    tool('pay', () => 'paid', { needsApproval: true }),
  ]
  const shields = { input: [patternShield({ patterns: [secret], action: 'redact', replacement: '…' })] }
  const play = (await stage([calls([['look'], ['pay']]), text('Then not.')], { tools, shields })).run()
  await play.event('step_started', ({ stepType }) => stepType === 'tool_execution')
  const [, pay] = play.of('tool_call')
  play.run.reject(pay?.call.id ?? '', 'it is SECRET.')
  expect(play.of('tool_result')).toEqual([])
  finish()
  const { messages } = await play.end(2)
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results).toEqual(['seen', 'Rejected by the user: it is ….'])
})

test('a rejection that arrives while shields check a result is checked, too', async () => {
  let answer = (): void => undefined
  const shield = defineShield({
    name: 'slow',
    check: (content) =>
      content === 'seen'
        ? new Promise((resolve) => {
            answer = () => {
              resolve({ action: 'allow' })
            }
          })
        : { action: 'redact', content: content.replace(secret, '…') },
  })
  const tools = [tool('look', () => 'seen'), tool('pay', () => 'paid', { needsApproval: true })]
  const shields = { toolOutput: [shield] }
  const play = (await stage([calls([['look'], ['pay']]), text('Then not.')], { tools, shields })).run()
  await play.event('step_started', ({ stepType }) => stepType === 'shield_call')
  const [, pay] = play.of('tool_call')
  play.run.reject(pay?.call.id ?? '', 'it is SECRET.')
  await tick()
  answer()
  const { messages } = await play.end(2)
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results).toEqual(['seen', 'Rejected by the user: it is ….'])
})

test('without such shields or a reason, a rejection is emitted immediately', async () => {
  const tools = [tool('pay', () => 'paid', { needsApproval: true })]
  const shields = { toolOutput: [patternShield({ patterns: [secret], action: 'block' })] }
  const play = (await stage([call('pay'), text('Then not.')], { tools, shields })).run()
  const { pending = [] } = await play.run.result
  for (const one of pending) play.run.reject(one)
  await play.run.result
  expect(play.of('tool_result')).toMatchObject([{ status: 'rejected', content: 'Rejected by the user.' }])
  expect(play.of('step_started').filter(({ stepType }) => stepType === 'shield_call')).toEqual([])
})
