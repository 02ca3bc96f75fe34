import { z } from 'zod'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import { createAgent, defineTool, type Run } from '../../../src/index.js'
import { call, ManualModel, settled } from '../../support/manual-model.js'

/** A run of two steps. `during` is called while its tool works. */
async function played(before: (run: Run) => void, during: (run: Run) => void): Promise<void> {
  const model = new ManualModel()
  const tool = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    execute: () => {
      during(run)
      return 'seen'
    },
  })
  const run: Run = createAgent({ model, tools: [tool] }).run('Go.')
  before(run)
  await settled()
  model.pending?.answer({ toolCalls: [call('c1', 'look')] })
  await settled()
  model.pending?.delta('Do')
  model.pending?.delta('ne.')
  model.pending?.answer({ text: 'Done.' })
  await run.result
}

const listen =
  (events: AgentEvent[]) =>
  (run: Run): void => {
    run.events$.subscribe((event) => {
      events.push(event)
    })
  }

test('Events without a subscriber are numbered, so that a late subscriber sees the same numbers', async () => {
  const all: AgentEvent[] = []
  const late: AgentEvent[] = []
  await played(listen(all), () => undefined)
  await played(() => undefined, listen(late))
  const known = (events: AgentEvent[]) => events.map(({ type, seq }) => `${seq} ${type}`)
  expect(known(late).length).toBeGreaterThan(5)
  expect(known(all)).toEqual(expect.arrayContaining(known(late)))
  expect(known(late).at(-1)).toBe(known(all).at(-1))
})

test('A subscriber of some events receives all events once from then on', async () => {
  const late: AgentEvent[] = []
  let text = ''
  const states: string[] = []
  await played((run) => {
    run.text$.subscribe((piece) => {
      text += piece
    })
    run.state$.subscribe((state) => {
      states.push(state)
    })
  }, listen(late))
  expect(text).toBe('Done.')
  expect(states).toEqual(['RUNNING', 'WAITING_FOR_TOOL', 'RUNNING', 'COMPLETED'])
  const numbers = late.map(({ seq }) => seq)
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(late.filter(({ type }) => type === 'run_ended')).toHaveLength(1)
})
