// After every kind of stop, a strict provider accepts the next request, and that request contains the completed work.
import { call, calls, first, refuse, say, words, end } from '../frames.mjs'
import { callsOf, resultsOf, usersOf } from '../strict-history.mjs'
import { NotCertified } from '../verdict.mjs'

/** One stop, and then "Again.". The server rejects the same requests as a strict provider. */
const after = (name, title, mistake, stop, { needs, checkHistory } = {}) => ({
  class: 'history',
  name,
  title,
  mistake,
  needs,
  async run(world) {
    const { check } = world
    const { lane, conversation, ended } = await stop(world)
    const before = lane.requests.length
    const again = await conversation.say('Again.')
    const request = lane.requests[before]
    check(request, `no further request: ${again.ended}`)
    check(lane.refused.length === 0, `a strict provider refuses the next request: ${lane.refused[0]}`)
    check(usersOf(request.messages).at(-1)?.includes('Again.'), 'the new message is not the last one')
    check(
      usersOf(request.messages).some((text) => text.includes('Go.')),
      'the first message is lost',
    )
    if (checkHistory) checkHistory({ ...world, messages: request.messages })
    return ended
  },
})

const read = (id, path) => [id, 'read', { path }]
const fixed = (text) => () => text

/** A controller that aborts inside a tool. The tool then waits for the abort, or for a short time. */
const waits =
  (controller) =>
  (_, { signal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve('late'), 3000)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(new Error('aborted'))
      })
      controller.abort()
    })

/**
 * A final frame that flushes all earlier frames, and a promise that settles shortly after. No client reports that it has read the
 * frame.
 */
function landing() {
  let tell
  const isSent = new Promise((resolve) => {
    tell = resolve
  })
  return { sent: { reached: () => setTimeout(() => tell(), 100) }, isSent }
}

async function untilDeadline({ serve, open, tool, settles, check }, deadlineMs) {
  const lane = serve([calls([read('c1', 'a')]), say('Done.')])
  const never = tool(
    'read',
    { path: 'string' },
    (_, { signal }) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('aborted')))
      }),
  )
  const conversation = open({ lane, limits: { deadlineMs }, tools: [never] })
  const { ok, ended } = await settles(conversation.say('Go.'), 20_000)
  check(!ok, `reported as a normal end (${ended})`)
  return { lane, conversation, ended, ran: never.runs.length === 1 }
}

