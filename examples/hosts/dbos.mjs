// DATABASE_URL=postgres://… npm run dbos: a process that runs sessions from a queue, and a session that a person answers.
import { setTimeout as sleep } from 'node:timers/promises'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { dbosSessions } from 'statewright/dbos'
import { postgresStore } from 'statewright/stores/postgres'
import { makeAgents } from './agents.mjs'

const connectionString = process.env.DATABASE_URL
if (!connectionString)
  throw new Error('Set a Postgres URL: DATABASE_URL=postgres://USER:PASSWORD@HOST/DATABASE npm run dbos')

const { payer, agents } = await makeAgents(postgresStore({ connectionString }))
DBOS.setConfig({
  name: 'example',
  systemDatabaseUrl: connectionString,
  applicationVersion: 'sessions', // the same as appVersion below, in all deployments
  executorID: `example-${process.pid}`, // different in each process
  logLevel: 'error',
})
const sessions = dbosSessions(DBOS, agents, { appVersion: 'sessions', answerTimeoutMs: 86_400_000 })
await DBOS.launch()
await sessions.start()
process.once(
  'SIGTERM',
  () =>
    void sessions
      .drain()
      .then(() => DBOS.shutdown())
      .then(() => process.exit(0)),
)

const session = `invoice-${Date.now()}`
await sessions.enqueue({ session, input: 'Pay invoice 17.' })

async function rest(isReached) {
  for (;;) {
    const { run, seq } = await payer.replay(session).catch(() => ({ run: null }))
    if (run && isReached(run)) return { run, seq }
    await sleep(200)
  }
}

const { run, seq } = await rest(({ state }) => state === 'WAITING_FOR_INPUT')
const [{ callId, fingerprint, name, arguments: text }] = run.pending
console.log(`It asks: ${name}(${text})? Yes.`)
await sessions.answer(session, [{ type: 'approve', callId, fingerprint }], { at: seq })
const { run: ended } = await rest(({ state }) => state === 'COMPLETED')
console.log(ended.state, ended.output)
await DBOS.shutdown()
process.exit(0)
