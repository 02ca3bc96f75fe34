import { whenAborted } from '../../core/base/abort.js'
import { describeError } from '../../core/base/errors.js'
import { reserveStdout } from '../../mcp/server/sdk.js'
import { badUsageError, defineCommand, writeNotice } from '../command.js'
import { loadAgents } from '../load.js'
import { agentsModuleOption, formatCarriedOptions, storeOption } from '../options.js'
import { openStoreForRun } from '../session-store.js'

export const mcpCommand = defineCommand({
  name: 'mcp',
  about: 'Serves agents to an MCP client over stdio.',
  options: { ...agentsModuleOption, ...storeOption },
  notes: [
    'The MCP client starts this command. Each agent is a tool, and each call is a session in the store. Needs the package ' +
      '@modelcontextprotocol/server.',
    'Examples:\n' +
      '  statewright mcp --agents ./agents.mjs\n' +
      '  npx @modelcontextprotocol/inspector --cli \\\n' +
      '    statewright mcp --agents ./agents.mjs --method tools/list',
  ],
  execute: async ({ values: { agents: module, store: url } }, io) => {
    if (module === undefined)
      throw badUsageError(
        'Pass the module that exports the agents: statewright mcp --agents MODULE.',
        '--agents',
      )
    // Modules may print while they are being loaded.
    const reserved = io.stdout === process.stdout ? reserveStdout() : null
    const { store } = await openStoreForRun(url, io)
    try {
      const agents = await loadAgents(module, io.cwd, store)
      const { serveMcpStdio } = await import('../../mcp/server/index.js')
      const server = await serveMcpStdio({
        agents,
        stdin: io.stdin,
        stdout: reserved?.stdout ?? io.stdout,
        onError: (error) => writeNotice(io, describeError(error)),
        answerCommand: `statewright send${formatCarriedOptions({ store: url })}`,
      })
      const close = (): void => void server.close()
      const stops = [whenAborted(io.signal, close), io.sigterm.setListener(close)]
      await server.closed
      for (const stop of stops) stop()
    } finally {
      await store.close()
      reserved?.release()
    }
  },
})
