import { jest } from '@jest/globals'
import fc from 'fast-check'
import { createAgent, defineTool, type Run } from '../../src/index.js'
import { call, ManualModel } from '../support/manual-model.js'
import { cases, delays, SlowPlace } from '../support/slow-place.js'
import { tool } from '../support/tools.js'

jest.setTimeout(cases.numRuns * 5000)

const kinds = ['approve', 'reject', 'output'] as const

/** Answers to the calls of one batch: their order, and the milliseconds since the previous answer. */
const answers = fc
  .array(fc.record({ kind: fc.constantFrom(...kinds), gap: fc.nat(25) }), { minLength: 2, maxLength: 4 })
  .chain((moves) => fc.shuffledSubarray([...moves.entries()], { minLength: moves.length }))

function say(run: Run, callId: string, kind: (typeof kinds)[number]): void {
  if (kind === 'approve') run.approve(callId)
  else if (kind === 'reject') run.reject(callId, 'No.')
  else run.addToolOutput(callId, 'seen')
}

test('answers to the calls of one batch count, for any latency, order and distance', async () => {
  await fc.assert(
    fc.asyncProperty(delays, answers, async (ways, moves) => {
      const place = new SlowPlace(ways)
      const { clock, near } = place
      const [model, paid] = [new ManualModel(), [] as string[]]
      const pay = tool('pay', ({ text }) => void paid.push(String(text)), { needsApproval: true })
      const look = defineTool({
        name: 'look',
        description: 'Looks.',
        input: { type: 'object' },
        client: true,
      })
      const agent = createAgent({ model, clock, store: place.open(), tools: [pay, look as never] })
      const run = agent.run('Go.', { session: 's' })
      await place.until(() => model.pending)
      const calls = moves
        .toSorted(([a], [b]) => a - b)
        .map(([i, { kind }]) => call(`c${i}`, kind === 'output' ? 'look' : 'pay', { text: `${i}` }))
      model.pending?.answer({ finishReason: 'tool_calls', toolCalls: calls })
      expect(await place.of(run.result)).toMatchObject({ state: 'WAITING_FOR_INPUT' })
      for (const [i, { kind, gap }] of moves) {
        await place.pass(gap)
        say(run as Run, `c${i}`, kind)
      }
      await place.until(() => model.pending ?? run.state === 'ERROR')
      model.pending?.answer({ text: 'Done.' })
      await place.until(() => !['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT'].includes(run.state))
      expect(await place.of(run.result)).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
      const approved = moves.flatMap(([i, { kind }]) => (kind === 'approve' ? [`${i}`] : []))
      expect(paid.toSorted()).toEqual(approved.toSorted())
      expect(near.get('s')).toMatchObject({ holder: null, summary: { state: 'COMPLETED' } })
      const stored = await place.of(agent.replay('s'))
      expect(stored.messages).toEqual((await run.result).messages)
    }),
    cases,
  )
})
