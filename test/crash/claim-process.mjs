// One process of a claim: it starts the claim, approves it, and waits for its end. The task is JSON in the
// first argument, and the result goes back as a message.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createAgent } from 'statewright'
import { durable, idempotencyKey } from 'statewright/durable'
import { fromPromise } from 'xstate'
import machine, { inputs } from '../../examples/claim.machine.mjs'
import { openClaimStore } from './claim-store.mjs'
import { doomed, striker } from './faults.mjs'

const { id, place, bank, fault } = JSON.parse(process.argv[2])
const strike = striker(fault, '')

const usage = {
  inputTokens: 50,
  outputTokens: 50,
  totalTokens: 100,
  cachedInputTokens: 0,
  reasoningTokens: 0,
}

/** An agent whose model always gives the same answer. */
const createWriter = (text) =>
  createAgent({
    model: {
      provider: 'played',
      model: 'played-1',
      request: async () => ({
        text,
        reasoning: '',
        refusal: null,
        toolCalls: [],
        finishReason: 'stop',
        complete: true,
        usage,
        model: 'played-1',
      }),
    },
  })

const pay = fromPromise(async ({ self }) => {
  strike('effect', 'before', { callId: 'pay' })
  appendFileSync(bank, `${idempotencyKey(self)}\n`)
  strike('effect', 'after', { callId: 'pay' })
  return idempotencyKey(self)
})

const findPayment = fromPromise(async () => {
  const payments = existsSync(bank) ? readFileSync(bank, 'utf8').split('\n') : []
  return payments.find((line) => line.startsWith(`${id}:`)) ?? null
})

async function settleClaim() {
  const store = doomed(openClaimStore(place), strike)
  const claims = durable(machine, {
    store,
    once: ['pay'],
    actors: {
      triage: createWriter('SIMPLE'),
      write: createWriter('Dear customer, your claim is paid.'),
      pay,
      findPayment,
    },
  })
  await claims.start(id, { input: inputs.large })
  let settled = await claims.settled(id)
  while (settled.status === 'active') {
    // Every process sends it, but the claim takes it once.
    await claims.send(id, { type: 'APPROVE' }, { key: 'approval' })
    settled = await claims.settled(id)
  }
  await store.close()
  return { value: settled.value, output: settled.output }
}

const report = (message) => process.send(message, () => process.disconnect())
settleClaim().then(report, ({ stack }) => report({ error: stack }))
