import { memoryStore, patternShield } from '../../src/index.js'
import { shownRecords } from '../../src/core/sessions/shown-records.js'
import { playSession, recordSession } from '../../src/testing/index.js'
import { stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

const secret = /SECRET/

test.each([
  ['redact', 'Rejected by the user: it is [redacted].'],
  ['block', 'Rejected by the user, for a reason that a shield has withheld.'],
] as const)('why a person refuses a call is looked at like any result (%s)', async (action, heard) => {
  const shields = {
    toolOutput: [patternShield({ patterns: [secret], action, replacement: '[redacted]' })],
  }
  const store = memoryStore()
  const tools = [tool('pay', () => 'paid', { needsApproval: true }), tool('look', () => 'seen')]
  const asked = calls([['look'], ['pay', { n: 1 }], ['pay', { n: 2 }]])
  const theatre = await stage([asked, text('Then not.')], { store, tools, shields })
  const play = theatre.run('Go.', { session: 's' })
  const { pending = [] } = await play.run.result
  for (const one of pending) play.run.reject(one, 'it is SECRET.')
  const result = await play.run.result
  expect(result).toMatchObject({ state: 'COMPLETED' })
  const results = result.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results).toEqual(['seen', heard, heard])
  expect(JSON.stringify([play.events, result, theatre.requests.map(({ body }) => body)])).not.toMatch(secret)
  expect(play.of('tool_result').map(({ status }) => status)).toEqual(['ok', 'rejected', 'rejected'])

  const records = store.read('s')
  expect(JSON.stringify(records)).toMatch(secret)
  expect(JSON.stringify(shownRecords(records, 's'))).not.toMatch(secret)
  const recording = await recordSession(theatre.agent, 's')
  expect(JSON.stringify(recording)).not.toMatch(secret)
  await playSession(theatre.agent, recording)
})

test('without such shields, and without a reason, a refusal is told at once', async () => {
  const tools = [tool('pay', () => 'paid', { needsApproval: true })]
  const shields = { toolOutput: [patternShield({ patterns: [secret], action: 'block' })] }
  const play = (await stage([call('pay'), text('Then not.')], { tools, shields })).run()
  const { pending = [] } = await play.run.result
  for (const one of pending) play.run.reject(one)
  await play.run.result
  expect(play.of('tool_result')).toMatchObject([{ status: 'rejected', content: 'Rejected by the user.' }])
  expect(play.of('step_started').filter(({ stepType }) => stepType === 'shield_call')).toEqual([])
})
