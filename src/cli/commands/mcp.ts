import { whenAborted } from '../../core/base/abort.js'
import { badUsageError } from '../cli-error.js'
import type { Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { loadAgents } from '../load-agents.js'
import { reserveStdout } from '../../mcp/server/reserve-stdout.js'
import { openStoreForRun } from '../open-session-store.js'
import { type OptionSpecs, parseOptions } from '../parse-options.js'
import { formatCarriedOptions, storeOptionSpec } from './common-options.js'

const options = {
  agents: {
    value: 'MODULE',
    about: 'a module whose default export is defineAgents({ … }), or a function of the store that returns it',
  },
  ...storeOptionSpec,
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export const mcpCommand: Command = {
  name: 'mcp',
  about: 'Serves agents to the MCP client that has started this command, over stdio.',
  positional: '',
  options,
  notes: [
    'Each agent is a tool, and each call of it is a session of the store. Needs the package @modelcontextprotocol/server.',
    'Examples:\n' +
      '  statewright mcp --agents ./agents.mjs\n' +
      '  npx @modelcontextprotocol/inspector --cli statewright mcp --agents ./agents.mjs --method tools/list',
  ],
  execute: async (args, io) => {
    const { positionals, text } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    const module = text('agents')
    if (module === undefined)
      throw badUsageError('Which agents? Write: statewright mcp --agents MODULE.', '--agents')
    // Modules may print as they are loaded.
    const reserved = io.stdout === process.stdout ? reserveStdout() : null
    const { store } = await openStoreForRun(text('store'), io)
    try {
      const agents = await loadAgents(module, io.cwd, store)
      const { serveMcpStdio } = await import('../../mcp/server/index.js')
      const onError = (error: unknown): void => {
        io.stderr.write(`statewright: ${error instanceof Error ? error.message : String(error)}\n`)
      }
      const server = await serveMcpStdio({
        agents,
        stdin: io.stdin,
        stdout: reserved?.stdout ?? io.stdout,
        onError,
        answerCommand: `statewright send${formatCarriedOptions({ store: text('store') })}`,
      })
      const close = (): void => void server.close()
      const stops = [whenAborted(io.signal, close), io.sigterm.setListener(close)]
      await server.closed
      for (const stop of stops) stop()
      return exitCodes.completed
    } finally {
      await store.close()
      reserved?.release()
    }
  },
}
