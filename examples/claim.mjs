/**
 * Runs an insurance claim as a durable machine. The store is SQLite in the `claims` folder. If you stop the process at
 * any point and start it again, the claim continues without a second payment.
 *
 *   node examples/claim.mjs
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createAgent, openaiChat } from 'statewright'
import { durable, idempotencyKey } from 'statewright/durable'
import { startRehearsal } from 'statewright/rehearsal'
import { fileStore } from 'statewright/stores/file'
import { fromPromise } from 'xstate'
import machine, { inputs } from './claim.machine.mjs'

/** The answers of the rehearsed model. A real model needs no scenario. */
const turns = [{ text: 'SIMPLE' }, { text: 'Dear customer, your claim is paid.' }]

/** Runs one claim to its end, and returns its states. */
export async function settleClaim(dir) {
  const rehearsal = await startRehearsal({ scenario: { turns, onExhausted: 'repeatLast' } })
  const model = openaiChat({ model: 'rehearsal', baseURL: rehearsal.url })
  const store = fileStore({ dir })
  mkdirSync(dir, { recursive: true })
  const bank = join(dir, 'bank.txt')
  const claims = durable(machine, {
    store,
    once: ['pay'],
    actors: {
      triage: createAgent({ model, instructions: 'Answer SIMPLE or COMPLEX.' }),
      write: createAgent({ model, instructions: 'Write a short letter to the customer.' }),
      pay: fromPromise(async ({ input, self }) => {
        appendFileSync(bank, `${idempotencyKey(self)} ${input}\n`)
        return idempotencyKey(self)
      }),
      findPayment: fromPromise(async ({ self }) => {
        const [claim] = idempotencyKey(self).split(':')
        const payments = existsSync(bank) ? readFileSync(bank, 'utf8').split('\n') : []
        return payments.find((line) => line.startsWith(`${claim}:`))?.split(' ')[0] ?? null
      }),
    },
  })
  const lines = []
  try {
    await claims.start('claim-17', { input: inputs.large })
    const triaged = await claims.settled('claim-17')
    lines.push(`${triaged.value} ${triaged.context.kind}`)
    if (triaged.value === 'reviewing')
      await claims.send('claim-17', { type: 'APPROVE' }, { key: 'approval-1' })
    const closed = await claims.settled('claim-17')
    lines.push(`${closed.value} ${closed.output?.payment} ${closed.output?.letter}`)
    return lines
  } finally {
    store.close()
    await rehearsal.close()
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const line of await settleClaim('./claims')) console.log(line)
}
