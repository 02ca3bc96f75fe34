// The side of DBOS outside of the host processes: what puts sessions into its queue. Its server is Postgres itself.
import { DBOS } from '@dbos-inc/dbos-sdk'
import { dbosSessions } from '../../dist/src/dbos/index.js'

export async function dbosEngine({ postgres, agents, server }) {
  DBOS.setConfig({
    name: 'hosts',
    systemDatabaseUrl: postgres,
    applicationVersion: 'hosts',
    executorID: 'outside',
    listenQueues: ['nothing'],
    logLevel: 'error',
  })
  const sessions = dbosSessions(DBOS, agents, { appVersion: 'hosts' })
  await DBOS.launch()
  return {
    file: new URL('./dbos-host.mjs', import.meta.url),
    execPath: process.execPath,
    settings: {},
    begin: (session) => sessions.enqueue({ session, input: session, agent: 'payer' }),
    answer: (session, { callId, fingerprint }, at) =>
      sessions.answer(session, [{ type: 'approve', callId, fingerprint }], { at, id: `${at}` }),
    /** The drives that are not done. */
    open: async () => {
      const status = ['PENDING', 'ENQUEUED', 'DELAYED']
      const open = await DBOS.listWorkflows({ status, loadInput: true })
      return open.map(({ workflowID }) => workflowID)
    },
    restart: async () => {
      await server.kill()
      await server.start()
    },
    close: () => DBOS.shutdown({ deregister: true }),
  }
}
