// The client that the suite starts. It lists the tools of a server and calls each of them.
import { createAgent, openaiChat } from '../../../dist/src/index.js'
import { mcpTools } from '../../../dist/src/mcp/index.js'
import { startRehearsal } from '../../../dist/src/rehearsal/index.js'

const { MCP_CONFORMANCE_CONTEXT: context = '{}', MCP_CONFORMANCE_SCENARIO: scenario } = process.env
const { toolCalls, client_id: clientId, client_secret: clientSecret } = JSON.parse(context)

/** The authorization servers of the suite redirect the user back at once. */
const auth = {
  redirectUrl: 'http://localhost:41415/callback',
  signIn: async (url) => (await fetch(url, { redirect: 'manual' })).headers.get('location') ?? undefined,
  // The tool that the suite looks for.
  clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
  ...(clientId && { clientId }),
  ...(clientSecret && { clientSecret }),
}

/** Arguments that match the schemas of the suite's tools. */
function sample({ properties = {} }) {
  const values = { number: 5, integer: 5, string: 'text', boolean: true, object: {}, array: [] }
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type }]) => [name, values[type] ?? 'text']),
  )
}

/** In these scenarios the server sends an elicitation during a call, and only a run can ask a person. */
const asking = ['elicitation-sep1034-client-defaults', 'sep-2322-client-request-state']

/** A direct call. It sends its arguments unchanged, even if they would be rejected from a model. */
async function callByHand(calls) {
  for (const { tool, args } of calls) {
    const { signal } = new AbortController()
    const call = {
      signal,
      progress: () => undefined,
      callId: 'c',
      runId: 'r',
      sessionId: 's',
      idempotencyKey: 'k',
    }
    const result = await tool.execute(args, call).catch((error) => error)
    console.error(tool.name, result)
  }
}

/** Accepts the form's field values. */
function acceptDefaults({ schema = {} }) {
  const fields = Object.entries(schema.properties ?? {})
  const content = fields.map(([name, field]) => [
    name,
    field.default ?? sample({ properties: { name: field } }).name,
  ])
  return { action: 'accept', content: Object.fromEntries(content) }
}

/** A model makes the calls, one after the other. */
async function callInRun(calls) {
  const turns = calls.map(({ tool, args }) => ({ toolCalls: [{ name: tool.name, arguments: args }] }))
  const rehearsal = await startRehearsal({ turns: [...turns, { text: 'Done.' }] })
  const model = openaiChat({ model: 'played-1', baseURL: rehearsal.url, apiKey: 'none' })
  const agent = createAgent({ model, tools: [server] })
  const run = agent.run('Call them.', { session: 's' })
  let result = await run.result
  while (result.state === 'WAITING_FOR_INPUT') {
    for (const call of result.pending) run.addToolOutput(call, acceptDefaults(call.elicitation))
    result = await run.result
  }
  console.error(result)
  await rehearsal.close()
}

const server = await mcpTools({ url: process.argv.at(-1), name: 'suite', auth, onWarning: console.error })
try {
  const find = (name) => server.tools.find((tool) => tool.name === `suite_${name}`)
  const rich = server.tools.find(({ parameters }) => '$defs' in parameters)
  const echo = server.tools.find(({ parameters }) => 'schema' in (parameters.properties ?? {}))
  const all = server.tools.map((tool) => ({
    tool,
    args: tool === echo && rich ? { schema: rich.parameters } : sample(tool.parameters),
  }))
  const calls = toolCalls?.map(({ name, arguments: args }) => ({ tool: find(name), args })) ?? all
  const chosen = calls.filter(({ tool }) => tool !== undefined)
  await (asking.includes(scenario) ? callInRun(chosen) : callByHand(chosen))
} finally {
  await server.close()
}
