/**
 * A help desk with three agents. Triage hands the conversation to billing or shipping, and billing hands it back.
 *
 *   node examples/handoff.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool, handoff, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'

const call = (name, input = {}) => ({ toolCalls: [{ name, arguments: input }] })

/** The answers of the rehearsed model. A real model needs no scenario. */
const turns = [
  call('transfer_to_billing'),
  call('refund', { bill: 'B7' }),
  { text: 'I have refunded bill B7.' },
  call('transfer_to_triage'),
  call('transfer_to_shipping'),
  { text: 'Your parcel arrives on Monday.' },
]

const input = (properties = {}) => ({ type: 'object', properties, required: Object.keys(properties) })

/** Asks two questions in one session, and returns the questions, the handoffs and the answers. */
export async function helpDesk() {
  const rehearsal = await startRehearsal({ scenario: { turns }, strict: true })
  const model = openaiChat({ model: 'rehearsal', baseURL: rehearsal.url })
  const refund = defineTool({
    name: 'refund',
    description: 'Refunds a bill.',
    input: input({ bill: { type: 'string' } }),
    execute: () => 'The bill has been refunded.',
  })
  const shipping = createAgent({ model, instructions: 'You know where parcels are.' })
  const billing = createAgent({
    model,
    instructions: 'You answer questions about bills. For anything else, hand back to triage.',
    tools: [refund, handoff(() => triage, { name: 'triage' })],
  })
  const triage = createAgent({
    model,
    instructions: 'Find out what the customer needs, and hand over.',
    tools: [
      handoff(billing, { name: 'billing', description: 'Answers questions about bills, and refunds them.' }),
      handoff(shipping, { name: 'shipping', description: 'Knows where parcels are.' }),
    ],
    limits: { maxSteps: 10 },
  })
  const lines = []
  try {
    for (const question of ['I paid bill B7 twice.', 'And where is my parcel?']) {
      lines.push(`> ${question}`)
      const run = triage.run(question, { session: 'ann' })
      for await (const event of run)
        if (event.type === 'handed_off') lines.push(`${event.from ?? 'triage'} → ${event.to}`)
      lines.push((await run.result).output)
    }
    return lines
  } finally {
    await rehearsal.close()
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const line of await helpDesk()) console.log(line)
}
