import { SimulatedClock } from 'xstate'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import { createAgent, createEventFormatter, sleepUntil } from '../../src/index.js'
import { createAGUIFold } from '../../src/agui/agui-fold.js'
import { createAnswerFold } from '../../src/ui/answer-fold.js'
import { foldTranscript, type Transcript } from '../../src/ui/index.js'
import { call as callOf, ManualModel } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'

const wakeAt = Date.parse('2026-05-04T07:00:00Z')

async function sleep(): Promise<AgentEvent[]> {
  const model = new ManualModel()
  const clock = new SimulatedClock()
  const agent = createAgent({ model, clock, tools: [tool('nap', () => sleepUntil(wakeAt))] })
  const run = agent.run('Go.')
  const events: AgentEvent[] = []
  run.events$.subscribe((event) => events.push(event))
  await until(() => model.pending !== null)
  model.pending?.answer({ toolCalls: [callOf('a', 'nap')], finishReason: 'tool_calls' })
  await run.result
  return events
}

test('pages see the wake time of a sleeping run', async () => {
  const events = await sleep()
  let shown: Transcript | undefined
  for (const event of events) shown = foldTranscript(shown, event)
  expect(shown).toMatchObject({ state: 'PAUSED', reason: 'sleeping', wakeAt })

  const answer = createAnswerFold({ protocol: 'v6', turn: null } as never)
  const chunks = [...events.flatMap((event) => answer.handleEvent(event)), ...answer.end()]
  expect(chunks).toContainEqual({
    type: 'data-statewright',
    id: 'run_ended',
    data: { type: 'run_ended', state: 'PAUSED', reason: 'sleeping', message: 'The run is sleeping.', wakeAt },
  })

  const page = createAGUIFold({ threadId: 't', runId: 'r', history: [] })
  const reported = [...page.begin(), ...events.flatMap((event) => page.handleEvent(event)), ...page.end()]
  expect(reported.at(-1)).toMatchObject({
    outcome: {
      type: 'interrupt',
      interrupts: [
        {
          reason: 'paused',
          message: 'The run is sleeping until 2026-05-04 07:00:00 UTC. Wake it now?',
          metadata: { statewright: { reason: 'sleeping', wakeAt } },
        },
      ],
    },
  })

  const format = createEventFormatter({ color: false })
  expect(events.map(format).join('')).toContain('● PAUSED  sleeping until 2026-05-04 07:00:00 UTC')
})

test('a page that opens while the run sleeps sees the wake time', () => {
  const status = {
    state: 'PAUSED',
    reason: 'sleeping',
    error: null,
    pending: [],
    settled: [],
    wakeAt,
  } as const
  const page = createAGUIFold({ threadId: 't', runId: 'r', history: [], status })
  const value = { state: 'PAUSED', reason: 'sleeping', wakeAt }
  expect(page.begin()).toContainEqual({
    type: 'STATE_DELTA',
    delta: [{ op: 'add', path: '/statewright', value }],
  })
  expect(page.getStatus()).toMatchObject({ wakeAt })
})
