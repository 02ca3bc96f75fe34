import { memoryStore } from '../../src/index.js'
import { listRunSteps } from '../../src/studio/client/run-steps.js'
import {
  describeFork,
  findEditPlace,
  findFirstForkable,
  type WantedEdit,
} from '../../src/studio/client/what-if.js'
import type { CompareView } from '../../src/studio/compare-view.js'
import type { MomentView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit, type Visitor } from './visitor.js'

const look = (id: string, what: string) => ({ id, name: 'look_up', arguments: { what } })

async function untilItRests(visitor: Visitor, id: string): Promise<void> {
  const rests = new Set(['COMPLETED', 'WAITING_FOR_INPUT'])
  await visitor.live(id).heard('session', ({ row }) => row.id === id && rests.has(row.state ?? ''))
}

/** Two calls at once, one that a person approves, and the same id of a call a second time. */
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
  const edits = end.transcript.flatMap((message): WantedEdit[] => [
    ...(message.role === 'user' ? [{ edit: { message: message.id, text: 'Other words.' }, message }] : []),
    ...message.calls.flatMap(({ id, name }): WantedEdit[] => [
      { edit: { call: id, result: 'Another result.' }, message },
      {
        edit: { call: id, arguments: name === 'pay' ? { amount: 9, to: 'Bob' } : { what: 'juice' } },
        message,
      },
    ]),
  ])
  const search = { rows, steps, place: rows.length - 1, load }
  return { store, agent, close, visitor, view, rows, steps, edits, search }
}

test('every edit goes to a record at which the fork takes it, and keeps the other results of the batch', async () => {
  const { agent, close, rows, edits, search } = await played()
  expect(edits).toHaveLength(2 + 2 * 4)
  const forkedAt = new Map<string, number>()
  for (const wanted of edits) {
    const place = await findEditPlace(wanted, search)
    const { edit } = wanted
    forkedAt.set(`${wanted.message.id} ${JSON.stringify(edit)}`, place)
    const given = 'message' in edit ? { message: edit.message, content: edit.text } : edit
    const fork = await agent.fork('s', rows[place]?.seq ?? 1, { edit: given })
    const { messages } = await agent.replay(fork)
    if (!('result' in edit)) continue
    const asked = messages.findIndex(({ id }) => id === wanted.message.id)
    const results = messages.slice(asked + 1).filter(({ role }) => role === 'tool')
    const { calls } = (await search.load(search.place)).transcript.find(
      ({ id }) => id === wanted.message.id,
    ) ?? { calls: [] }
    expect(results).toHaveLength(calls.length)
    expect(results.map(({ content }) => content)).toContain('Another result.')
  }
  // Of two calls with one id, each has its own record.
  expect(new Set(forkedAt.values()).size).toBeGreaterThan(5)
  await close()
})

test('a fork says what it drops, what that cost, and what may run again', async () => {
  const { close, rows, steps, edits, search } = await played()
  const [said] = edits
  const place = said ? await findEditPlace(said, search) : -1
  expect(describeFork(place, steps, rows, true)).toMatch(
    /^The 5 steps after this are dropped and asked again, about \$0\.\d+\. 1 call that may not repeat \(pay\) will be asked for approval\. 3 calls that only read may run again\.$/,
  )
  expect(describeFork(place, steps, rows, false)).toContain(
    '1 call that may not repeat (pay) may run a second time.',
  )
  const settled = rows.findIndex(({ calls }) => calls.length > 0)
  expect(describeFork(settled, steps, rows, true)).toMatch(/Calls before it keep their results\.$/)
  expect(describeFork(rows.length - 1, steps, rows, true)).toBe(
    'Nothing comes after this record, so nothing is dropped.',
  )
  await close()
})

test('a fork and its origin are compared by what was changed, and by what users said', async () => {
  const { agent, close, visitor, rows, edits, search } = await played()
  for (const wanted of edits.slice(0, 3)) {
    const { edit } = wanted
    const place = await findEditPlace(wanted, search)
    const given = 'message' in edit ? { message: edit.message, content: edit.text } : edit
    const fork = await agent.fork('s', rows[place]?.seq ?? 1, { edit: given })
    const { change, steps } = await visitor.get<CompareView>(paths.compare('s', fork))
    expect(steps[0]?.a?.said).toBe('Buy something to drink.')
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

test('a decision is made anew in a fork that waits for it, runs, and is compared by it', async () => {
  const { store, close, visitor, rows, search } = await played()
  const { transcript } = await search.load(search.place)
  const call = transcript.flatMap(({ calls }) => calls).find(({ decision }) => decision !== null)
  expect(call).toMatchObject({ name: 'pay', decision: { kind: 'approved', words: '' } })
  const { seq = 0 } = call?.decision ?? {}
  expect(rows[seq - 1]?.label).toBe('approved pay')
  // Before it was made there is none.
  const before = await search.load(seq - 2)
  expect(before.transcript.flatMap(({ calls }) => calls).some(({ decision }) => decision !== null)).toBe(
    false,
  )
  const fork = { at: seq - 1, run: true }
  const { sessionId = '' } = await visitor.post(paths.fork('s'), {
    ...fork,
    decision: { call: 'p', type: 'reject', why: 'Too dear.' },
  })
  await untilItRests(visitor, sessionId)
  const { change } = await visitor.get<CompareView>(paths.compare('s', sessionId))
  expect(change).toEqual({ kind: 'decision', name: 'pay', a: 'approved', b: 'rejected: Too dear.' })
  for (const [wrong, code] of [
    [{ ...fork, at: seq, decision: { call: 'p', type: 'reject' } }, 'already_answered'],
    [
      { ...fork, decision: { call: 'p', type: 'approve', arguments: { amount: -1, to: 'Bob' } } },
      'invalid_input',
    ],
    [{ at: seq - 1, decision: { call: 'p', type: 'reject' } }, 'invalid_input'],
  ] as const) {
    const count = store.list().length
    expect((await visitor.post(paths.fork('s'), wrong)).error?.code).toBe(code)
    expect(store.list()).toHaveLength(count)
  }
  await close()
})

test('other instructions hold in the fork alone, and the transcript says whose they are', async () => {
  const { agent, close, visitor, rows, search } = await played()
  expect((await search.load(search.place)).instructions).toEqual({ text: 'You buy drinks.', from: 'agent' })
  const at = rows[findFirstForkable(rows, 1)]?.seq ?? 0
  const { sessionId = '' } = await visitor.post(paths.fork('s'), {
    at,
    edit: { instructions: 'You buy food.' },
    run: true,
    askFirst: true,
  })
  await untilItRests(visitor, sessionId)
  const fork = await visitor.get<SessionView>(paths.session(sessionId))
  const moment = await visitor.get<MomentView>(paths.moment(sessionId, fork.rows.length))
  expect(moment.instructions).toEqual({ text: 'You buy food.', from: 'fork' })
  const { change } = await visitor.get<CompareView>(paths.compare('s', sessionId))
  expect(change).toEqual({ kind: 'instructions', name: null, a: 'You buy drinks.', b: 'You buy food.' })
  expect((await agent.replay('s')).messages).toEqual((await agent.replay('s', { to: rows.length })).messages)
  await close()
})
