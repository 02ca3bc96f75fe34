import * as fc from 'fast-check'
import type { Turn } from '../../src/rehearsal/index.js'
import { stage } from '../support/play.js'
import { tool } from '../support/tools.js'
import { sampled } from '../support/extent.js'

type Api = 'chat' | 'responses'
type Sent = Readonly<Record<string, unknown>>

const word = fc.constantFrom('One.', 'Two words', 'ünï🙂', 'a "b" \\c', '{"x":1}')
const call = fc.record({
  name: fc.constantFrom('look', 'fail', 'missing'),
  arguments: fc.oneof(fc.constant({}), fc.record({ q: fc.nat(3) }), fc.constant('{"broken')),
})
const working: fc.Arbitrary<Turn> = fc.record(
  { toolCalls: fc.array(call, { minLength: 1, maxLength: 3 }), text: word, reasoning: word },
  { requiredKeys: ['toolCalls'] },
)
/** The model's turns in one run. The answer may come in two pieces. */
const play = fc.record({
  work: fc.array(working, { maxLength: 5 }),
  isCut: fc.boolean(),
  end: fc.record({ text: word, reasoning: word }, { requiredKeys: ['text'] }),
})

const partsOf = (sent: Sent, api: Api): unknown[] => sent[api === 'chat' ? 'messages' : 'input'] as unknown[]

/** The prefix that the provider could have cached. It excludes content added to a single request. */
function isContinued(before: Sent, after: Sent, api: Api): boolean {
  const [earlier, later] = [before, after].map((sent) =>
    partsOf(sent, api).map((part) => JSON.stringify(part)),
  )
  const remaining = earlier?.filter((part, i) => later?.[i] === part) ?? []
  const last = earlier?.at(-1) ?? ''
  const isNudged = remaining.length === (earlier?.length ?? 0) - 1 && last.includes('"role":"user"')
  const { [api === 'chat' ? 'messages' : 'input']: _a, ...rest } = before
  const { [api === 'chat' ? 'messages' : 'input']: _b, ...others } = after
  const isWhole = remaining.length === earlier?.length || isNudged
  return isWhole && JSON.stringify(rest) === JSON.stringify(others)
}

test.each<Api>(['chat', 'responses'])(
  'the shared prefix of two requests is identical, byte for byte (%s)',
  async (api) => {
    let nudged = 0
    let requests = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(play, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        async (plays, stream) => {
          const turns = plays.flatMap(({ work, isCut, end }): Turn[] => [
            ...work,
            ...(isCut ? [{ ...end, finishReason: 'length' }] : []),
            end,
          ])
          const theatre = await stage(turns, {
            api,
            stream,
            instructions: 'Be brief.',
            tools: [
              tool('look', () => 'seen'),
              tool('fail', () => {
                throw new Error('It failed.')
              }),
            ],
            // They nudge, then stop a run. The session's next run continues.
            guardrails: { progress: null, failing: {}, repeatedCall: {} },
          })
          for (const [i] of plays.entries()) await theatre.run(`Ask ${i}.`, { session: 's' }).run.result
          const sent = theatre.requests.map((request) => request.sent as Sent)
          expect(theatre.requests.map(({ refused }) => refused).filter(Boolean)).toEqual([])
          requests += sent.length
          for (const [i, request] of sent.entries()) {
            if (i === 0) continue
            expect(isContinued(sent[i - 1] as Sent, request, api)).toBe(true)
          }
          const events = theatre.plays.flatMap((one) => one.of('guardrail'))
          nudged += events.filter(({ action }) => action === 'nudge').length
          await theatre.close()
        },
      ),
      { numRuns: sampled(25), seed: 20261122 },
    )
    // Otherwise the test would not cover guard additions to requests.
    expect(nudged).toBeGreaterThan(0)
    expect(requests).toBeGreaterThan(sampled(100))
  },
)
