// A process that asks, answers or ends questions that expire. Each step is a user with a time, a clock and an agent. The
// task is JSON in the first argument.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createAgent, defineAgents } from 'statewright'
import { createWaker } from 'statewright/fleet'
import { fileStore } from 'statewright/stores/file'
import { doomed, striker } from './faults.mjs'
import { createPayerModel, createPayTool, goOn, isDone, report } from './payer.mjs'

const { dir, fault, expiresMs, callIds, idempotent, steps } = JSON.parse(process.argv[2])
const strike = striker(fault, dir)

function open({ now, skewMs }) {
  const clock = {
    now: () => now + skewMs,
    elapsed: () => now,
    setTimeout: (fire, ms) => setTimeout(() => fire(), ms),
    clearTimeout: (id) => clearTimeout(id),
  }
  const pay = createPayTool({ dir, strike, place: { at: now }, needsApproval: true, idempotent })
  const store = doomed(fileStore({ dir, now: () => now }), strike)
  const model = createPayerModel(callIds)
  return { store, clock, agent: createAgent({ model, store, clock, tools: [pay], approvals: { expiresMs } }) }
}

const actions = {
  ask: ({ agent }) => goOn(agent),
  async approve({ agent }) {
    const { run, result } = await goOn(agent)
    const question = result.pending?.find(({ callId }) => callId === callIds[0])
    if (!question) return
    run.approve(question)
    await run.result
  },
  /** No process reads the answer in time. */
  async send({ agent }) {
    await agent.send('s', { type: 'approve', callId: callIds[1] }).catch((error) => {
      if (!isDone(error)) throw error
    })
  },
  async end({ agent, store, clock }) {
    const refusal = await agent.send('s', { type: 'approve', callId: callIds[2] }).catch((error) => error)
    if (!(refusal.code === 'approval_expired' || isDone(refusal)))
      throw new Error(`The late answer is ${refusal.status ?? refusal.stack}.`)
    const waker = createWaker(defineAgents({ clerk: agent }), { clock, pollMs: 20 })
    waker.start()
    while (!isOver(store)) await wait(5)
    await waker.stop()
  },
}

const isOver = (store) =>
  store.get('s').summary.state === 'COMPLETED' && store.timers.list({ prefix: '', limit: 1 }).length === 0

async function main() {
  for (const step of steps) {
    writeFileSync(join(dir, 'step'), step.action)
    const user = open(step)
    await actions[step.action](user)
    user.store.close()
  }
}

report(main())
