import { createAgent } from '../../src/index.js'
import { obedient } from '../support/granting.js'
import { tool } from '../support/tools.js'
import { createPlace } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

const until = Date.parse('2126-05-04T00:00:00Z')

/** A session that has ended, with two grants. */
async function granted() {
  const place = await createPlace()
  await place.withStore(async (store) => {
    const pay = tool('pay', () => 'Paid.', { needsApproval: true })
    const agent = createAgent({ model: obedient, store, tools: [pay] })
    const run = agent.run(JSON.stringify([['pay', { n: 1 }]]), { session: 's', by: 'ann' })
    const { pending } = await run.result
    run.approve(pending![0]!, undefined, { by: 'bob', grant: {} })
    await run.result
    await agent.send('s', { type: 'grant', tool: 'pay', when: { n: { max: 5 } }, uses: 3, until, by: 'cyd' })
    await agent.run(JSON.stringify([['pay', { n: 2 }]]), { session: 's', by: 'ann' }).result
  })
  return place
}

test('grants lists the grants of a session, and send revokes one', async () => {
  const { run } = await granted()
  const { code, out, err } = await run(['grants', 's'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const [head, exact, limited] = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/))
  expect(head).toEqual(['grant', 'tool', 'arguments', 'uses left', 'until', 'given by'])
  expect(exact?.slice(1)).toEqual(['pay', '{"n":1}', 'unlimited', 'revoked', 'bob'])
  expect(limited?.slice(1)).toEqual(['pay', '{"n":{"max":5}}', '2', '2126-05-04T00:00:00.000Z', 'cyd'])
  const unknown = await run(['send', 's', 'revoke', 'none'])
  expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining("no grant 'none'")])
  expect(await run(['send', 's', 'revoke', exact![0]!])).toMatchObject({ code: 0, err: '' })
  const again = await run(['send', 's', 'revoke', exact![0]!])
  expect([again.code, again.err]).toEqual([2, expect.stringContaining('no grant')])
})

test('grants prints JSON, and names what is missing', async () => {
  const { run } = await granted()
  const { out } = await run(['grants', 's', '--json'])
  const lines = out.trimEnd().split('\n')
  expect(lines.map((line) => (JSON.parse(line) as { tool: string }).tool)).toEqual(['pay', 'pay'])
  expect((await run(['grants'])).err).toContain('ID is missing.')
  expect((await run(['grants', 'nobody'])).code).toBe(2)
})
