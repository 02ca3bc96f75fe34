// The three ways to drive a session. Each call settles when the session ends. It resolves with the milliseconds of the drive itself
// if the host reports them.
import { fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { dbosSessions } from '../../dist/src/dbos/index.js'
import { agentsOf, fromTests } from './cast.mjs'

/** Host processes that report the end of each session. */
async function hosts(file, count, settings, execPath = process.execPath) {
  const waiting = new Map()
  const start = (slot) =>
    fork(
      new URL(file, import.meta.url),
      [JSON.stringify({ ...settings, slot, id: `bench-${count}-${slot}-${process.pid}` })],
      { execPath },
    )
  const children = Array.from({ length: count }, (_, slot) => start(slot))
  for (const child of children)
    child.on('message', ({ session, ms }) => {
      waiting.get(session)?.(ms)
      waiting.delete(session)
    })
  await Promise.all(children.map((child) => new Promise((resolve) => child.once('message', resolve))))
  return {
    children,
    ended: (session) => new Promise((resolve) => waiting.set(session, resolve)),
    stop: () =>
      Promise.all(
        children.map((child) => {
          const gone = new Promise((resolve) => child.once('exit', resolve))
          child.kill('SIGKILL')
          return gone
        }),
      ),
  }
}

/** Without an engine, a caller assigns sessions to the processes. */
export async function plain({ postgres, processes }) {
  const own = await hosts('./plain-host.mjs', processes, { postgres })
  let next = 0
  return {
    ask: (kind, session, steps) => {
      const ended = own.ended(session)
      own.children[(next += 1) % processes].send({ kind, session, input: `${steps}` })
      return ended
    },
    stop: own.stop,
  }
}

let asker
/** Enqueues drives from outside the hosts, with one client per process. */
async function dbosAsker(postgres) {
  const { DBOS } = await fromTests('@dbos-inc/dbos-sdk')
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: postgres,
    applicationVersion: 'bench',
    executorID: 'outside',
    listenQueues: ['nothing'],
    logLevel: 'error',
  })
  const sessions = dbosSessions(DBOS, agentsOf({ postgres }), { appVersion: 'bench' })
  await DBOS.launch()
  return { DBOS, sessions }
}

export async function dbos({ postgres, processes }) {
  const { DBOS, sessions } = await (asker ??= dbosAsker(postgres))
  const own = await hosts('./dbos-host.mjs', processes, { postgres })
  const floor = (session) =>
    DBOS.enqueueWorkflowWithOptions(
      { queueName: 'floor', workflowName: 'floor', workflowID: session, appVersion: 'bench' },
      { session },
    )
  return {
    ask: async (kind, session, steps) => {
      const ended = own.ended(session)
      await (kind === 'ours'
        ? sessions.enqueue({ session, input: `${steps}`, agent: 'looker' })
        : floor(session))
      return ended
    },
    stop: own.stop,
  }
}

export async function restate({ postgres, processes }) {
  const { restateEngine } = await import('../../test/hosts/restate-engine.mjs')
  const engine = await restateEngine({ processes })
  const own = await hosts('./restate-host.mjs', processes, { postgres, ...engine.settings }, engine.execPath)
  await engine.ready()
  return {
    ask: async (kind, session, steps) => {
      const object = kind === 'ours' ? 'session' : 'floor'
      const body = JSON.stringify({ agent: 'looker', input: `${steps}` })
      const response = await fetch(`${engine.ingress}/${object}/${session}/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      const rest = await response.json()
      if (rest.state !== 'COMPLETED') throw new Error(`Restate: ${JSON.stringify(rest)}`)
    },
    stop: async () => {
      await own.stop()
      await engine.close()
    },
  }
}

/** Whether the engines' packages are installed. `npm run suite -- hosts` installs them. */
export function enginesAreThere() {
  try {
    const { resolve } = createRequire(new URL('../../test/hosts/package.json', import.meta.url))
    return [resolve('@dbos-inc/dbos-sdk'), resolve('@restatedev/restate-server/package.json')].length > 0
  } catch {
    return false
  }
}
