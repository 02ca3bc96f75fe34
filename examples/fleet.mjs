/**
 * Many runs at once: a batch of ten reports that share a budget and a limiter, and one message that cancels all runs that are
 * waiting for a person.
 *
 *   node examples/fleet.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool, memoryStore, openaiChat } from 'statewright'
import { createBudget, createLimiter, runAll, sendAll } from 'statewright/fleet'
import { startRehearsal } from 'statewright/rehearsal'

/** The rehearsed model. It publishes or reports, as the message requests. */
function answer({ body: { messages } }) {
  const message = JSON.stringify(messages.at(-1)?.content)
  return message.includes('Publish')
    ? { toolCalls: [{ name: 'publish', arguments: {} }] }
    : { text: 'All is well.', usage: { input: 50, output: 50 } }
}

const months = [
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
  'January',
  'March',
]

/** Returns one line for each result. */
export async function runFleet() {
  const rehearsal = await startRehearsal({ scenario: { turns: [answer], onExhausted: 'repeatLast' } })
  const store = memoryStore()
  const publish = defineTool({
    name: 'publish',
    description: 'Publishes the report.',
    input: { type: 'object', properties: {} },
    needsApproval: true,
    maxCalls: 1,
    execute: () => 'Published.',
  })
  // At most two requests at the same time, and as many per minute as the provider allows.
  const limiter = createLimiter({ id: 'rehearsal', concurrency: 2, requestsPerMinute: 600 })
  const reporter = createAgent({
    model: openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, limiter }),
    tools: [publish],
    sampling: { maxTokens: 100 },
    limits: { maxToolCalls: 3 },
    store,
  })
  const lines = []
  try {
    const budget = createBudget({ id: 'reports', tokens: 700, store })
    const items = months.map((month) => ({ id: month, input: `Report on ${month}.` }))
    const ends = { COMPLETED: 0, BUDGET_EXCEEDED: 0 }
    for await (const { result } of runAll(reporter, items, { id: 'batch', budgets: [budget] }))
      ends[result.state] += 1
    const { spent, limits } = await budget.status()
    lines.push(`batch: ${ends.COMPLETED} reports, ${ends.BUDGET_EXCEEDED} not covered by the budget`)
    lines.push(`budget: ${spent.tokens} of ${limits.tokens} tokens spent`)

    // Each of these runs waits until a person approves its call.
    const tags = { tenant: 'acme' }
    await Promise.all(
      items.slice(0, 3).map(({ id }) => reporter.run('Publish it.', { session: `press.${id}`, tags }).result),
    )
    const receipt = await sendAll(store, { tags }, { type: 'cancel', why: 'The contract has ended.' })
    lines.push(`cancelled: ${receipt.applied} of ${receipt.sessions} runs`)
    return lines
  } finally {
    await rehearsal.close()
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const line of await runFleet()) console.log(line)
}
