import { createPlace, says } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

const date = '2999-05-04T08:30:00Z'

/** Tools that put the run to sleep for a thousand years. */
const tools = `
import { defineTool, sleepUntil } from 'statewright'
export default [defineTool({
  name: 'nap',
  description: 'Sleeps.',
  input: { type: 'object', properties: {} },
  execute: () => sleepUntil(new Date('2998-01-01T00:00:00Z')),
})]
`

test('a paused session is put to sleep, and the commands show the wake time', async () => {
  const nap = { toolCalls: [{ name: 'nap', arguments: {} }] }
  const { run } = await createPlace({ 'naps.json': { turns: [nap, { text: 'Done.' }] }, 'tools.mjs': tools })
  const begun = await run(['run', '--session', 'naps', '--rehearsal=naps.json', '-t', 'tools.mjs', 'Go.'])
  expect(begun.out).toContain('PAUSED  sleeping until 2998-01-01 00:00:00 UTC')
  expect(begun.err).toContain('the run sleeps until 2998-01-01 00:00:00 UTC. You can also resume it earlier')
  expect((await run(['sessions', 'list'])).out).toMatch(/^naps +PAUSED until 2998-01-01 00:00:00 UTC/m)
  const output = await run(['send', 'naps', 'resume', date])
  expect(output).toMatchObject({ code: 0, out: 'naps sleeps until then.\n', err: '' })
  const [listed] = (await run(['sessions', 'list', '--json'])).out.trim().split('\n')
  expect(JSON.parse(listed ?? '')).toMatchObject({
    state: 'PAUSED',
    reason: 'sleeping',
    wakeAt: '2999-05-04T08:30:00.000Z',
  })
  const shown = await run(['sessions', 'show', 'naps'])
  expect(shown.out).toContain('PAUSED · sleeping until 2999-05-04 08:30:00 UTC')
})

test.each(['tomorrow', '2999-05-04', '2999-05-04T08:30:00', '2999-15-04T08:30:00Z'])(
  '%s is not a valid wake time',
  async (word) => {
    const { run } = await createPlace({ 'hi.json': says('Hello.') })
    await run(['run', '--session', 's', '--rehearsal=hi.json', 'Go.'])
    const { code, err } = await run(['send', 's', 'resume', word])
    expect(code).toBe(2)
    expect(err).toContain('must have a time zone')
  },
)
