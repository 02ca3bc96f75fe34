import * as fc from 'fast-check'
import { createSession, restoreSession, Session, UsageError } from '../../src/index.js'
import { findHistoryProblem } from '../support/history.js'
import { stage } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'

const done = text('Done.', { usage: { input: 90, output: 10 } })
const same = () => tool('look', () => 'same', { readOnly: true })

/** A session after a write and a read. */
function reloaded(session: Session): Session {
  return restoreSession(JSON.parse(JSON.stringify(session)))
}

/** A stored session with a history, as plain JSON for the test to damage. */
async function stored(): Promise<Record<string, unknown>> {
  const theatre = await stage([calls([['look'], ['look', { n: 2 }]]), done], { tools: [same()] })
  const session = createSession('notes')
  await theatre.run('Go.', { session }).end(2)
  return JSON.parse(JSON.stringify(session)) as Record<string, unknown>
}

function refusal(value: unknown): { code: string; message: string } {
  try {
    restoreSession(value)
  } catch (error) {
    if (error instanceof UsageError) return error
    throw error
  }
  throw new Error('It was not refused.')
}

describe('a stored session', () => {
  it('is plain JSON with a version, and loads unchanged', async () => {
    const theatre = await stage([call('look'), done], { tools: [same()] })
    const session = createSession('notes')
    await theatre.run('Go.', { session }).end(2)
    const plain = JSON.parse(JSON.stringify(session)) as object
    expect(plain).toMatchObject({ version: 1, id: session.id, name: 'notes' })
    expect(session.toJSON()).toEqual(plain)
    const again = restoreSession(plain)
    expect(again).toBeInstanceOf(Session)
    expect(again.toJSON()).toEqual(plain)
    expect(again.messages).toEqual(session.messages)
  })

  it('continues in a new process with its conversation, totals and budget', async () => {
    const theatre = await stage([text('A cat.', { usage: { input: 90, output: 10 } }), done])
    const session = createSession()
    await theatre.run('What is it?', { session }).end(1)
    const again = reloaded(session)
    const result = await theatre.run('What colour?', { session: again }).end(2)
    expect(theatre.wire(1).map(({ content }) => content)).toEqual(['What is it?', 'A cat.', 'What colour?'])
    expect(again.usage.totalTokens).toBe(200)
    expect(result.messages.map(({ id }) => id)).toEqual(['m1', 'm2', 'm3', 'm4'])
    const spent = await theatre.run('More?', { session: reloaded(again), limits: { tokenBudget: 150 } }).run
      .result
    expect(spent).toMatchObject({ state: 'BUDGET_EXCEEDED', reason: 'token_budget', steps: 0 })
  })

  it('can be unused', () => {
    const session = createSession()
    expect(reloaded(session).toJSON()).toEqual(session.toJSON())
  })

  it('keeps data that providers require to be sent back', async () => {
    const plain = await stored()
    const messages = plain['messages'] as { tool_calls?: object[] }[]
    Object.assign(messages[1]?.tool_calls?.[0] ?? {}, {
      extra_content: { google: { thought_signature: 'x' } },
    })
    expect(restoreSession(plain).messages).toEqual(messages)
  })

  it('has its waiting calls closed, because they belong to another run', async () => {
    const tools = [tool('pay', undefined, { needsApproval: true }), same()]
    const theatre = await stage([calls([['pay'], ['look'], ['pay']]), done], { tools })
    const session = createSession()
    const play = theatre.run('Go.', { session })
    await play.rest()
    const again = reloaded(session)
    expect(findHistoryProblem(again.messages)).toBeNull()
    expect(again.messages.slice(2)).toMatchObject([
      { id: 'm3', data: { status: 'not_executed' } },
      { id: 'm4', content: 'same' },
      { id: 'm5', data: { status: 'not_executed' } },
    ])
    await theatre.run('And now?', { session: again }).run.result
    expect(theatre.wire(1).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'tool',
      'user',
    ])
  })
})

describe('the guards of a stored session', () => {
  it('have their counters in session.metadata, which survive a reload', async () => {
    const theatre = await stage([call('look'), call('look'), done], { tools: [same()] })
    const session = createSession()
    const play = theatre.run('Go.', { session, limits: { maxSteps: 2 } })
    await play.end(2)
    const { guardrails } = session.metadata
    expect(guardrails).toMatchObject({
      version: 1,
      progress: { stale: 1, pairs: [[expect.any(String), 2, 3]] },
    })
    expect(reloaded(session).metadata.guardrails).toEqual(guardrails)
  })

  it('count streaks per run, so a call repeated across two runs does not stop the second', async () => {
    const twice = [...times(3, call('look')), done]
    const theatre = await stage([...twice, ...twice], { tools: [same()] })
    const session = createSession()
    expect((await theatre.run('Go.', { session }).end(4)).state).toBe('COMPLETED')
    expect((await theatre.run('Again.', { session: reloaded(session) }).end(8)).state).toBe('COMPLETED')
  })

  it('do not keep a session halted', async () => {
    const theatre = await stage([...times(4, call('look')), call('look'), done], {
      tools: [same()],
      guardrails: { maxRepeatedToolSteps: 3 },
    })
    const session = createSession()
    expect((await theatre.run('Go.', { session }).end(4)).reason).toBe('repeated_call')
    expect((await theatre.run('Again.', { session: reloaded(session) }).end(6)).state).toBe('COMPLETED')
  })
})

