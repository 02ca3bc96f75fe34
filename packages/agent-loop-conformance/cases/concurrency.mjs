// Concurrent runs. No run reads another run's data, and nothing remains of them.
import { getEventListeners } from 'node:events'
import { calls, say } from '../frames.mjs'
import { resultsOf, usersOf } from '../strict-history.mjs'

const concurrency = (rest) => ({ class: 'concurrency', ...rest })

/** A model that reads the file named in the user's last message, and then answers with that message. */
function echo({ messages }) {
  const text = usersOf(messages).at(-1)
  const last = messages.at(-1)
  return last.role === 'tool' ? say(`About ${text}`) : calls([[`c-${text}`, 'read', { path: text }]])
}

const echoing = Object.assign([], { otherwise: echo })
const reader = (tool) => tool('read', { path: 'string' }, ({ path }) => `text of ${path}`)

/**
 * The number of listeners on the signal once it is zero, or after 3 seconds. A library may remove its listeners after the end of a
 * run.
 */
async function listenersLeft(signal) {
  let left = getEventListeners(signal, 'abort').length
  for (let i = 0; i < 100 && left > 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 30))
    left = getEventListeners(signal, 'abort').length
  }
  return left
}

export default [
  concurrency({
    name: 'two-runs',
    title: 'Two simultaneous messages in one session are each answered or refused, and the history is valid',
    mistake: 'runsBeside',
    needs: ['session'],
    async run({ serve, open, tool, check, settles }) {
      const lane = serve(echoing)
      const conversation = open({ lane, tools: [reader(tool)] })
      const texts = ['ada', 'ben']
      const ends = await settles(
        Promise.all(
          texts.map(async (text) => {
            try {
              return await conversation.say(text)
            } catch (error) {
              return { ok: false, text: '', ended: `${error.name}: ${error.message}` }
            }
          }),
        ),
        38_000,
      )
      check(lane.refused.length === 0, `a strict provider refuses a request: ${lane.refused[0]}`)
      for (const [at, { ok, text, ended }] of ends.entries())
        check(!ok || text === `About ${texts[at]}`, `${texts[at]} got ${JSON.stringify(text)} (${ended})`)
      check(
        ends.some(({ ok }) => ok),
        `both were told no (${ends.map(({ ended }) => ended).join('; ')})`,
      )
      const before = lane.requests.length
      const again = await conversation.say('eve')
      check(lane.refused.length === 0, `a strict provider refuses the next request: ${lane.refused[0]}`)
      const userTexts = usersOf(lane.requests[before]?.messages ?? [])
      for (const [at, { ok }] of ends.entries())
        check(!ok || userTexts.includes(texts[at]), `${texts[at]} was answered, and is lost (${again.ended})`)
      return ends.map(({ ended }) => ended).join('; ')
    },
  }),
  concurrency({
    name: 'many-runs',
    title: 'Each of 200 simultaneous runs reads the results of its own calls',
    mistake: 'sharesMessages',
    alone: true,
    async run({ serve, open, tool, check, settles }) {
      const lane = serve(echoing)
      const texts = Array.from({ length: 200 }, (_, at) => `file ${at}`)
      const ends = await settles(
        Promise.all(texts.map((text) => open({ lane, tools: [reader(tool)] }).say(text))),
        35_000,
      )
      const wrong = ends.findIndex(({ text }, at) => text !== `About ${texts[at]}`)
      check(wrong === -1, `${texts[wrong]} got ${JSON.stringify(ends[wrong]?.text)} (${ends[wrong]?.ended})`)
      for (const { messages } of lane.requests) {
        const foreign = resultsOf(messages).find(({ text }) => !text.includes(usersOf(messages).at(-1)))
        check(!foreign, `a request has the result ${JSON.stringify(foreign)} of another run`)
      }
      return `${lane.requests.length} requests`
    },
  }),
  concurrency({
    name: 'listeners',
    title: 'An abort signal shared by 50 runs has no listeners after they have ended',
    mistake: 'leavesListeners',
    alone: true,
    async run({ serve, open, tool, check, settles }) {
      const lane = serve(echoing)
      const { signal } = new AbortController()
      const runs = Array.from({ length: 50 }, (_, at) =>
        open({ lane, tools: [reader(tool)] }).say(`file ${at}`, { signal }),
      )
      const ends = await settles(Promise.all(runs), 30_000)
      check(
        ends.every(({ ok }) => ok),
        `a run ended with ${ends.find(({ ok }) => !ok)?.ended}`,
      )
      const left = await listenersLeft(signal)
      check(left === 0, `${left} listeners are left after 50 runs`)
    },
  }),
]
