/**
 * An agent that sends the goods once the invoice is paid. It sleeps between two checks of the account, and a waker wakes it.
 * In this example, a "day" lasts a tenth of a second.
 *
 *   node examples/sleep.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineAgents, defineTool, memoryStore, openaiChat, sleepUntil } from 'statewright'
import { createWaker } from 'statewright/fleet'
import { startRehearsal } from 'statewright/rehearsal'

const dayMs = 100
const call = (name) => ({ toolCalls: [{ name, arguments: {} }] })

/** The answers of the rehearsed model. A real model needs no scenario. */
const turns = [
  call('look_at_account'),
  call('wait_a_day'),
  call('look_at_account'),
  call('wait_a_day'),
  call('look_at_account'),
  { text: 'The invoice is paid, and the goods are on their way.' },
]

/** Runs the agent to its end, and returns one line for each pause and for the result. */
export async function sleepy() {
  const rehearsal = await startRehearsal({ scenario: { turns } })
  const store = memoryStore()
  let looks = 0
  const lookAtAccount = defineTool({
    name: 'look_at_account',
    description: 'Returns whether the invoice has been paid.',
    input: { type: 'object', properties: {} },
    polling: true,
    execute: () => ((looks += 1) < 3 ? 'Not paid yet.' : 'Paid.'),
  })
  const waitADay = defineTool({
    name: 'wait_a_day',
    description: 'Waits until tomorrow. Then check the account again.',
    input: { type: 'object', properties: {} },
    polling: true,
    execute: () => sleepUntil(Date.now() + dayMs),
  })
  const clerk = createAgent({
    model: openaiChat({ model: 'rehearsal', baseURL: rehearsal.url }),
    tools: [lookAtAccount, waitADay],
    store,
  })
  const lines = []
  const waker = createWaker(defineAgents({ clerk }), { pollMs: 20 })
  try {
    const { sessionId } = await clerk.run('Send the goods once the invoice is paid.').result
    // From now on, any process with the store can continue the session.
    waker.start()
    for await (const event of clerk.watch(sessionId, { until: 'end' }))
      if (event.type === 'state_changed' && event.to === 'PAUSED') lines.push(`${event.to} ${event.reason}`)
    const { run } = await clerk.replay(sessionId)
    lines.push(`${run?.state} ${run?.output}`)
    return lines
  } finally {
    await waker.stop()
    await rehearsal.close()
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const line of await sleepy()) console.log(line)
}
