// Cancellation. Nothing starts after it, finished results are kept, and the caller gets a result.
import { call, calls, end, first, refuse, say, stall, words } from '../frames.mjs'
import { resultsOf } from '../strict-history.mjs'

const cancel = (rest) => ({ class: 'cancel', ...rest })
const read = (id, path) => [id, 'read', { path }]
const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
const never = () => new Promise(() => {})

/** Aborts a while after the request, when the client has read the available part of the answer. No client reports that moment. */
const abortOnceRead = (controller) => setTimeout(() => controller.abort(), 250)

/** Aborts after a tool has returned its promise, not during its start. A person cancels the same way. */
const abortOnceStarted = (controller) => setTimeout(() => controller.abort(), 10)

async function noMore({ lane, check, ended, tools = [] }) {
  const ran = tools.map(({ runs }) => runs.length).join()
  const late = await lane.quiet()
  check(late === 0, `${late} more requests after the end (${ended})`)
  check(tools.map(({ runs }) => runs.length).join() === ran, `a tool started after the end (${ended})`)
}

export default [
  cancel({
    name: 'before',
    title: 'An already aborted signal prevents the request',
    mistake: 'ignoresSignal',
    async run({ serve, open, check, settles }) {
      const lane = serve([say('Hello.')])
      const { ended } = await settles(open({ lane }).say('Go.', { signal: AbortSignal.abort() }))
      await lane.quiet()
      check(lane.requests.length === 0, `${lane.requests.length} requests (${ended})`)
    },
  }),
  cancel({
    name: 'in-text',
    title: 'Cancelling while text streams closes the socket and ends the call',
    mistake: 'ignoresSignal',
    async run({ serve, open, check, certify, settles }) {
      const controller = new AbortController()
      const lane = serve([{ frames: [first, ...words('Half of it'), stall] }])
      const running = open({ lane }).say('Go.', { signal: controller.signal })
      await lane.had(1)
      abortOnceRead(controller)
      const { ok, ended } = await settles(running)
      certify(lane, 'stall')
      check(!ok, `reported as a normal end (${ended})`)
      await noMore({ lane, check, ended })
      check(lane.requests[0].closed, `the socket of the request is open (${ended})`)
      return ended
    },
  }),
  cancel({
    name: 'before-calls',
    title:
      'A tool call that is still streaming when the run is cancelled is not executed, even if the rest arrives',
    mistake: 'ignoresSignal',
    async run({ serve, open, tool, check, settles }) {
      const controller = new AbortController()
      const frames = [
        first,
        ...call(0, 'c1', 'read', { path: 'a' }),
        { until: aborted(controller.signal) },
        ...end('tool_calls'),
      ]
      const lane = serve([{ frames }, say('Done.')])
      const tool1 = tool('read', { path: 'string' }, () => 'text')
      const running = open({ lane, tools: [tool1] }).say('Go.', { signal: controller.signal })
      await lane.had(1)
      abortOnceRead(controller)
      const { ended } = await settles(running)
      await noMore({ lane, check, ended, tools: [tool1] })
      check(tool1.runs.length === 0, `executed (${ended})`)
      check(lane.requests.length === 1, `${lane.requests.length} requests (${ended})`)
    },
  }),
  cancel({
    name: 'in-call',
    title: 'Cancelling during a tool call that obeys the signal prevents further requests',
    mistake: 'ignoresSignal',
    async run({ serve, open, tool, check, settles }) {
      const controller = new AbortController()
      const lane = serve([calls([read('c1', 'a')]), say('Done.')])
      let reached = false
      const tool1 = tool('read', { path: 'string' }, async (_, { signal }) => {
        abortOnceStarted(controller)
        await Promise.race([aborted(controller.signal), signal ? aborted(signal) : never()])
        // The library may forward the abort a moment later.
        await new Promise((resolve) => setTimeout(resolve, 20))
        reached = signal?.aborted === true
        throw new Error('aborted')
      })
      const { ok, ended } = await settles(
        open({ lane, tools: [tool1] }).say('Go.', { signal: controller.signal }),
      )
      await noMore({ lane, check, ended, tools: [tool1] })
      check(lane.requests.length === 1, `${lane.requests.length} requests (${ended})`)
      check(!ok, `reported as a normal end (${ended})`)
      check(reached, `the abort did not reach the tool (${ended})`)
    },
  }),
  cancel({
    name: 'in-deaf-call',
    title: 'Cancelling during a tool call that never ends still ends the run',
    mistake: 'awaitsTools',
    async run({ serve, open, tool, check, settles }) {
      const controller = new AbortController()
      const lane = serve([calls([read('c1', 'a')]), say('Done.')])
      const tool1 = tool('read', { path: 'string' }, () => {
        abortOnceStarted(controller)
        return never()
      })
      const { ok, ended } = await settles(
        open({ lane, tools: [tool1] }).say('Go.', { signal: controller.signal }),
      )
      check(!ok, `reported as a normal end (${ended})`)
      await noMore({ lane, check, ended })
    },
  }),
  cancel({
    name: 'swallowed',
    title: 'Cancelling during a tool call that returns anyway prevents further requests',
    mistake: 'ignoresSignal',
    async run({ serve, open, tool, check, settles }) {
      const controller = new AbortController()
      const lane = serve([calls([read('c1', 'a')]), say('Done.')])
      const tool1 = tool('read', { path: 'string' }, () => {
        controller.abort()
        return 'the text'
      })
      const { ended } = await settles(
        open({ lane, tools: [tool1] }).say('Go.', { signal: controller.signal }),
      )
      await noMore({ lane, check, ended })
      check(lane.requests.length === 1, `${lane.requests.length} requests (${ended})`)
    },
  }),
  cancel({
    name: 'result-kept',
    title: 'If one of two calls had returned before the cancellation, its result is in the next request',
    mistake: 'dropsResults',
    async run({ serve, open, tool, check, settles }) {
      const controller = new AbortController()
      const lane = serve([calls([read('c1', 'a'), read('c2', 'b')]), say('Done.')])
      const tool1 = tool('read', { path: 'string' }, async ({ path }, { signal }) => {
        if (path === 'a') return 'paid for'
        // The library reads the result of the first call in the meantime.
        setTimeout(() => controller.abort(), 60)
        await (signal ? aborted(signal) : aborted(controller.signal))
        throw new Error('aborted')
      })
      const conversation = open({ lane, tools: [tool1] })
      const { ended } = await settles(conversation.say('Go.', { signal: controller.signal }))
      check(
        tool1.runs.length === 2,
        `the calls ran neither in parallel nor in sequence: ${tool1.runs.length} (${ended})`,
      )
      const before = lane.requests.length
      await settles(conversation.say('Again.'))
      const results = resultsOf(lane.requests[before]?.messages ?? [])
      check(
        results.some(({ text }) => text.includes('paid for')),
        `the next request has the results ${JSON.stringify(results)} (${ended})`,
      )
    },
  }),
  cancel({
    name: 'in-retry',
    title: 'Cancelling while a retry waits prevents further requests',
    mistake: 'ignoresSignal',
    needs: ['retries'],
    async run({ serve, open, check, settles }) {
      const controller = new AbortController()
      const lane = serve(Object.assign([], { otherwise: { ...refuse(503, 'overloaded'), fault: '503' } }))
      const running = open({ lane }).say('Go.', { signal: controller.signal })
      await lane.had(1)
      let atAbort = 0
      // The client has read the refusal by then. Requests before the abort do not count.
      setTimeout(() => {
        atAbort = lane.requests.length
        controller.abort()
      }, 60)
      const { ended } = await settles(running, 14_000)
      // Longer than the delay of a first retry.
      await lane.quiet(2500)
      const late = lane.requests.length - atAbort
      check(late === 0, `${late} more requests after the abort (${ended})`)
    },
  }),
]
