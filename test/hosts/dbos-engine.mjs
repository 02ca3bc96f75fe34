// The DBOS side outside the host processes. It puts sessions into the queue. Its server is Postgres itself.
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
  let calls = 0
  const queue = (input, id = input.base) =>
    DBOS.enqueueWorkflowWithOptions(
      {
        queueName: 'statewright.sessions',
        workflowName: 'statewright.drive',
        workflowID: id,
        appVersion: 'hosts',
      },
      input && { attempt: 0, ...input },
    )
  return {
    file: new URL('./dbos-host.mjs', import.meta.url),
    execPath: process.execPath,
    settings: {},
    begin: (session) => sessions.enqueue({ session, input: session, agent: 'payer' }),
    answer: (session, { callId, fingerprint }, at) =>
      sessions.answer(session, [{ type: 'approve', callId, fingerprint }], { at, id: `${at}` }),
    /** DBOS runs two identical calls once, so this call uses a different id. */
    call: (session) =>
      queue({ session, input: session, agent: 'payer', base: `call:${session}:${(calls += 1)}` }),
    /** Removes the engine's data of a session. */
    forget: async (session) => {
      const known = await DBOS.listWorkflows({ loadInput: true })
      const ids = known
        .filter(({ input }) => input?.[0]?.session === session)
        .map(({ workflowID }) => workflowID)
      await DBOS.cancelWorkflows(ids)
      await DBOS.deleteWorkflows(ids)
    },
    /** The errors for invalid sessions and invalid drives. */
    junk: async () => {
      const refusal = (promise) =>
        promise.then(
          () => 'none',
          ({ code, message }) => `${code}: ${message}`,
        )
      const inQueue = async (input) => refusal((await queue(input, `junk:${(calls += 1)}`)).getResult())
      return {
        'a session that is none': await refusal(sessions.enqueue({ session: '../x', input: 'Go.' })),
        'an input that is none': await refusal(sessions.enqueue({ session: 'x', input: {} })),
        'an input that is long': await refusal(sessions.enqueue({ session: 'x', input: 'x'.repeat(5000) })),
        'nothing in the queue': await inQueue(undefined),
        'a session in the queue that is none': await inQueue({ session: '../x', base: 'x', attempt: 0 }),
        'an agent that is none': await refusal(
          sessions.enqueue({ session: 'x', input: 'Go.', agent: 'nobody' }),
        ),
        'a session that has not begun': await inQueue({ session: 'x', base: 'x', attempt: 0 }),
      }
    },
    /** The unfinished drives. */
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
