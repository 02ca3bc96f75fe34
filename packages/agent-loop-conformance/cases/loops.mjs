// Endless repetition. The server changes its answer after 300 requests, so a loop that is still running was not stopped.
import { calls, say } from '../frames.mjs'

const cap = 300

const stops = (name, title, answer, execute) => ({
  class: 'loops',
  name,
  title,
  mistake: 'neverStops',
  async run({ serve, open, tool, check, variant, lacks }) {
    const lane = serve(
      Object.assign(
        Array.from({ length: cap }, (_, at) => answer(at)),
        { otherwise: say('The cap of the server.') },
      ),
    )
    const limits = variant !== 'defaults' && !lacks.stepLimit ? { steps: 25 } : {}
    const { ok, ended } = await open({
      lane,
      limits,
      tools: [tool('read', { path: 'string' }, execute)],
    }).say('Go.')
    check(lane.requests.length < cap, `${lane.requests.length} requests: nothing stopped it (${ended})`)
    check(!ok, `stopped after ${lane.requests.length} requests, reported as a normal end (${ended})`)
    return `${lane.requests.length} requests, ${ended}`
  },
})

export default [
  stops(
    'same-call',
    'The same call, the same result',
    (at) => calls([[`c${at}`, 'read', { path: 'a' }]]),
    () => 'text',
  ),
  stops(
    'two-calls',
    'Two alternating calls',
    (at) => calls([[`c${at}`, 'read', { path: at % 2 ? 'a' : 'b' }]]),
    ({ path }) => `text of ${path}`,
  ),
  stops(
    'failing',
    'A call that always fails',
    (at) => calls([[`c${at}`, 'read', { path: 'a' }]]),
    () => {
      throw new Error('no such file')
    },
  ),
  stops(
    'no-such-tool',
    'A tool that does not exist',
    (at) => calls([[`c${at}`, 'write', { path: `a${at}` }]]),
    () => 'text',
  ),
  stops(
    'new-arguments',
    'Different arguments each time, the same result',
    (at) => calls([[`c${at}`, 'read', { path: `a${at}` }]]),
    () => 'nothing found',
  ),
]
