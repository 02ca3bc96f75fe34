import { memoryStore } from '../../src/index.js'
import { listRunSteps } from '../../src/studio/run-steps.js'
import {
  describeChange,
  describeFork,
  findDefault,
  listChanges,
} from '../../src/studio/client/fork-choices.js'
import type { CompareView } from '../../src/studio/compare-sessions.js'
import type { TextEdit, MomentView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit, type Visitor } from './visitor.js'

const look = (id: string, what: string) => ({ id, name: 'look_up', arguments: { what } })

async function untilItRests(visitor: Visitor, id: string): Promise<void> {
  const rests = new Set(['COMPLETED', 'WAITING_FOR_INPUT'])
  await visitor.live(id).receive('session', ({ row }) => row.id === id && rests.has(row.state ?? ''))
}

/** Two concurrent calls, one with an approval, and a repeated call id. */
const turns = [
  { text: 'Both at once.', toolCalls: [look('a', 'tea'), look('b', 'coffee')] },
  { text: 'Now I pay.', toolCalls: [{ id: 'p', name: 'pay', arguments: { amount: 3, to: 'Ada' } }] },
  { text: 'Once more.', toolCalls: [look('a', 'water')] },
  { text: 'It is done.' },
]

async function played() {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, turns, { instructions: 'You buy drinks.' })
  const first = await agent.run('Buy something to drink.', { session: 's' }).result
  const run = await agent.resume('s')
  for (const call of first.pending ?? []) run.approve(call)
  await run.result
  await agent.run('And now something to eat.', { session: 's' }).result
  const visitor = await visit({ store, agent })
  const view = await visitor.get<SessionView>(paths.session('s'))
  const { rows } = view
  const steps = listRunSteps(view)
  const load = async (place: number) => visitor.get<MomentView>(paths.moment('s', rows[place]?.seq ?? 1))
  const end = await load(rows.length - 1)
  const edits = end.transcript.flatMap(({ id, role, forkAt, calls }): Edit[] => [
    ...(role === 'user'
      ? [{ edit: { message: id, content: 'Other words.' }, at: forkAt ?? 0, message: id }]
      : []),
    ...calls.flatMap((call): Edit[] => [
      { edit: { call: call.id, result: 'Another result.' }, at: call.forkAt ?? 0, message: id },
      {
        edit: {
          call: call.id,
          arguments: call.name === 'pay' ? { amount: 9, to: 'Bob' } : { what: 'juice' },
        },
        at: forkAt ?? 0,
        message: id,
      },
    ]),
  ])
  return { store, agent, close, visitor, view, rows, steps, edits, load, end }
}

/** An edit, the record that the server returns for it, and the edited message. */
interface Edit {
  edit: Exclude<TextEdit, { instructions: string }>
  at: number
  message: string
}

test('each edit has a record at which the fork applies it and keeps the other results of the batch', async () => {
  const { agent, close, edits, end } = await played()
  expect(edits).toHaveLength(2 + 2 * 4)
  for (const { edit, at, message } of edits) {
    const fork = await agent.fork('s', at, { edit })
    const { messages } = await agent.replay(fork)
    if (!('result' in edit)) continue
    const question = messages.findIndex(({ id }) => id === message)
    const results = messages.slice(question + 1).filter(({ role }) => role === 'tool')
    const calls = end.transcript.find(({ id }) => id === message)?.calls ?? []
    expect(results).toHaveLength(calls.length)
    expect(results.map(({ content }) => content)).toContain('Another result.')
  }
  // Two calls with the same id have separate records.
  const records = new Set(edits.map(({ edit, at }) => `${'result' in edit} ${at}`))
  expect(records.size).toBeGreaterThan(5)
  await close()
})

test('a fork lists its dropped records, their cost, and the calls that may run again', async () => {
  const { close, rows, steps, edits } = await played()
  const place = (edits[0]?.at ?? 0) - 1
  expect(describeFork(place, steps, rows, true, true)).toMatch(
    /^The 5 steps after this are discarded and run again, about \$0\.\d+\. 1 call with possible side effects \(pay\) will need approval\. 3 read-only calls may run again\.$/,
  )
  expect(describeFork(place, steps, rows, false, true)).toContain(
    '1 call with possible side effects (pay) may run a second time.',
  )
  // Another agent may use another model.
  expect(describeFork(place, steps, rows, true, false)).toMatch(/discarded and run again\. /)
  const settled = rows.findIndex(({ calls }) => calls.length > 0)
  expect(describeFork(settled, steps, rows, true, true)).toMatch(/Earlier calls keep their results\.$/)
  expect(describeFork(rows.length - 1, steps, rows, true, true)).toBe(
    'Nothing comes after this record, so nothing is discarded.',
  )
  await close()
})

