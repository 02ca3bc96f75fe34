// The points where a host process kills itself. A session's id names the point, and the first process to
// reach it dies.
import { writeFileSync } from 'node:fs'

/** The point in a session's id: `dbos-aim-effect-5` is killed at the start of its first payment. */
export const pointOf = (session) => /-aim-(\w+)-\d+$/.exec(session)?.[1]

/** Whether this is the first attempt for the session, across all processes. */
function isFirst(folder, name) {
  try {
    writeFileSync(`${folder}/${name}`, `${Date.now()}`, { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

export function strikesOf({ marks, host }) {
  // Releases after SIGTERM are caused by it.
  let isEnding = false
  process.once('SIGTERM', () => (isEnding = true))
  const at = (session, ...points) => {
    const point = pointOf(session)
    if (point === undefined || !points.includes(point) || !isFirst(marks, session)) return
    process.kill(process.pid, 'SIGKILL')
  }
  return {
    at,
    /** The points of a store: around taking a session, writing to it, and releasing it. */
    store: (store) => aimedStore(store, { at, host, isEnding: () => isEnding }),
    /** A request in progress, or, for a graceful shutdown, SIGTERM at that moment. */
    model: (model) => ({
      ...model,
      request: (request, options) => {
        const session = request.messages.findLast(({ role }) => role === 'user')?.content
        const answer = model.request(request, options)
        if (pointOf(session) === 'asked') setTimeout(() => at(session, 'asked'), 50)
        if (['leaving', 'left'].includes(pointOf(session)) && isFirst(marks, `${session}.term`))
          setTimeout(() => process.kill(process.pid, 'SIGTERM'), 50)
        return answer
      },
    }),
  }
}

const typeOf = ({ type, data }) => (type === 'event' ? JSON.parse(data).event.type : type)

/** Before and after records of this type are written. */
const around = {
  start: ['starting', 'started'],
  'xstate.done.actor.model': ['answering', 'answered'],
  TOOL_RESULT: ['paid', 'kept'],
  APPROVE: ['approving', 'approved'],
}

function aimedStore(store, { at, host, isEnding }) {
  const states = new Map()
  const isWoken = async (id) => {
    if (pointOf(id) !== 'woken' && pointOf(id) !== 'waking') return false
    const state = (await store.get(id))?.summary?.state
    // With Restate, a session is checked again before the wait. Its answers come through the inbox.
    return state === 'WAITING_FOR_INPUT' && (host === 'dbos' || (await store.inbox.read(id)).length > 0)
  }
  const releasing = { WAITING_FOR_INPUT: ['resting', 'rested'], COMPLETED: ['ending', 'ended'] }
  return {
    ...store,
    acquire: async (id, options) => {
      at(id, 'called')
      const woken = await isWoken(id)
      if (woken) at(id, 'woken')
      const lease = await store.acquire(id, options)
      process.send?.({ acquired: id, at: Date.now() })
      at(id, 'taken')
      if (woken) at(id, 'waking')
      return lease
    },
    append: async (lease, records, summary) => {
      const [before, after] = [0, 1].map((i) => records.map((record) => around[typeOf(record)]?.[i]))
      at(lease.sessionId, ...before)
      const receipt = await store.append(lease, records, summary)
      if (summary) states.set(lease.sessionId, summary.state)
      at(lease.sessionId, ...after)
      return receipt
    },
    release: async (lease) => {
      const [before, after] = releasing[states.get(lease.sessionId)] ?? []
      at(lease.sessionId, before, isEnding() && 'leaving')
      const receipt = await store.release(lease)
      at(lease.sessionId, after, isEnding() && 'left')
      return receipt
    },
    inbox: {
      ...store.inbox,
      put: async (id, text) => {
        const put = await store.inbox.put(id, text)
        at(id, 'told')
        return put
      },
    },
  }
}
