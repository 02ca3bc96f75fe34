// The shared setup of the host tests, with a database, a ledger, a rehearsed model, and an engine with its
// processes.
import pg from 'pg'
import { startRehearsal } from '../../dist/src/rehearsal/index.js'
import { checkSessionLog } from '../../dist/src/testing/index.js'
import { agentsOf, asks, payments, turn } from './cast.mjs'
import { openLedger } from './ledger.mjs'
import { Processes } from './processes.mjs'

const engines = {
  dbos: async (input) => (await import('./dbos-engine.mjs')).dbosEngine(input),
  restate: async (input) => (await import('./restate-engine.mjs')).restateEngine(input),
}
export const hostNames = Object.keys(engines)

/** A state in which a process should have the session. */
export const isAtWork = (state) => state === 'RUNNING' || state === 'WAITING_FOR_TOOL'

/** A separate database in the server. */
export async function createDatabase(server, name) {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return server.url.replace(/[^/]*$/, name)
}

/** `part` is a label. `settings` apply to each host process. */
export async function openStage(
  name,
  server,
  { part, settings = {}, takesMs, versions = {}, script = turn, ...more },
) {
  const postgres = await createDatabase(server, `${name}_${part}`)
  const ledger = await openLedger({ takesMs })
  const rehearsal = await startRehearsal({
    scenario: { turns: [script], onExhausted: 'repeatLast' },
    strict: true,
  })
  const cast = { postgres, model: rehearsal.url, ledger: ledger.url, host: name, ...versions }
  const { store, agents, agent } = agentsOf(cast)
  const engine = await engines[name]({ postgres, agents, server, ...more })
  const options = { ...cast, ...engine.settings, drainMs: 500, ...settings }
  const hosts = new Processes(engine.file, engine.execPath, options)
  return {
    name,
    cast,
    ledger,
    store,
    agents,
    agent,
    engine,
    hosts,
    start: async (slots) => {
      await Promise.all(Array.from({ length: slots }, (_, slot) => hosts.start(slot)))
      await engine.ready?.()
    },
    /** Resolves with the reference model's problems with the logs of all processes. */
    close: async () => {
      await hosts.stop()
      await engine.close()
      const unlawful = await judgeLogs(store)
      await store.close()
      await rehearsal.close()
      ledger.close()
      return unlawful
    },
  }
}

async function judgeLogs(store) {
  const sessions = await store.list({ children: true })
  if (sessions.length === 0) return ['there is no log to be judged']
  const judged = []
  for (const { id } of sessions) {
    const records = await store.read(id)
    const violation = records.length > 0 ? checkSessionLog(records, id) : null
    if (violation)
      judged.push(`${id}: record ${violation.seq} breaks '${violation.rule}': ${violation.message}`)
  }
  return judged
}

/** The payments that the ledger counted twice, and the overlapping ones. */
export function wrongInLedger({ paid, overlaps }) {
  const twice = [...paid].filter(([, times]) => times > 1)
  return [
    ...twice.map(([key, times]) => `${key} was paid ${times} times`),
    ...overlaps.map((overlap) => `two processes in one session: ${overlap}`),
  ]
}

/** A session's outcome compared with the expected result, and its number of interrupted results. */
export async function heldAgainst(id, { agent }, end = 'COMPLETED') {
  const { run, messages } = await agent.replay(id).catch(() => ({ run: null, messages: [] }))
  if (run?.state !== end)
    return { interrupted: 0, wrong: [`${id} is ${run?.state ?? 'not there'} ${run?.error?.message ?? ''}`] }
  const wrong = []
  const results = messages.filter(({ role }) => role === 'tool')
  const interrupted = results.filter(({ data }) => data?.status === 'interrupted')
  const calls = messages.flatMap(({ tool_calls: calls = [] }) => calls)
  const isPaired =
    calls.length === results.length && calls.every(({ id: call }, i) => results[i].tool_call_id === call)
  if (end === 'COMPLETED' && results.length !== payments) wrong.push(`${id} has ${results.length} results`)
  if (!isPaired) wrong.push(`${id}: its calls and results are no pairs`)
  const isSaid = ({ content, data }) =>
    data?.status === 'interrupted' ||
    /^paid |^Not executed: the (run was cancelled|process was stopped)/.test(content)
  for (const result of results)
    if (!isSaid(result)) wrong.push(`${id} says: ${JSON.stringify(result.content).slice(0, 100)}`)
  const signatures = calls.filter((call) => call.function.name === 'sign').length
  if (signatures !== (asks(id) ? 1 : 0)) wrong.push(`${id} was asked ${signatures} times`)
  return { interrupted: interrupted.length, wrong }
}
