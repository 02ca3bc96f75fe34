import { z } from 'zod'
import { defineTool, memoryStore, sleepUntil } from '../../src/index.js'
import type { SessionsView, SessionView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { until } from '../support/play.js'
import { rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const date = Date.UTC(2100, 4, 1, 12)
const shown = '2100-05-01 12:00:00 UTC'

async function asleep(interactive = false) {
  const store = memoryStore()
  const nap = defineTool({
    name: 'wait_for_payment',
    description: 'Waits.',
    input: z.object({}),
    execute: () => sleepUntil(date),
  })
  const turns = [{ toolCalls: [{ name: 'wait_for_payment', arguments: {} }] }, { text: 'It is paid.' }]
  const { agent, close } = await rehearsedAgent(store, turns, { tools: [nap], interactive })
  const run = agent.run('Send the goods.', { session: 's' })
  await until(() => run.state === 'PAUSED')
  const visitor = await visit({ store, agent })
  if (interactive) visitor.studio.attach(run)
  const view = () => visitor.get<SessionView>(paths.session('s'))
  return { agent, run, store, visitor, view, close }
}

test('a sleeping run shows its wake time in its verdict, its last record, its bar, and its row of the list', async () => {
  const { visitor, view, close } = await asleep()
  const { verdict, rows, bars, session } = await view()
  expect(verdict).toMatchObject({
    reason: 'sleeping',
    text: `It sleeps until ${shown}. A waker will wake it. You can wake it earlier.`,
  })
  expect(rows.at(-1)?.wakeAt).toBe(date)
  expect(rows.filter(({ wakeAt }) => wakeAt !== undefined)).toHaveLength(1)
  expect(bars.at(-1)).toMatchObject({ lane: 'waits', label: `sleeping until ${shown}`, to: null })
  expect(session).toMatchObject({ status: 'sleeping', wakeAt: date })
  const { sessions } = await visitor.get<SessionsView>(paths.sessions)
  expect(sessions).toMatchObject([{ id: 's', status: 'sleeping', wakeAt: date }])
  await close()
})

test('a paused run without a wake time asks to be resumed, as before', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [
    { toolCalls: [{ name: 'look_up', arguments: { what: 'the sky' } }] },
    { text: 'Blue.' },
  ])
  const run = agent.run('Which colour?', { session: 's' })
  run.pause()
  await run.result
  const visitor = await visit({ store, agent })
  const { verdict, rows, bars, session } = await visitor.get<SessionView>(paths.session('s'))
  expect(verdict.text).toBe('It was paused on request and continues when it is resumed.')
  expect(rows.some((row) => 'wakeAt' in row)).toBe(false)
  expect(bars.at(-1)).toMatchObject({ label: 'paused' })
  expect(session).toMatchObject({ status: 'waiting', wakeAt: null })
  await close()
})

test('another date is a separate bar with its own record, and waking ends the last bar', async () => {
  const { agent, store, visitor, view, close } = await asleep()
  const later = date + 86_400_000
  await agent.send('s', { type: 'resume', at: new Date(later) })
  const { rows, bars, verdict } = await view()
  expect(rows.at(-1)).toMatchObject({ label: 'sleeps until 2100-05-02 12:00:00 UTC', wakeAt: later })
  expect(bars.filter(({ lane }) => lane === 'waits').map(({ label, to }) => [label, to === null])).toEqual([
    [`sleeping until ${shown}`, false],
    ['sleeping until 2100-05-02 12:00:00 UTC', true],
  ])
  expect(verdict.text).toContain('2100-05-02')
  expect(await visitor.post(paths.answers('s'), { type: 'resume' })).toMatchObject({ status: 200 })
  await until(() => store.get('s')?.summary?.state === 'COMPLETED')
  const awake = await view()
  expect(awake.bars.filter(({ label, to }) => label.startsWith('sleeping') && to === null)).toEqual([])
  expect(awake.session).toMatchObject({ status: 'ended', wakeAt: null })
  await close()
})

test('an interactive run that sleeps is woken by its own program, and shows that', async () => {
  const { run, view, close } = await asleep(true)
  const { verdict, session } = await view()
  expect(verdict.text).toContain(`It sleeps until ${shown}. Its process will wake it`)
  expect(session.status).toBe('sleeping')
  run.cancel()
  await run.result
  await close()
})
