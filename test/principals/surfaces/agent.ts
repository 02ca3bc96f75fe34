import { runSession, createSessionRunner, listStrandedSessions } from '../../../src/index.js'
import { listOf, operator, type Place, type Surface } from '../surface.js'
import { durable } from '../../../src/durable/index.js'
import { createWaker, runAll, sendAll } from '../../../src/fleet/index.js'
import { tallyMachine } from '../../durable/tally.js'
import { batchItem, firstMessage, sender, session } from '../world.js'

const context = 'operator'
const by = sender
const listed = 'listed'
const nameIn = ({ process: { kind } }: Place): string => (kind === 'other agent' ? 'support' : 'billing')

/** All events of a watch, until it ends or stays silent. */
async function watched({ process, world }: Place): Promise<unknown[]> {
  const events: unknown[] = []
  const gone = new AbortController()
  const watching = (async () => {
    for await (const event of process.agent.watch(session, { signal: gone.signal })) events.push(event)
  })()
  await world.passing(watching)
  gone.abort()
  await watching
  return events
}

/**
 * The batch item with the session. Items held by another process are awaited, here until the batch is parked.
 */
async function runItem({ process, world }: Place): Promise<void> {
  const park = new AbortController()
  const { batch: id, item } = batchItem
  const items = [{ id: item, input: firstMessage }]
  const running = (async () => {
    for await (const { error } of runAll(process.agent, items, { id, context, signal: park.signal }))
      if (error) throw error
  })()
  await world.passing(running)
  park.abort()
  await running
}

/** The alarm of a run that sleeps or waits for a budget. Its session state may have changed by then. */
async function woken(place: Place): Promise<void> {
  const alarm = { agent: 'billing', version: '3' }
  await place.process.store.timers?.set([{ id: `wake:${session}`, at: 0, data: JSON.stringify(alarm) }])
  await letWakerPoll(place)
}

async function letWakerPoll(place: Place): Promise<void> {
  const { world } = place
  const errors: unknown[] = []
  const waker = createWaker(listOf(place), {
    clock: world.clock,
    context: () => context,
    onError: (error) => errors.push(error),
  })
  waker.start()
  // A poll, then the session up to its next wait.
  await world.passing(new Promise((resolve) => world.clock.setTimeout(() => resolve(null), 3000)))
  await waker.stop()
  if (errors.length > 0) throw errors[0]
}

/** A machine of the app, on the store of the agent's sessions. */
const machinesOf = ({ process: { store }, world: { clock } }: Place) =>
  durable(tallyMachine, { store, clock })

