/**
 * Two custom guards in addition to the built-in ones. One decides on its own, and the other calls a policy service.
 *
 *   node examples/guards.mjs
 */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { createAgent, defineGuard, defineTool, openaiChat } from 'statewright'
import { startRehearsal } from 'statewright/rehearsal'
import { z } from 'zod'

/** Synchronous. Blocks calls that write outside one folder; the other calls of the batch run. */
function writesInside(folder) {
  const root = path.resolve(folder)
  const isInside = (file) => path.resolve(root, String(file)).startsWith(root + path.sep)
  return defineGuard({
    name: 'writes-inside',
    verdict: (_, { fact }) => {
      const calls = fact.type === 'calls' ? fact.calls : []
      const outside = calls.filter((call) => call.name === 'write_file' && !isInside(call.arguments?.path))
      // An empty list blocks nothing.
      const callIds = outside.map(({ id }) => id)
      return { action: 'block', callIds, message: `Write files only inside ${folder}.` }
    },
  })
}

/**
 * Asynchronous. Sends the total of the turn, which is the guard's state, to a policy service before each payment. The run
 * pauses if the service refuses, or does not answer within two seconds.
 */
function paymentPolicy(mayPay) {
  const amounts = (calls) =>
    calls.filter(({ name }) => name === 'pay').map((call) => call.arguments?.amount ?? 0)
  const sum = (numbers) => numbers.reduce((total, n) => total + n, 0)
  return defineGuard({
    name: 'payment-policy',
    timeoutMs: 2_000,
    onHalt: 'pause',
    initial: { paid: 0 },
    observe: ({ paid }, fact) => {
      const results = fact.type === 'results' ? fact.results : []
      return { paid: paid + sum(amounts(results.filter(({ status }) => status === 'ok'))) }
    },
    verdict: async ({ paid }, { fact, signal, context }) => {
      const calls = fact.type === 'calls' ? amounts(fact.calls) : []
      if (calls.length === 0) return { action: 'ok' }
      const total = paid + sum(calls)
      const { allowed, limit } = await mayPay({ user: context.user, total }, signal)
      if (allowed) return { action: 'ok' }
      return {
        action: 'halt',
        message: `${context.user} may spend ${limit} in one turn. Approve more, then resume.`,
        evidence: `${total} requested, ${paid} already paid`,
      }
    },
  })
}

/** Replaces a request to your own service: `fetch(url, { signal, … })`. */
async function policyService({ total }, signal) {
  await new Promise((resolve) => setTimeout(resolve, 20))
  signal.throwIfAborted()
  return { allowed: total <= 100, limit: 100 }
}

const tools = [
  defineTool({
    name: 'write_file',
    description: 'Writes a text file.',
    input: z.object({ path: z.string(), text: z.string() }),
    execute: ({ path: file }) => `Would have written ${file}.`,
  }),
  defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: z.object({ to: z.string(), amount: z.number() }),
    execute: ({ to, amount }) => `Would have paid ${amount} to ${to}.`,
  }),
]

/** The rehearsed model's calls for each turn. */
const turns = [
  {
    toolCalls: [
      { name: 'write_file', arguments: { path: 'report.txt', text: 'All is well.' } },
      { name: 'write_file', arguments: { path: '../.bashrc', text: 'alias ls=rm' } },
    ],
  },
  { toolCalls: [{ name: 'pay', arguments: { to: 'printer', amount: 60 } }] },
  { toolCalls: [{ name: 'pay', arguments: { to: 'courier', amount: 70 } }] },
]

/** Runs the agent, and returns the actions of the guards and the result of the run. */
export async function guarded() {
  const rehearsal = await startRehearsal({ turns })
  const agent = createAgent({
    model: openaiChat({ model: 'rehearsal', baseURL: rehearsal.url }),
    tools,
    guards: [writesInside('out'), paymentPolicy(policyService)],
  })
  const log = []
  const run = agent.run('Write the report, and pay our bills.', { context: { user: 'Ada' } })
  for await (const event of run) {
    if (event.type === 'tool_result') log.push(`${event.name}: ${event.status}: ${event.content}`)
    if (event.type === 'guardrail') log.push(`${event.action}: ${event.evidence}`)
  }
  const { state, reason, error } = await run.result
  run.cancel()
  await rehearsal.close()
  return { log, state, reason, message: error?.message }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { log, state, reason, message } = await guarded()
  console.log([...log, '', `${state} (${reason}): ${message}`].join('\n'))
}
