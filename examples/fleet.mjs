/**
 * Many runs at once: a batch of ten reports that share a budget and a limiter, and one message that ends every run that still waits
 * for a person.
 *
 *   node examples/fleet.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool, memoryStore, openaiChat } from 'statewright'
import { createBudget, createLimiter, runAll, sendAll } from 'statewright/fleet'
import { startRehearsal } from 'statewright/rehearsal'

/** The rehearsed model: it publishes what it is told to publish, and reports what it is told to report. */
function answer({ body: { messages } }) {
  const said = JSON.stringify(messages.at(-1)?.content)
  return said.includes('Publish')
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

/** Returns what became of the runs. */
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
  // Two requests at once, and as many a minute as the provider allows.
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
    lines.push(`batch: ${ends.COMPLETED} reports, ${ends.BUDGET_EXCEEDED} that the budget could not pay for`)
    lines.push(`budget: ${spent.tokens} of ${limits.tokens} tokens spent`)

    // Each of these waits until a person approves its call.
    const tags = { tenant: 'acme' }
    await Promise.all(
      items.slice(0, 3).map(({ id }) => reporter.run('Publish it.', { session: `press.${id}`, tags }).result),
    )
    const receipt = await sendAll(store, { tags }, { type: 'cancel', why: 'The contract has ended.' })
    lines.push(`told: ${receipt.applied} of ${receipt.sessions} runs have ended`)
    return lines
  } finally {
    await rehearsal.close()
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const line of await runFleet()) console.log(line)
}