/** Agent methods and their drivers. */
export const agentSurfaces: Surface[] = [
  operator('agent.run', 'begin', ({ process }) => process.agent.run('Again.', { session, context }).result),
  operator('agent.resume', 'continue', async ({ process }) => {
    const run = await process.agent.resume(session, { context })
    return run.result
  }),
  operator('agent.send', 'answer', ({ process, question }) =>
    process.agent.send(session, { type: 'approve', ...question, by }),
  ),
  operator(
    'agent.send',
    'begin',
    ({ process }) => process.agent.send(session, { type: 'message', when: 'next', input: 'Again.' }),
    { as: 'a queued message' },
  ),
  operator(
    'agent.send',
    'answer',
    ({ process, question }) => process.agent.send(session, { type: 'reject', ...question, why: 'No.', by }),
    { as: 'a rejection' },
  ),
  operator(
    'agent.send',
    'steer',
    ({ process }) => process.agent.send(session, { type: 'message', when: 'now', input: 'Be quick.' }),
    { as: 'a message for now' },
  ),
  operator('agent.send', 'steer', ({ process }) => process.agent.send(session, { type: 'pause' }), {
    as: 'a pause',
  }),
  operator(
    'agent.send',
    'grant',
    ({ process }) => process.agent.send(session, { type: 'grant', tool: 'lend', when: {}, by }),
    { as: 'a grant' },
  ),
  operator(
    'agent.send',
    'answer',
    ({ process, question }) => process.agent.send(session, { type: 'approve', ...question, by, grant: {} }),
    { as: 'an approval with a grant' },
  ),
  operator(
    'agent.send',
    'revoke',
    ({ process, grant }) => process.agent.send(session, { type: 'revoke', grant, by }),
    { as: 'a revocation' },
  ),
  operator('agent.send', 'stop', ({ process }) => process.agent.send(session, { type: 'cancel' })),
  operator('agent.watch', 'look', watched),
  operator('agent.replay', 'look', async ({ process }) => (await process.agent.replay(session)).messages),
  operator('agent.readSession', 'look', ({ process }) => process.agent.readSession(session)),
  operator(
    'agent.branch',
    'branch',
    ({ process }) => process.agent.branch(session, { from: 'm1', context }).result,
  ),
  operator('agent.selectBranch', 'turn back', ({ process }) => process.agent.selectBranch(session, 2)),
  operator('agent.listBranches', 'look', ({ process }) => process.agent.listBranches(session), {
    isSilent: true,
  }),
  operator('agent.fork', 'fork', ({ process }) => process.agent.fork(session)),
  operator('agent.deleteSession', 'forget', ({ process }) => process.agent.deleteSession(session)),
  operator('agent.deleteSessions', 'forget', async ({ process, world }) => {
    const deleting = process.agent.deleteSessions({ prefix: session.split(':')[0] ?? session })
    // It waits for the end of a run that it has cancelled.
    await world.passing(deleting)
    return deleting
  }),
  operator(
    'runSession',
    'begin',
    (place) =>
      runSession(listOf(place), { session, input: 'Again.', turn: 2, agent: nameIn(place), context }),
    { agents: listed },
  ),
  operator('runSession', 'continue', (place) => runSession(listOf(place), { session, context }), {
    agents: listed,
  }),
  operator('runSession', 'continue', ({ process }) => runSession(process.agent, { session, context }), {
    as: 'one agent',
  }),
  operator('runSession', 'answer', ({ process, question }) =>
    runSession(process.agent, { session, answers: [{ type: 'approve', ...question, by }], context }),
  ),
  operator(
    'runSession',
    'answer',
    ({ process, question }) =>
      runSession(process.agent, {
        session,
        answers: [{ type: 'approve', ...question, by, grant: {} }],
        context,
      }),
    { as: 'an approval with a grant' },
  ),
  operator(
    'runSession',
    'grant',
    ({ process }) =>
      runSession(process.agent, { session, answers: [{ type: 'grant', tool: 'lend', when: {} } as never] }),
    { as: 'a grant' },
  ),
  operator(
    'runSession',
    'revoke',
    ({ process, grant }) =>
      runSession(process.agent, { session, answers: [{ type: 'revoke', grant } as never] }),
    { as: 'a revocation' },
  ),
  operator('runSession', 'stop', ({ process }) =>
    runSession(process.agent, { session, answers: [{ type: 'cancel' }], context }),
  ),
  operator(
    'createSessionRunner',
    'continue',
    (place) => createSessionRunner(listOf(place)).runSession({ session, context }),
    {
      agents: listed,
    },
  ),
  operator('sendAll', 'stop', ({ process }) => sendAll(process.store, { prefix: 'ann' }, { type: 'cancel' })),
  operator(
    'sendAll',
    'grant',
    ({ process }) =>
      sendAll(process.store, { prefix: 'ann' }, { type: 'grant', tool: 'lend', when: {} } as never),
    { as: 'a grant' },
  ),
  operator(
    'sendAll',
    'revoke',
    ({ process, grant }) => sendAll(process.store, { prefix: 'ann' }, { type: 'revoke', grant } as never),
    { as: 'a revocation' },
  ),
  operator('createWaker', 'continue', woken, { agents: listed }),
  operator(
    'createSessionRunner',
    'begin',
    (place) =>
      createSessionRunner(listOf(place)).runSession({
        session,
        input: 'Again.',
        turn: 2,
        agent: nameIn(place),
        context,
      }),
    { agents: listed },
  ),
  operator(
    'createSessionRunner',
    'answer',
    (place) =>
      createSessionRunner(listOf(place)).runSession({
        session,
        answers: [{ type: 'approve', ...place.question, by }],
        context,
      }),
    { agents: listed },
  ),
  operator('runAll', 'continue', runItem),
  operator('durable', 'begin', (place) => machinesOf(place).start(session), { agents: 'none' }),
  operator(
    'durable',
    'continue',
    (place) => machinesOf(place).send(session, { type: 'COUNT', from: 'a', n: 1 }),
    { agents: 'none' },
  ),
  operator(
    'listStrandedSessions',
    'look',
    (place) => listStrandedSessions(listOf(place), place.process.store),
    {
      agents: listed,
      isSilent: true,
    },
  ),
]
