import * as fc from 'fast-check'
import { deferringTools, deferringTurns, findPrefixFault, type Loading } from '../support/deferring.js'
import { sampled } from '../support/extent.js'
import { packages, stageOf } from './support.js'

const listOf = (name: string): string =>
  name.startsWith('google') ? 'contents' : name.includes('responses') ? 'input' : 'messages'

const cases = Object.keys(packages).flatMap((name) =>
  (['append', 'dispatch'] as Loading[]).map((loading) => [name, loading] as const),
)

test.each(cases.filter(([name]) => !name.startsWith('google')))(
  'each request starts with the previous one, byte for byte, with deferred tools (%s, %s)',
  async (name, loading) => {
    const make = packages[name]
    if (!make) throw new Error(`There is no ${name}.`)
    let loads = 0
    await fc.assert(
      fc.asyncProperty(deferringTurns(loading), async (turns) => {
        const theatre = await stageOf(make, turns, {
          instructions: 'Be brief.',
          tools: deferringTools(loading),
          guardrails: { progress: null },
        })
        const play = theatre.run()
        const { state, error } = await play.run.result
        expect([state, error]).toEqual(['COMPLETED', undefined])
        for (const [i, { sent }] of theatre.requests.entries()) {
          if (i === 0) continue
          expect(findPrefixFault(theatre.requests[i - 1]?.sent, sent, [listOf(name), loading])).toBeNull()
        }
        loads += play.of('tools_loaded').length
        await theatre.close()
      }),
      // A fixed seed. A few random runs might load nothing.
      { numRuns: sampled(6), seed: 1 },
    )
    expect(loads).toBeGreaterThan(0)
  },
)
