import { fromPromise } from 'xstate'
import { memoryStore } from '../../src/index.js'
import { durable } from '../../src/durable/index.js'
import type { MachineView } from '../../src/studio/machine-view.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { claimMachine } from '../durable/claim.js'
import { visit } from './visitor.js'

async function openClaims() {
  const store = memoryStore()
  const pay = fromPromise<string, { amount: number; claim: string }>(async () => 'p1')
  const claims = durable(claimMachine, { store, actors: { pay } })
  for (const id of ['claim-17', 'claim-18']) {
    await claims.start(id, { input: { amount: 900 } })
    await claims.settled(id)
  }
  await claims.send('claim-18', { type: 'APPROVE', by: 'ann' })
  await claims.settled('claim-18')
  return visit({ store })
}

test('the list shows the states of machines, and marks none of them as damaged', async () => {
  const visitor = await openClaims()
  const { sessions, counts, days } = await visitor.get<SessionsView>(paths.sessions)
  expect(sessions).toMatchObject([
    { id: 'claim-17', status: 'sleeping', value: 'reviewing', state: null, problem: null },
    { id: 'claim-18', status: 'ended', value: 'paid', state: 'COMPLETED', problem: null },
  ])
  expect(counts).toEqual({ sleeping: 1, ended: 1 })
  expect(days.flatMap(({ failures }) => Object.keys(failures))).toEqual([])
})

test('a session of a machine has its state, its context and its events', async () => {
  const visitor = await openClaims()
  const { session, ...view } = await visitor.get<MachineView>(paths.machine('claim-18'))
  expect(session.value).toBe('paid')
  expect(view).toMatchObject({ machine: 'claim', status: 'done', context: { amount: 900 }, actors: [] })
  expect(view.records.map(({ event, value }) => `${event} → ${value}`)).toEqual([
    'init → reviewing',
    'APPROVE → paying',
    expect.stringMatching(/^done\.actor\.\S+ → paid$/),
  ])
  expect(view.records[1]?.data).toEqual({ by: 'ann' })
  const waiting = await visitor.get<MachineView>(paths.machine('claim-17'))
  expect(waiting.waits).toEqual([{ event: expect.stringMatching(/^after \w+$/), at: expect.any(Number) }])
})
