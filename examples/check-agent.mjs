/**
 * The checks of `statewright/testing` on an agent: first a careless one, then the same with its setting corrected.
 *
 *   node examples/check-agent.mjs
 */
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool } from 'statewright'
import { checkAgent, formatAgentReport } from 'statewright/testing'

const file = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }

/** Neither tool is executed by the checks. */
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

/** Takes a stream that closes without an end for a whole answer: so does it execute the calls in it. */
const careless = (model) => createAgent({ model, tools, completion: { onMissingEnd: 'accept' } })
const careful = (model) => createAgent({ model, tools })

/** The reports of both, as texts. */
export async function checkBoth(options = {}) {
  return [
    formatAgentReport(await checkAgent(careless, { only: ['truncation'], ...options })),
    formatAgentReport(await checkAgent(careful, options)),
  ]
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const report of await checkBoth()) console.log(report)
}
