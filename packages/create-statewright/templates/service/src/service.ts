/** The service in one process. Start any number of processes. They share the work through Postgres. */
import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DBOS } from '@dbos-inc/dbos-sdk'
import { serve } from '@hono/node-server'
import { dbosSessions } from 'statewright/dbos'
import { postgresStore } from 'statewright/stores/postgres'
import { createAgents, openModel } from './agents.js'
import { createApp } from './app.js'

export interface Service {
  url: string
  /** Stops accepting work, brings active work to a safe point, and ends. Another process continues the work. */
  stop(): Promise<void>
}

export async function startService(options: {
  databaseUrl: string
  token: string
  port: number
  host?: string
}): Promise<Service> {
  const { databaseUrl, token, port, host = '127.0.0.1' } = options
  const store = postgresStore({ connectionString: databaseUrl })
  const { payer, agents } = createAgents(store, await openModel())
  DBOS.setConfig({
    name: 'service',
    systemDatabaseUrl: databaseUrl,
    applicationVersion: 'sessions', // identical across deploys; the agents list the versions that they accept
    executorID: randomUUID(), // different in each process
    logLevel: 'error',
  })
  const sessions = dbosSessions(DBOS, agents, { appVersion: 'sessions', answerTimeoutMs: 86_400_000 })
  await DBOS.launch()
  await sessions.start()
  const app = createApp({ agent: payer, sessions, token })
  const server = await new Promise<Server>((resolve) => {
    const opened = serve({ fetch: app.fetch, port, hostname: host }, () => resolve(opened as Server))
  })
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.close()
      await sessions.drain()
      await DBOS.shutdown()
      await store.close()
    },
  }
}
