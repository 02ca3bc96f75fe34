// A separate Restate server in a temporary folder, and its external calls.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../scripts/own-postgres.mjs'
import { openBalancer } from './balancer.mjs'

const require = createRequire(import.meta.url)
const platform = `${process.platform}-${process.arch}`
const binary = require.resolve(`@restatedev/restate-server-${platform}/bin/restate-server`)
export const newerNode = require.resolve(`node-${platform}/bin/node`)

export async function openServer() {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-restate-'))
  const [admin, ingress, fabric] = [await freePort(), await freePort(), await freePort()]
  const at = (port) => `127.0.0.1:${port}`
  const env = {
    PATH: process.env.PATH,
    RESTATE_ADMIN__BIND_ADDRESS: at(admin),
    RESTATE_INGRESS__BIND_ADDRESS: at(ingress),
    RESTATE_BIND_ADDRESS: at(fabric),
    RESTATE_ADVERTISED_ADDRESS: `http://${at(fabric)}`,
    RESTATE_NODE_NAME: 'hosts',
    RESTATE_LOG_FILTER: 'error',
    RESTATE_DISABLE_TELEMETRY: 'true',
    RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL: '3s',
    DO_NOT_TRACK: '1',
  }
  let server
  const start = async () => {
    server = spawn(binary, ['--base-dir', folder], { env, stdio: 'ignore' })
    const isUp = (port, path) =>
      fetch(`http://${at(port)}${path}`).then(
        ({ ok }) => ok,
        () => false,
      )
    while (!((await isUp(admin, '/health')) && (await isUp(ingress, '/restate/health')))) await sleep(100)
  }
  const kill = async () => {
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGKILL')
    await ended
  }
  await start()
  return {
    admin: `http://${at(admin)}`,
    ingress: `http://${at(ingress)}`,
    restart: async () => {
      await kill()
      await start()
    },
    stop: async () => {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export async function post(url, body, headers = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}

/** The server's report of its invocations. */
async function ask(admin, query) {
  const { rows } = await post(`${admin}/query`, { query }, { accept: 'application/json' })
  return rows
}

export async function restateEngine({ processes = 3 } = {}) {
  const server = await openServer()
  const ports = []
  while (ports.length < processes) ports.push(await freePort())
  const balancer = await openBalancer(ports)
  return {
    file: new URL('./restate-host.mjs', import.meta.url),
    execPath: newerNode,
    settings: { ports },
    ingress: server.ingress,
    /** Resolves once a process answers. */
    ready: () => post(`${server.admin}/deployments`, { uri: balancer.url }),
    begin: (session) =>
      post(
        `${server.ingress}/session/${session}/run/send`,
        { input: session, agent: 'payer' },
        { 'idempotency-key': session },
      ),
    answer: (session, { callId, fingerprint }) =>
      post(`${server.ingress}/session/${session}/send`, { type: 'approve', callId, fingerprint }),
    /** A call without an idempotency key. */
    call: (session) =>
      post(`${server.ingress}/session/${session}/run/send`, { input: session, agent: 'payer' }),
    /** Removes the engine's data of a session. */
    forget: async (session) => {
      const query = `SELECT id FROM sys_invocation WHERE target_service_key = '${session}' AND status != 'completed'`
      for (const { id } of await ask(server.admin, query))
        await fetch(`${server.admin}/invocations/${id}/kill`, { method: 'PATCH' })
    },
    /** The periodic job that looks for abandoned sessions (docs/hosts.md). */
    pickUp: async (store) => {
      for (const { id, holder } of await store.list({
        state: ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT'],
      }))
        if (holder === null) await post(`${server.ingress}/session/${id}/run/send`, {})
    },
    /** The errors for invalid sessions and invalid turns. */
    junk: async () => {
      const call = (session, handler, body) =>
        post(`${server.ingress}/session/${encodeURIComponent(session)}/${handler}`, body).then(
          () => 'none',
          ({ message }) => message,
        )
      return {
        'a session that is none': await call('../x', 'run', { input: 'Go.' }),
        'a turn that is none': await call('x', 'run', 'Go.'),
        'a key that is none': await call('x', 'run', { inputs: 'Go.' }),
        'an input that is none': await call('x', 'run', { input: {} }),
        'an input that is long': await call('x', 'run', { input: 'x'.repeat(5000) }),
        'an agent that is none': await call('x', 'run', { input: 'Go.', agent: 'nobody' }),
        'a session that has not begun': await call('x', 'run', {}),
        'a message that is none': await call('x', 'send', { type: 'bow' }),
        'no message': await call('x', 'send', null),
      }
    },
    /** The unfinished invocations. */
    open: async () => {
      const rows = await ask(
        server.admin,
        "SELECT id, target FROM sys_invocation WHERE status != 'completed'",
      )
      return rows.map(({ target }) => target)
    },
    /** Resolves once the engine waits for the session. */
    waits: async (session) => {
      const query = `SELECT key FROM state WHERE service_key = '${session}' AND key = 'waiting'`
      while ((await ask(server.admin, query)).length === 0) await sleep(50)
    },
    restart: server.restart,
    close: async () => {
      balancer.close()
      await server.stop()
    },
  }
}