describe('restoreSession', () => {
  it('loads the format of an older version', async () => {
    const { version: _, usage: __, metadata: ___, ...older } = await stored()
    const session = restoreSession(older)
    expect(session.messages).toEqual(older['messages'])
    expect(session.usage.totalTokens).toBe(0)
    expect(session.metadata).toEqual(createSession().metadata)
  })

  it('refuses the format of a newer version, and its guard state', async () => {
    const plain = await stored()
    const newer = refusal({ version: 2, messages: 'in another form' })
    expect(newer).toMatchObject({ code: 'newer_session', subject: 'version' })
    expect(newer.message).toMatch(/has version 2; this version of Statewright supports versions up to 1/)
    expect(refusal({ ...plain, metadata: { guardrails: { version: 9 } } })).toMatchObject({
      code: 'newer_session',
      subject: 'metadata.guardrails',
    })
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /It must be the object that session\.toJSON\(\) returns/],
    ['null', null, /It must be the object/],
    ['a list', [], /It must be the object/],
    ['a list as text', '{"version":1}', /Parse it with JSON\.parse/],
    ['an empty object', {}, /id must be a non-empty string \(got nothing\)[^]*messages must be a list/],
    ['an empty id', { id: '', messages: [] }, /id must be a non-empty string/],
    ['invalid messages', { id: 's', messages: {} }, /messages must be a list \(got an object\)/],
    ['an invalid message', { id: 's', messages: [7] }, /messages\[0\] must be/],
    ['an unknown role', { id: 's', messages: [{ id: 'm1', role: 'bot' }] }, /messages\[0\]\.role must be/],
    [
      'a user message that is a number',
      { id: 's', messages: [{ id: 'm1', createdAt: 0, role: 'user', content: 1 }] },
      /messages\[0\]\.content must be a string or a list of parts/,
    ],
    [
      'negative totals',
      { id: 's', messages: [], usage: { inputTokens: -1 } },
      /usage\.inputTokens must be a non-negative number/,
    ],
    ['an invalid version', { version: 'x', id: 's', messages: [] }, /version must be a non-negative number/],
  ])('refuses %s, and names the problem', (_, value, words) => {
    const { code, message } = refusal(value)
    expect(code).toBe('invalid_session')
    expect(message).toMatch(words)
  })

  it('refuses text that is not readable JSON', () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    expect(refusal(circle).code).toBe('invalid_session')
    expect(refusal({ id: 's', messages: 1n }).code).toBe('invalid_session')
  })

  it.each<[string, (messages: object[]) => object[], RegExp]>([
    [
      'a call lacks its result',
      (m) => m.filter((_, i) => i !== 3).map(numbered),
      /comes before the result of call/,
    ],
    ['the last call lacks its result', (m) => m.slice(0, 3), /call 'call_\w+' has no result/],
    [
      'a result comes twice',
      (m) => [...m.slice(0, 4), m[3] ?? {}, ...m.slice(4)].map(numbered),
      /which is not the pending call/,
    ],
    [
      'results are swapped',
      (m) => [0, 1, 3, 2, 4].map((i) => m[i] ?? {}).map(numbered),
      /which is not the pending call/,
    ],
    ['a result has no call', (m) => m.slice(2).map(numbered), /which is not the pending call/],
    ['messages share an id', (m) => m.map((one) => ({ ...one, id: 'm1' })), /messages\[1\]\.id must be 'm2'/],
  ])('refuses a history where %s', async (_, damage, words) => {
    const plain = await stored()
    const { code, message } = refusal({ ...plain, messages: damage(plain['messages'] as object[]) })
    expect(code).toBe('invalid_session')
    expect(message).toMatch(words)
  })

  it('returns a session or throws a UsageError for any input', async () => {
    const plain = await stored()
    const damaged = fc.record(
      Object.fromEntries(
        Object.keys(plain).map((key) => [key, fc.oneof(fc.constant(plain[key]), fc.anything())]),
      ),
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(fc.anything(), damaged), (value) => {
        try {
          expect(findHistoryProblem(restoreSession(value).messages)).toBeNull()
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError)
        }
      }),
    )
  })
})

function numbered(message: object, index: number): object {
  return { ...message, id: `m${index + 1}` }
}
