// The schedules of examples/hosts/schedules.mjs. Each firing starts one session, which completes.
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createReports, scheduleReports } from '../../examples/hosts/schedules.mjs'
import { createAgent, defineAgents, memoryStore, openaiChat } from '../../dist/src/index.js'
import { startRehearsal } from '../../dist/src/rehearsal/index.js'
import { freePort } from '../../scripts/own-postgres.mjs'
import { createDatabase } from './stage.mjs'

const firings = 3
const timeoutMs = 60_000

const file = fileURLToPath(import.meta.url)

/** Restate's SDK needs a newer Node than the tests. */
export async function playSchedules(name, server) {
  if (name !== 'restate') return play(name, server)
  const { newerNode } = await import('./restate-engine.mjs')
  const child = fork(file, [], { execPath: newerNode })
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', () => reject(new Error('The process with Restate has ended without a result.')))
  })
}

async function play(name, server) {
  const rehearsal = await startRehearsal({ scenario: { turns: [{ text: 'Done.' }], onExhausted: 'loop' } })
  const store = memoryStore()
  const model = openaiChat({ model: 'rehearsed', baseURL: rehearsal.url, apiKey: 'none' })
  const agents = defineAgents({ reporter: { agent: createAgent({ model, store }), version: '1' } })
  const close = await hosts[name](agents, server)
  const listDone = () => store.list({ state: 'COMPLETED' })
  const endsAt = Date.now() + timeoutMs
  while (listDone().length < firings && Date.now() < endsAt) await sleep(100)
  await close()
  await rehearsal.close()
  const ids = listDone().map(({ id }) => id)
  const wrong =
    ids.length < firings ? [`only ${ids.length} of ${firings} scheduled sessions have completed`] : []
  for (const id of ids)
    if (!/^report@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(id)) wrong.push(`${id} does not name a time`)
  return { rows: [{ host: name, 'scheduled sessions': ids.length, wrong: wrong.length }], wrong }
}

const hosts = {
  async dbos(agents, server) {
    const { DBOS } = await import('@dbos-inc/dbos-sdk')
    const { dbosSessions } = await import('../../dist/src/dbos/index.js')
    DBOS.setConfig({
      name: 'schedules',
      systemDatabaseUrl: await createDatabase(server, 'dbos_schedules'),
      applicationVersion: 'schedules',
      executorID: 'one',
      logLevel: 'error',
    })
    const sessions = dbosSessions(DBOS, agents, { appVersion: 'schedules' })
    const startReports = scheduleReports(DBOS, sessions, '* * * * * *')
    await DBOS.launch()
    await sessions.start()
    await startReports()
    return async () => {
      await sessions.drain()
      await DBOS.shutdown({ deregister: true })
    }
  },

  async restate(agents) {
    const { openServer, post } = await import('./restate-engine.mjs')
    const restate = await import('@restatedev/restate-sdk')
    const { restateSessions } = await import('../../dist/src/restate/index.js')
    const engine = await openServer()
    const { object, drain } = restateSessions(restate, agents)
    const port = await freePort()
    const services = [object, createReports(restate, 1000)]
    await restate.serve({ services, port, logger: () => undefined })
    await post(`${engine.admin}/deployments`, { uri: `http://127.0.0.1:${port}` })
    await post(`${engine.ingress}/reports/fire/send`, Date.now())
    return async () => {
      await drain()
      await engine.stop()
    }
  },
}

if (process.argv[1] === file) process.send(await play('restate'), () => process.exit())
