import * as fc from 'fast-check'
import { findHistoryProblem } from '../../src/rehearsal/request-problem.js'
import type { Turn, WireMessage } from '../../src/rehearsal/index.js'
import { body, playing, post, start } from './support.js'

const user = { role: 'user', content: 'Sum the files, please.' }
const result = (id: string, content = 'done') => ({ role: 'tool', tool_call_id: id, content })
const calling = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: `tool_${id}`, arguments: '{}' } })),
})

describe('a history', () => {
  test.each([
    [
      'a call without a result',
      [user, calling('a')],
      'messages[1] calls a, which has no result right after it.',
    ],
    [
      'a result after another message',
      [user, calling('a'), user, result('a')],
      'messages[1] calls a, which has',
    ],
    [
      'one result for two calls',
      [user, calling('a', 'b'), result('a')],
      'messages[1] calls b, which has no result',
    ],
    [
      'results out of order',
      [user, calling('a', 'b'), result('b'), result('a')],
      'messages[2] should be the result of a',
    ],
    [
      'two results for a call',
      [user, calling('a'), result('a'), result('a')],
      'messages[3] is a result without a preceding call',
    ],
    ['a result without a call', [user, result('a')], 'messages[1] is a result without a preceding call (a).'],
    [
      'two calls with one id',
      [user, calling('a', 'a'), result('a'), result('a')],
      'messages[1] has two tool calls with',
    ],
    ['calls that are not a list', [user, calling()], 'messages[1] has an empty list of tool calls.'],
    ['an empty answer', [user, { role: 'assistant', content: null }], 'messages[1] has no content.'],
    [
      'an empty result',
      [user, calling('a'), { role: 'tool', tool_call_id: 'a' }],
      'messages[2] has no content.',
    ],
    [
      'calls of a user',
      [{ ...calling('a'), role: 'user' }, result('a')],
      'messages[0] has the role user and tool calls.',
    ],
  ])('with %s is answered with 400 and consumes no turn', async (_, messages, problem) => {
    const rehearsal = await playing({ text: 'Hi' })
    const response = await post(rehearsal, body({ messages }))
    const { error } = (await response.json()) as { error: { code: string; message: string; param: string } }
    expect(response.status).toBe(400)
    expect(error).toMatchObject({ code: 'rehearsal_invalid_history', param: 'messages' })
    expect(error.message.startsWith(problem)).toBe(true)
    expect(rehearsal.remaining).toBe(1)
    expect(rehearsal.requests[0]?.refused).toBe(error.message)
  })

  test('that is invalid is accepted with strictHistory: false', async () => {
    const rehearsal = await start({ scenario: { turns: [{}] }, strictHistory: false })
    expect((await post(rehearsal, body({ messages: [user, calling('a')] }))).status).toBe(200)
  })

  test('in which each call has its result is valid, and invalid without any one result', () => {
    const batches = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 })
    const property = fc.property(batches, fc.nat(), (sizes, pick) => {
      const messages = [user, ...sizes.flatMap(batch)] as WireMessage[]
      expect(findHistoryProblem(messages)).toBeNull()
      const results = messages.flatMap(({ role }, i) => (role === 'tool' ? [i] : []))
      const left = results[pick % results.length]
      expect(findHistoryProblem(messages.filter((_, i) => i !== left))).not.toBeNull()
    })
    fc.assert(property)
  })

  function batch(size: number, turn: number) {
    const ids = Array.from({ length: size }, (_, i) => `${turn}.${i}`)
    return [calling(...ids), ...ids.map((id) => result(id))]
  }
})

describe('an expectation', () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    user,
    calling('a', 'b'),
    result('a', '42'),
    result('b'),
  ]
  const tools = [{ type: 'function', function: { name: 'tool_a', parameters: {} } }]

  const answer = async (expect: Turn['expect']): Promise<string> => {
    const response = await post(await playing({ text: 'fine', expect }), body({ messages, tools }))
    const { error } = (await response.json()) as { error?: { message: string; code: string } }
    return error ? `${response.status} ${error.code}: ${error.message}` : 'ok'
  }

  test('that is met changes nothing', async () => {
    const expectations: Turn['expect'] = {
      lastUserIncludes: 'Sum the files',
      systemIncludes: 'brief',
      toolResultsFor: ['a', 'tool_b'],
      toolResultsInclude: ['42', 'don'],
      tools: ['tool_a'],
    }
    expect(await answer(expectations)).toBe('ok')
  })

  test.each<[NonNullable<Turn['expect']>, string]>([
    [
      { lastUserIncludes: 'Bye' },
      'expected the last user message to include "Bye", got "Sum the files, please."',
    ],
    [{ systemIncludes: 'long' }, 'expected the system message to include "long", got "Be brief."'],
    [{ toolResultsFor: ['a'] }, 'expected tool results for a, got tool_a (a), tool_b (b)'],
    [{ toolResultsFor: ['b', 'a'] }, 'expected tool results for b, a, got tool_a (a), tool_b (b)'],
    [{ toolResultsFor: [] }, 'expected tool results for none, got tool_a (a), tool_b (b)'],
    [{ toolResultsInclude: ['42', '43'] }, 'expected a tool result to include "43", got "42", "done"'],
    [{ tools: ['tool_b'] }, 'expected the tool tool_b in the request, got tool_a'],
  ])(
    'that is not met (%j) is answered with 400, the turn and the expectation',
    async (expectations, message) => {
      expect(await answer(expectations)).toBe(`400 rehearsal_unexpected_request: turns[0] ${message}.`)
    },
  )

  test('is stored in the request as the reason for its refusal', async () => {
    const rehearsal = await playing({ expect: { lastUserIncludes: 'Bye' } })
    await post(rehearsal)
    expect(rehearsal.requests[0]).toMatchObject({ turn: 0, refused: expect.stringContaining('"Bye"') })
  })
})
