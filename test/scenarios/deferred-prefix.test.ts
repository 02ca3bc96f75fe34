import * as fc from 'fast-check'
import { deferringTools, deferringTurns, findPrefixFault, type Loading } from '../support/deferring.js'
import { sampled } from '../support/extent.js'
import { stage } from '../support/play.js'

test.each<['chat' | 'responses', Loading]>([
  ['chat', 'append'],
  ['chat', 'dispatch'],
  ['responses', 'append'],
  ['responses', 'dispatch'],
])('each request starts with the previous request, byte for byte (%s, %s)', async (api, loading) => {
  let loads = 0
  let compared = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(deferringTurns(loading), { minLength: 1, maxLength: 2 }),
      fc.boolean(),
      async (plays, stream) => {
        const theatre = await stage(plays.flat(), {
          api,
          stream,
          instructions: 'Be brief.',
          tools: deferringTools(loading),
          guardrails: { progress: null },
        })
        for (const [i] of plays.entries()) {
          const { state } = await theatre.run(`Ask ${i}.`, { session: 's' }).run.result
          // A call of a tool that is not loaded does not end the run.
          expect(state).toBe('COMPLETED')
        }
        expect(theatre.requests.map(({ refused }) => refused).filter(Boolean)).toEqual([])
        const list = api === 'chat' ? 'messages' : 'input'
        for (const [i, { sent }] of theatre.requests.entries()) {
          if (i === 0) continue
          compared += 1
          expect(findPrefixFault(theatre.requests[i - 1]?.sent, sent, [list, loading])).toBeNull()
        }
        loads += theatre.plays.flatMap((one) => one.of('tools_loaded')).length
        await theatre.close()
      },
    ),
    // A fixed seed, because a few random runs might not load any tool.
    { numRuns: sampled(10), seed: 1 },
  )
  expect(loads).toBeGreaterThan(0)
  expect(compared).toBeGreaterThan(0)
})
