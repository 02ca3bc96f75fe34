// npm run restate: a Restate server, a process that serves sessions to it, and a session that a person answers.
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as restate from '@restatedev/restate-sdk'
import { fileStore } from 'statewright/stores/file'
import { restateSessions } from 'statewright/restate'
import { makeAgents } from './agents.mjs'

if (Number.parseInt(process.versions.node) < 22) {
  console.error(`Restate's SDK needs Node 22 or later; this is ${process.version}.`)
  process.exit(1)
}

const folder = mkdtempSync(join(tmpdir(), 'statewright-restate-'))
const binary = `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`
const server = spawn(createRequire(import.meta.url).resolve(binary), ['--base-dir', join(folder, 'server')], {
  stdio: 'ignore',
})
process.once('exit', () => server.kill())

const { payer, agents } = await makeAgents(fileStore({ dir: join(folder, 'sessions') }))
const { object, drain } = restateSessions(restate, agents)
await restate.serve({ services: [object], port: 9080 })
process.once('SIGTERM', () => void drain().then(() => process.exit(0)))

async function post(url, body) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  for (;;) {
    const answer = await fetch(url, init).catch(() => null)
    if (answer?.ok) return answer.json()
    // The server is still starting.
    await sleep(200)
  }
}

await post('http://127.0.0.1:9070/deployments', { uri: 'http://127.0.0.1:9080' })
const session = 'http://127.0.0.1:8080/session/invoice-17'
const end = post(`${session}/run`, { input: 'Pay invoice 17.' })

let pending = []
while (pending.length === 0) {
  await sleep(200)
  const { run } = await payer.replay('invoice-17').catch(() => ({ run: null }))
  pending = run?.pending ?? []
}
const [{ callId, fingerprint, name, arguments: text }] = pending
console.log(`It asks: ${name}(${text})? Yes.`)
await post(`${session}/send`, { type: 'approve', callId, fingerprint })
console.log(await end)
process.exit(0)
