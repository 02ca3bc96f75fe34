// Provider and tool failures.
import { calls, cut, first, refuse, say, stall, words } from '../frames.mjs'
import { resultsOf } from '../strict-history.mjs'

const faults = (rest) => ({ class: 'faults', ...rest })

const always = (plan) => Object.assign([], { otherwise: plan })

const fatal = (status, message) =>
  faults({
    name: `status-${status}`,
    title: `Status ${status} is reported, not retried`,
    mistake: 'retriesAll',
    async run({ serve, open, check, certify }) {
      const lane = serve(always({ ...refuse(status, message), fault: String(status) }))
      const { ok, ended } = await open({ lane }).say('Go.')
      certify(lane, String(status))
      check(!ok, `reported as a normal end (${ended})`)
      check(lane.requests.length === 1, `${lane.requests.length} requests (${ended})`)
      return ended
    },
  })

/** A rate limit with a retry time. The next request does not arrive before that time. */
const waits = (name, title, header) =>
  faults({
    name,
    title,
    mistake: 'retriesAtOnce',
    async run({ serve, open, check, certify }) {
      const lane = serve([{ ...refuse(429, 'slow down', header()), fault: '429' }, say('Hello.')])
      const { text, ok, ended } = await open({ lane }).say('Go.')
      certify(lane, '429')
      if (lane.requests.length === 1) {
        check(!ok, `not retried, and reported as a normal end (${ended})`)
        return `not retried, and told: ${ended}`
      }
      const waited = lane.requests[1].at - lane.requests[0].at
      check(waited >= 990, `the next request after ${Math.round(waited)} ms (${ended})`)
      check(text === 'Hello.', `the text ${JSON.stringify(text)} (${ended})`)
      return 'retried in time'
    },
  })

/** A misbehaving tool. The model receives a result, and the run continues. */
const toolFault = (name, title, execute, mistake = 'throwsToolErrors') =>
  faults({
    name,
    title,
    mistake,
    async run({ serve, open, tool, check }) {
      const lane = serve([calls([['c1', 'read', { path: 'a' }]]), say('I try again.')])
      const read = tool('read', { path: 'string' }, execute)
      const { text, ended } = await open({ lane, tools: [read] }).say('Go.')
      check(read.runs.length > 0, 'the tool did not run')
      check(text === 'I try again.', `the text ${JSON.stringify(text)} (${ended})`)
      const results = resultsOf(lane.requests[1].messages)
      check(results.length === 1, `the next request has ${results.length} results`)
      return `the model reads ${JSON.stringify(results[0].text.slice(0, 60))}`
    },
  })

export default [
  waits('retry-after', '429 with Retry-After in seconds', () => ({ 'retry-after': '1' })),
  waits('retry-after-date', '429 with Retry-After as a date', () => ({
    'retry-after': new Date(Date.now() + 2500).toUTCString(),
  })),
  faults({
    name: 'status-503-once',
    title: 'A single 503 response is retried',
    mistake: 'neverRetries',
    needs: ['retries'],
    async run({ serve, open, check, certify }) {
      const lane = serve([{ ...refuse(503, 'overloaded'), fault: '503' }, say('Hello.')])
      const { text, ended } = await open({ lane }).say('Go.')
      certify(lane, '503')
      check(text === 'Hello.', `the text ${JSON.stringify(text)} (${ended})`)
    },
  }),
  fatal(400, 'context length exceeded'),
  fatal(401, 'wrong key'),
  faults({
    name: 'cut-at-once',
    title: 'A response body cut before its first byte is retried or reported',
    mistake: 'acceptsCut',
    async run({ serve, open, check, certify }) {
      const lane = serve(always({ frames: [cut] }))
      const { ok, ended } = await open({ lane }).say('Go.')
      certify(lane, 'cut')
      check(!ok, `reported as a normal end (${ended})`)
      return ended
    },
  }),
  faults({
    name: 'stalled',
    title: 'A body that stalls is ended by the idle timeout',
    mistake: 'ignoresSilence',
    needs: ['idleLimit'],
    async run({ serve, open, check, certify, settles }) {
      const lane = serve(always({ frames: [first, ...words('Half of it'), stall] }))
      const { ok, ended } = await settles(open({ lane, limits: { idleMs: 300 } }).say('Go.'))
      certify(lane, 'stall')
      check(!ok, `reported as a normal end (${ended})`)
      return ended
    },
  }),
  faults({
    name: 'html',
    title: 'Status 200 with an HTML page is reported',
    mistake: 'acceptsAnything',
    async run({ serve, open, check, certify }) {
      const lane = serve(
        always({ type: 'text/html', frames: ['<html><body>Bad gateway</body></html>'], fault: 'html' }),
      )
      const { ok, text, ended } = await open({ lane }).say('Go.')
      certify(lane, 'html')
      check(!ok, `reported as a normal end, with the text ${JSON.stringify(text)} (${ended})`)
      return ended
    },
  }),
  faults({
    name: 'no-server',
    title: 'An unreachable server is reported',
    mistake: 'acceptsAnything',
    async run({ open, check }) {
      const { ok, ended } = await open({ lane: { baseURL: 'http://127.0.0.1:9/v1' } }).say('Go.')
      check(!ok, `reported as a normal end (${ended})`)
      return ended
    },
  }),
  toolFault('tool-throws', 'A tool that throws an error', () => {
    throw new Error('no such file')
  }),
  toolFault('tool-rejects', 'A tool that rejects without an error', async () => {
    throw undefined
  }),
  toolFault('tool-undefined', 'A tool that returns undefined', () => undefined, 'wantsJson'),
  toolFault(
    'tool-circular',
    'A tool that returns a value that JSON cannot represent',
    () => {
      const ring = { big: 10n }
      ring.self = ring
      return ring
    },
    'wantsJson',
  ),
]
