/**
 * Checks a careless agent with `statewright/testing`, and then the same agent with its setting corrected.
 *
 *   node examples/check-agent.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool } from 'statewright'
import { checkAgent, formatAgentReport } from 'statewright/testing'

const file = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }

/** The checks do not execute these tools. */
const tools = [
  defineTool({
    name: 'read',
    description: 'Reads a file.',
    input: file,
    readOnly: true,
    execute: () => 'text',
  }),
  defineTool({
    name: 'remove',
    description: 'Removes a file.',
    input: file,
    needsApproval: true,
    execute: () => 'removed',
  }),
]

/** Accepts a stream that closes without a final event as a complete answer, and therefore executes the calls in it. */
const careless = (model) => createAgent({ model, tools, completion: { onMissingEnd: 'accept' } })
const careful = (model) => createAgent({ model, tools })

/** Returns the reports of both agents as text. */
export async function checkBoth(options = {}) {
  return [
    formatAgentReport(await checkAgent(careless, { only: ['truncation'], ...options })),
    formatAgentReport(await checkAgent(careful, options)),
  ]
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const report of await checkBoth()) console.log(report)
}
