// One process that drives sessions. Each session calls its slow model, then a writing tool, and repeats without end. The process
// records the start time of every effect.
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent, defineAgents, defineTool, runSession } from '../../dist/src/index.js'
import { call, createAnswer } from '../answers.mjs'
import { answerParent } from '../asked-worker.mjs'
import { openStore } from './store.mjs'

const [where, modelMs] = [process.argv[2], Number(process.argv[3])]
const now = () => performance.timeOrigin + performance.now()
/** The last start of an effect per session, and the number of starts. */
const last = new Map()
let effects = 0
const note = (session) => {
  effects += 1
  last.set(session, now())
}

const model = {
  provider: 'simulated',
  model: 'scripted',
  async request({ messages }, { signal }) {
    const session = messages.find(({ role }) => role === 'user').content
    note(session)
    await sleep(modelMs * (0.5 + Math.random()), undefined, { signal })
    return createAnswer('', [call('save', messages.length)])
  },
}
const save = defineTool({
  name: 'save',
  description: 'Saves what was found.',
  input: { type: 'object', properties: { at: { type: 'number' } } },
  execute: ({ at }, { sessionId }) => {
    note(sessionId)
    return `Saved as ${Number(at)}.`
  },
})
const store = openStore(where)
const agent = createAgent({
  model,
  store,
  tools: [save],
  prices: null,
  limits: { maxSteps: 100_000 },
})
const agents = defineAgents({ worker: agent })
const states = new Map()
const driving = new Set()

const does = {
  /** Settles when every session has sent a model request or ended. */
  async start({ sessions, tags }) {
    const all = [...sessions]
    const next = async () => {
      for (let session = all.pop(); session !== undefined; session = all.pop()) {
        const isAsked = (async () => {
          while (!last.has(session) && !states.has(session)) await sleep(20)
        })()
        const run = runSession(agents, { session, input: session, tags: tags[session] })
          .then(({ state }) => states.set(session, state))
          .catch((error) => states.set(session, String(error?.code ?? error)))
        driving.add(run)
        void run.finally(() => driving.delete(run))
        await isAsked
      }
    }
    await Promise.all(Array.from({ length: 20 }, next))
  },
  look: () => ({ effects, last: [...last], states: [...states], driving: driving.size }),
}

answerParent(does)
