import fc from 'fast-check'
import type { Turn } from '../../src/rehearsal/index.js'
import { tool } from '../support/tools.js'
import { packages, playedBy } from './support.js'

const add = tool('add', ({ a, b }) => Number(a) + Number(b), { readOnly: true })
const batch = (calls: number): Turn => ({
  text: 'Next.',
  toolCalls: Array.from({ length: calls }, (_, a) => ({ name: 'add', arguments: { a, b: 1 } })),
})

interface Sent {
  system?: { cache_control?: object }[]
  messages: { content: { type: string; cache_control?: object }[] }[]
}

/** The positions of cache marks: message and block. */
function marksIn({ system = [], messages }: Sent): string[] {
  return [
    ...system.flatMap(({ cache_control: mark }) => (mark ? ['system'] : [])),
    ...messages.flatMap(({ content }, i) =>
      content.flatMap(({ cache_control: mark }, j) => (mark ? [`${i}.${j}`] : [])),
    ),
  ]
}

describe.each(Object.keys(packages).filter((name) => name.startsWith('anthropic')))('%s', (name) => {
  const make = packages[name]
  if (!make) throw new Error(`There is no ${name}.`)
  const instructions = 'Be brief.'
  const turns = [batch(2), batch(1), { text: 'Done.' }]

  it('marks the instructions, the end of the transcript, and the end of the previous one', async () => {
    const { stage } = await playedBy(make, turns, { tools: [add], instructions })
    const sent = stage.requests.map((request) => request.sent as Sent)
    expect(sent.map(marksIn)).toEqual([
      ['system', '0.0'],
      ['system', '0.0', '2.1'],
      ['system', '2.1', '4.0'],
    ])
    expect(sent[0]?.system?.[0]?.cache_control).toEqual({ type: 'ephemeral' })
  })

  it('caches for an hour on request, and can be disabled', async () => {
    const { stage } = await playedBy(make, [{ text: 'Hi.' }], { instructions }, { cache: '1h' })
    expect((stage.requests[0]?.sent as Sent | undefined)?.system?.[0]?.cache_control).toEqual({
      type: 'ephemeral',
      ttl: '1h',
    })
    const off = await playedBy(make, [{ text: 'Hi.' }], { instructions }, { cache: false })
    expect(JSON.stringify(off.stage.requests[0]?.sent)).not.toContain('cache_control')
  })
})

/** The common prefix of each request and the previous one. */
function prefixOf(sent: unknown, key: string): { rest: string; list: string[] } {
  const { [key]: list, ...rest } = JSON.parse(
    JSON.stringify(sent, (name, value: unknown) => (name === 'cache_control' ? undefined : value)),
  ) as Record<string, unknown>
  return { rest: JSON.stringify(rest), list: (list as unknown[]).map((one) => JSON.stringify(one)) }
}

it.each(Object.entries(packages))(
  '%s: a request starts with the whole previous request',
  async (name, make) => {
    const key = listKey(name)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
        async (batches) => {
          const turns = [...batches.map(batch), { text: 'Done.' }]
          // These paths repeat steps, so guards would add nudges that are not in the transcript.
          const { stage } = await playedBy(make, turns, {
            tools: [add],
            instructions: 'Be brief.',
            guardrails: { progress: null },
          })
          const prefixes = stage.requests.map(({ sent }) => prefixOf(sent, key))
          for (const [i, { rest, list }] of prefixes.slice(0, -1).entries()) {
            expect(prefixes[i + 1]?.rest).toBe(rest)
            expect(prefixes[i + 1]?.list.slice(0, list.length)).toEqual(list)
          }
        },
      ),
      { numRuns: 5 },
    )
  },
)

/** The key of the message list in a request. */
function listKey(name: string): string {
  if (name.startsWith('google')) return 'contents'
  return name.includes('responses') ? 'input' : 'messages'
}
