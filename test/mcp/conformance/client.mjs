// What the suite starts as a client: it lists the tools of a server and calls each of them.
import { mcpTools } from '../../../dist/src/mcp/index.js'

const { MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env
const { toolCalls, client_id: clientId, client_secret: clientSecret } = JSON.parse(context)

/** The authorization servers of the suite send the user back at once. */
const auth = {
  redirectUrl: 'http://localhost:41415/callback',
  signIn: async (url) => (await fetch(url, { redirect: 'manual' })).headers.get('location') ?? undefined,
  // The one that the suite looks for.
  clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
  ...(clientId && { clientId }),
  ...(clientSecret && { clientSecret }),
}

/** Arguments that fit a schema of the suite's tools. */
function sample({ properties = {} }) {
  const values = { number: 5, integer: 5, string: 'text', boolean: true, object: {}, array: [] }
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type }]) => [name, values[type] ?? 'text']),
  )
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
  for (const { tool, args } of calls) {
    if (tool === undefined) continue
    const { signal } = new AbortController()
    const call = {
      signal,
      progress: () => undefined,
      callId: 'c',
      runId: 'r',
      sessionId: 's',
      idempotencyKey: 'k',
    }
    // oxlint-disable-next-line no-await-in-loop -- as a model would: one after the other
    const result = await tool.execute(args, call).catch((error) => error)
    console.error(tool.name, result)
  }
} finally {
  await server.close()
}