export default [
  after(
    'end',
    'After a normal end, with a tool',
    'dropsResults',
    async ({ serve, open, tool }) => {
      const lane = serve([calls([read('c1', 'a')]), say('Done.')])
      const conversation = open({ lane, tools: [tool('read', { path: 'string' }, fixed('the text'))] })
      const { ended } = await conversation.say('Go.')
      return { lane, conversation, ended }
    },
    {
      checkHistory: ({ check, messages }) =>
        check(
          resultsOf(messages).some(({ text }) => text.includes('the text')),
          'the result of the call is lost',
        ),
    },
  ),
  after(
    'limit',
    'After a step limit',
    'leavesCallsOpen',
    async ({ serve, open, tool }) => {
      const lane = serve([calls([read('c1', 'a')]), calls([read('c2', 'b')]), say('Done.')])
      const conversation = open({
        lane,
        limits: { steps: 2 },
        tools: [tool('read', { path: 'string' }, fixed('the text'))],
      })
      const { ended } = await conversation.say('Go.')
      return { lane, conversation, ended }
    },
    { needs: ['stepLimit'] },
  ),
  after(
    'cancel-in-call',
    'After a cancellation while a call runs',
    'leavesCallsOpen',
    async ({ serve, open, tool, settles }) => {
      const lane = serve([calls([read('c1', 'a')]), say('Done.')])
      const controller = new AbortController()
      const conversation = open({ lane, tools: [tool('read', { path: 'string' }, waits(controller))] })
      const { ended } = await settles(conversation.say('Go.', { signal: controller.signal }))
      return { lane, conversation, ended }
    },
  ),
  after(
    'cancel-in-text',
    'After a cancellation while text streams',
    'keepsEmptyAnswer',
    async ({ serve, open, settles }) => {
      const controller = new AbortController()
      const { sent, isSent } = landing()
      const lane = serve([
        { frames: [first, ...words('Half of it'), sent, { until: aborted(controller.signal) }, ...end()] },
        say('Done.'),
      ])
      const conversation = open({ lane })
      const running = conversation.say('Go.', { signal: controller.signal })
      await isSent
      controller.abort()
      const { ended } = await settles(running)
      return { lane, conversation, ended }
    },
  ),
  after(
    'cancel-in-arguments',
    "After a cancellation while a call's arguments are streaming",
    'keepsHalfCalls',
    async ({ serve, open, tool, settles }) => {
      const controller = new AbortController()
      const half = call(0, 'c1', 'read', '{"path":"/home/ada/le')
      const { sent, isSent } = landing()
      const lane = serve([
        { frames: [first, ...half, sent, { until: aborted(controller.signal) }, ...end()] },
        say('Done.'),
      ])
      const conversation = open({ lane, tools: [tool('read', { path: 'string' }, fixed('the text'))] })
      const running = conversation.say('Go.', { signal: controller.signal })
      await isSent
      controller.abort()
      const { ended } = await settles(running)
      return { lane, conversation, ended }
    },
  ),
  after(
    'deadline',
    'After a deadline while a call runs',
    'leavesCallsOpen',
    async (world) => {
      // A deadline that expires before the call runs proves nothing, so the next deadline is longer.
      for (const deadlineMs of [1000, 4000, 12_000]) {
        const stopped = await untilDeadline(world, deadlineMs)
        if (stopped.ran) return stopped
      }
      throw new NotCertified('the call did not run before the deadline')
    },
    { needs: ['deadline'] },
  ),
  after(
    'refused',
    'After a person rejects a call',
    'leavesCallsOpen',
    async ({ serve, open, tool, settles, check }) => {
      const lane = serve([calls([['c1', 'remove', { path: 'a' }]]), say('Then not.'), say('Done.')])
      const remove = { ...tool('remove', { path: 'string' }, fixed('removed')), asks: true }
      const conversation = open({ lane, tools: [remove] })
      const { pending, ended } = await conversation.say('Go.')
      check(pending?.length === 1, `${pending?.length ?? 0} questions for one call (${ended})`)
      const { ended: end } = await settles(conversation.answer({ [pending[0].id]: false }), 20_000)
      return { lane, conversation, ended: end }
    },
    { needs: ['approvals'] },
  ),
  after('tool-throws', 'After a tool throws', 'leavesCallsOpen', async ({ serve, open, tool }) => {
    const lane = serve([calls([read('c1', 'a')]), say('Done.')])
    const fails = tool('read', { path: 'string' }, () => {
      throw new Error('no such file')
    })
    const conversation = open({ lane, tools: [fails] })
    const { ended } = await conversation.say('Go.')
    return { lane, conversation, ended }
  }),
  after(
    'provider-fails',
    'After the provider refuses the second request',
    'leavesCallsOpen',
    async ({ serve, open, tool }) => {
      const lane = serve([calls([read('c1', 'a')]), refuse(400, 'context length exceeded'), say('Done.')])
      const conversation = open({ lane, tools: [tool('read', { path: 'string' }, fixed('the text'))] })
      const { ended } = await conversation.say('Go.')
      return { lane, conversation, ended }
    },
    {
      checkHistory: ({ check, messages }) =>
        check(callsOf(messages).length === 1, 'the completed call is lost'),
    },
  ),
  after(
    'broken-arguments',
    'After a call with invalid JSON arguments',
    'keepsBrokenArguments',
    async ({ serve, open, tool }) => {
      const lane = serve([calls([['c1', 'read', '{"path":']]), say('Done.')])
      const conversation = open({ lane, tools: [tool('read', { path: 'string' }, fixed('the text'))] })
      const { ended } = await conversation.say('Go.')
      return { lane, conversation, ended }
    },
  ),
]

function aborted(signal) {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}
