// One process that takes sessions from the DBOS queue, and workflows of the same kind with a no-op step.
import { dbosSessions } from '../../dist/src/dbos/index.js'
import { agentsOf, fromTests } from './cast.mjs'

const { DBOS } = await fromTests('@dbos-inc/dbos-sdk')
const { postgres, id } = JSON.parse(process.argv[2])
DBOS.setConfig({
  name: 'bench',
  systemDatabaseUrl: postgres,
  applicationVersion: 'bench',
  executorID: id,
  logLevel: 'error',
})
const queue = { workerConcurrency: 50, minPollingIntervalMs: 200 }
/** Called at the end of the step, at the same point for both kinds. */
const telling = new Proxy(DBOS, {
  get: (target, key) =>
    key === 'runStep'
      ? async (step, config) => {
          let ms = 0
          const clocked = async () => {
            const start = performance.now()
            const rest = await step()
            ms = performance.now() - start
            return rest
          }
          const rest = await target.runStep(clocked, config)
          process.send({ session: rest.session, ms })
          return rest
        }
      : target[key],
})
const sessions = dbosSessions(telling, agentsOf({ postgres }), { queue, appVersion: 'bench' })
const floor = async ({ session }) => {
  const rest = await DBOS.runStep(async () => ({ session, state: 'COMPLETED' }), { name: 'nothing' })
  process.send({ session })
  return rest
}
DBOS.registerWorkflow(floor, { name: 'floor' })
await DBOS.launch()
await DBOS.registerQueue('floor', queue)
await sessions.start()
process.send('ready')
