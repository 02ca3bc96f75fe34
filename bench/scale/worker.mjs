// One process of the simulation. It parks sessions, drives active sessions, and continues answered sessions.
import pg from 'pg'
import { runSession } from '../../dist/src/index.js'
import { postgresStore } from '../../dist/src/stores/postgres/index.js'
import { answerParent } from '../asked-worker.mjs'
import { agentsOf } from './cast.mjs'

const kinds = [
  ['acquire', /^\s*INSERT INTO/],
  ['append', /^\s*WITH asked/],
  ['heartbeat', /^\s*WITH kept/],
  ['release', /^\s*WITH forgotten/],
  ['read', /^\s*SELECT seq/],
  ['look into the inboxes', /inbox > 0$/],
]
const queries = new Map()
const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 })
// An idle connection fails when the server stops.
pool.on('error', () => undefined)
const query = pool.query.bind(pool)
pool.query = async (...args) => {
  const kind = kinds.find(([, pattern]) => pattern.test(args[0]))?.[0] ?? 'other'
  const start = performance.now()
  try {
    return await query(...args)
  } finally {
    const { count = 0, ms = 0 } = queries.get(kind) ?? {}
    queries.set(kind, { count: count + 1, ms: ms + performance.now() - start })
  }
}

const pace = { waitMs: [0, 0], isOver: false }
let steps = 0
const atWork = new Set()
const waiting = new Map()
const { agents } = agentsOf(postgresStore({ pool }), pace, (report) => {
  steps += 1
  waiting.get(report)?.()
  waiting.delete(report)
})
/** Resolves at the next model request of this session. */
const askedFor = (session) => new Promise((resolve) => waiting.set(session, resolve))
const now = () => performance.timeOrigin + performance.now()

const does = {
  park: async ({ ids }) => {
    const left = [...ids]
    const one = async () => {
      for (let id = left.pop(); id; id = left.pop()) await runSession(agents, { session: id, input: id })
    }
    await Promise.all(Array.from({ length: 100 }, one))
  },
  /** Settles when each session has sent a model request. */
  work: async ({ ids }) => {
    const begun = Promise.all(ids.map(askedFor))
    for (const id of ids) {
      const driving = runSession(agents, { session: id, input: id })
      atWork.add(driving)
      void driving.finally(() => atWork.delete(driving))
    }
    await begun
  },
  /** The time of the next model request of an answered session, in milliseconds since the epoch. */
  goOn: async ({ id }) => {
    const on = askedFor(id).then(now)
    await runSession(agents, { session: id })
    return on
  },
  pace: (settings) => Object.assign(pace, settings),
  end: () => Promise.all(atWork),
  stats: () => {
    globalThis.gc()
    const { heapUsed, rss } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    return { steps, heapUsed, rss, cpuMs: (user + system) / 1000, asked: [...queries] }
  },
}

answerParent(does)
