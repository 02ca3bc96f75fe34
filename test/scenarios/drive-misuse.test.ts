import { SimulatedClock } from 'xstate'
import {
  createAgent,
  runSession,
  type RunSessionOptions,
  createSessionRunner,
  memoryStore,
} from '../../src/index.js'
import { ManualModel, settled } from '../support/manual-model.js'
import { stage } from '../support/play.js'
import { clientTool, tool } from '../support/tools.js'

/** A process with a model whose answers the test controls. */
function program() {
  const [store, model, clock] = [memoryStore(), new ManualModel(), new SimulatedClock()]
  return { store, model, clock, agent: createAgent({ model, store, clock }) }
}

/** Runs ready work until the condition holds. Some modules load on first use. */
async function until(holds: () => unknown): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i += 1) await settled()
}

describe('a failing heartbeat', () => {
  const gone = new Error('Nobody waits for this activity any more.')
  test.each([
    ['at once', 1],
    ['later', 2],
  ])('%s stops the drive like its signal, and rejects with the error', async (_, at) => {
    const { store, model, clock, agent } = program()
    let beats = 0
    const heartbeat = () => {
      beats += 1
      if (beats >= at) throw gone
    }
    const driving = runSession(agent, { session: 's', input: 'Go.', heartbeat })
    const refused = expect(driving).rejects.toBe(gone)
    if (at > 1) await until(() => model.pending)
    clock.increment(10_000)
    await refused
    // The drive leaves no background work after it returns.
    expect(store.get('s')?.holder).toBeNull()
    expect(model.pending).toBeNull()
    clock.increment(60_000)
    expect(beats).toBe(at)

    const again = runSession(agent, { session: 's', input: 'Go.' })
    await until(() => model.pending)
    model.pending?.answer({ text: 'Done.' })
    expect(await again).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
  })

  test('may reject instead of throwing', async () => {
    const { store, agent } = program()
    const heartbeat = () => Promise.reject(gone)
    await expect(runSession(agent, { session: 's', input: 'Go.', heartbeat })).rejects.toBe(gone)
    expect(store.get('s')?.holder).toBeNull()
  })
})

test('an invalid answer is refused before any other is applied, and the run does not continue without its drive', async () => {
  const pay = tool('pay', () => 'paid', { needsApproval: true })
  const store = memoryStore()
  const play = await stage([{ toolCalls: [{ id: 'a', name: 'pay' }] }, { text: 'Paid.' }], {
    store,
    tools: [pay],
  })
  const result = await runSession(play.agent, { session: 's', input: 'Pay.' })
  const none = [
    null,
    'yes',
    {},
    { type: 'pause' },
    { type: 'reply', input: 'And?' },
    { type: 'steer', text: 5 },
    { type: 'steer', text: ' ' },
    { type: 'cancel', why: {} },
    { type: 'approve' },
    { type: 'approve', callId: 'a', edited: {} },
  ]
  for (const answer of none) {
    const answers = [{ type: 'approve', callId: 'a' }, answer] as RunSessionOptions['answers'] & object
    await expect(runSession(play.agent, { session: 's', answers })).rejects.toMatchObject({
      code: 'invalid_input',
      retryable: false,
    })
  }
  expect(pay.inputs).toEqual([])
  expect(store.get('s')?.head).toBe(result.head)
  expect(store.get('s')?.holder).toBeNull()
})

test('the output of a failed call is shown as text, whatever it is', async () => {
  const play = await stage([{ toolCalls: [{ id: 'a', name: 'open' }] }, { text: 'I see.' }], {
    store: memoryStore(),
    tools: [clientTool('open')],
  })
  const { head } = await runSession(play.agent, { session: 's', input: 'Open it.' })
  const value = { why: 'The door is locked.' }
  await runSession(play.agent, {
    session: 's',
    at: head,
    answers: [{ type: 'toolOutput', callId: 'a', value, isError: true }],
  })
  const [result] = (await play.agent.replay('s')).messages.filter(({ role }) => role === 'tool')
  expect(result?.content).toBe('{"why":"The door is locked."}')
})

test('invalid agents, options and drivers are refused by name', async () => {
  const { agent } = program()
  const nothing = null as never
  const refused = { name: 'UsageError', code: 'invalid_option' }
  await expect(runSession(nothing, { session: 's' })).rejects.toMatchObject(refused)
  await expect(runSession('agent' as never, { session: 's' })).rejects.toMatchObject(refused)
  const noOptions = { ...refused, code: 'invalid_argument' }
  await expect(runSession(agent, nothing)).rejects.toMatchObject(noOptions)
  expect(() => createSessionRunner(agent, nothing)).toThrow(
    /createSessionRunner\(agents, options\) must be an options object/,
  )
  await expect(createSessionRunner(agent).runSession(nothing)).rejects.toMatchObject(noOptions)
  const signal = { aborted: false } as AbortSignal
  await expect(createSessionRunner(agent).runSession({ session: 's', signal })).rejects.toMatchObject(refused)
})
