// One process that drives sessions with DBOS until it is killed or shut down.
import { beOn } from './machine.mjs'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { dbosSessions } from '../../dist/src/dbos/index.js'
import { agentsOf } from './cast.mjs'
import { strikesOf } from './points.mjs'

const settings = JSON.parse(process.argv[2])
beOn(settings.machine)
const { postgres, id, drainMs, marks, answerTimeoutMs, concurrency = 25 } = settings
const { agents } = agentsOf({ ...settings, strikes: marks && strikesOf(settings) })
DBOS.setConfig({
  name: 'hosts',
  systemDatabaseUrl: postgres,
  applicationVersion: 'hosts',
  executorID: id,
  logLevel: 'error',
})
const sessions = dbosSessions(DBOS, agents, {
  queue: { workerConcurrency: concurrency, minPollingIntervalMs: 200 },
  drainMs,
  answerTimeoutMs,
  sweepMs: 2000,
  appVersion: 'hosts',
})
await DBOS.launch()
await sessions.start()
process.once('SIGTERM', () => {
  process.once('SIGTERM', () => process.exit(143))
  void sessions
    .drain()
    .then(() => DBOS.shutdown())
    .then(() => process.exit(0))
})
process.send?.('ready')