test('the latest failed call before the record is the default, and otherwise the latest result', async () => {
  const { close, end } = await played()
  const labelDefault = (changes: ReturnType<typeof listChanges>, seq: number): string => {
    const found = findDefault(changes, seq)
    return found ? describeChange(found) : ''
  }
  expect(labelDefault(listChanges(end), Infinity)).toBe('result of look_up({"what":"water"}), ok')
  const transcript = end.transcript.map((message) => ({
    ...message,
    calls: message.calls.map((call) => (call.name === 'pay' ? { ...call, status: 'timeout' } : call)),
  }))
  const failed = listChanges({ ...end, transcript })
  expect(labelDefault(failed, Infinity)).toBe('result of pay({"amount":3,"to":"Ada"}), failed')
  const { at = 0 } = findDefault(failed, Infinity) ?? {}
  expect(labelDefault(failed, at - 1)).not.toContain('failed')
  await close()
})

test('a result that ended the run cannot be replaced', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, turns, { limits: { maxSteps: 1 } })
  const { state } = await agent.run('Buy something to drink.', { session: 's' }).result
  expect(state).toBe('MAX_STEPS')
  const visitor = await visit({ store, agent })
  const { rows } = await visitor.get<SessionView>(paths.session('s'))
  const { transcript } = await visitor.get<MomentView>(paths.moment('s', rows.length))
  const calls = transcript.flatMap((message) => message.calls)
  expect(calls.map(({ result, forkAt }) => [result !== null, forkAt !== null])).toEqual([
    [true, true],
    [true, false],
  ])
  await close()
})

test('a fork and its origin are compared by the edit, and by the user messages', async () => {
  const { agent, close, visitor, edits } = await played()
  for (const { edit, at } of edits.slice(0, 3)) {
    const fork = await agent.fork('s', at, { edit })
    const { change, steps } = await visitor.get<CompareView>(paths.compare('s', fork))
    expect(steps[0]?.a?.userText).toBe('Buy something to drink.')
    if ('message' in edit) {
      expect(change).toEqual({
        kind: 'message',
        name: null,
        a: 'Buy something to drink.',
        b: 'Other words.',
      })
    } else if ('result' in edit) {
      expect(change).toEqual({
        kind: 'result',
        name: 'look_up',
        a: 'About tea: 3 letters.',
        b: 'Another result.',
      })
    } else {
      expect(change).toMatchObject({ kind: 'arguments', a: '{"what":"tea"}', b: '{"what":"juice"}' })
    }
  }
  const whole = await agent.fork('s', 3)
  expect((await visitor.get<CompareView>(paths.compare('s', whole))).change).toBeNull()
  await close()
})

test('a decision is repeated in a fork that waits for it, runs, and is compared by it', async () => {
  const { store, close, visitor, rows, load, end } = await played()
  const { transcript } = end
  const call = transcript.flatMap(({ calls }) => calls).find(({ decision }) => decision !== null)
  expect(call).toMatchObject({ name: 'pay', decision: { kind: 'approved', words: '', by: [] } })
  const { seq = 0 } = call?.decision ?? {}
  expect(rows[seq - 1]?.label).toBe('approved pay')
  // There is none before the edit.
  const before = await load(seq - 2)
  expect(before.transcript.flatMap(({ calls }) => calls).some(({ decision }) => decision !== null)).toBe(
    false,
  )
  const fork = { at: seq - 1, run: true }
  const { sessionId = '' } = await visitor.post(paths.fork('s'), {
    ...fork,
    decision: { callId: 'p', type: 'reject', why: 'Too dear.' },
  })
  await untilItRests(visitor, sessionId)
  const { change } = await visitor.get<CompareView>(paths.compare('s', sessionId))
  expect(change).toEqual({ kind: 'decision', name: 'pay', a: 'approved', b: 'rejected: Too dear.' })
  for (const [wrong, code] of [
    [{ ...fork, at: seq, decision: { callId: 'p', type: 'reject' } }, 'already_answered'],
    [
      { ...fork, decision: { callId: 'p', type: 'approve', editedInput: { amount: -1, to: 'Bob' } } },
      'invalid_input',
    ],
    [{ at: seq - 1, decision: { callId: 'p', type: 'reject' } }, 'invalid_input'],
  ] as const) {
    const count = store.list().length
    expect((await visitor.post(paths.fork('s'), wrong)).error?.code).toBe(code)
    expect(store.list()).toHaveLength(count)
  }
  await close()
})

test('other instructions apply only in the fork, and the transcript states their source', async () => {
  const { agent, close, visitor, rows, end } = await played()
  expect(end.instructions).toMatchObject({ text: 'You buy drinks.', from: 'agent' })
  const at = rows.find(({ run, state }) => run === 1 && state !== '')?.seq ?? 0
  const { sessionId = '' } = await visitor.post(paths.fork('s'), {
    at,
    edit: { instructions: 'You buy food.' },
    run: true,
    askFirst: true,
  })
  await untilItRests(visitor, sessionId)
  const fork = await visitor.get<SessionView>(paths.session(sessionId))
  const moment = await visitor.get<MomentView>(paths.moment(sessionId, fork.rows.length))
  expect(moment.instructions).toMatchObject({ text: 'You buy food.', from: 'fork' })
  const { change } = await visitor.get<CompareView>(paths.compare('s', sessionId))
  expect(change).toEqual({ kind: 'instructions', name: null, a: 'You buy drinks.', b: 'You buy food.' })
  expect((await agent.replay('s')).messages).toEqual((await agent.replay('s', { to: rows.length })).messages)
  await close()
})
