import type { ConfigFile } from '../core/config/config-file.js'
import type { Agent, AgentOptions } from '../core/agent/agent-options.js'
import { createAgent } from '../core/agent/agent.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { CliIO } from './command.js'
import type { CommonOptions } from './commands/common-options.js'
import { loadTools } from './load-tools.js'
import { openMcp, type OpenMcp } from './open-mcp.js'
import { openModelSetup, type ModelSetup } from './model-setup.js'

export interface AgentSpec {
  options: CommonOptions
  file: ConfigFile
  store: SessionStore
  /** Settings that go before those of the file. */
  overrides?: Partial<Pick<AgentOptions, 'limits' | 'stream'>>
}

/** Makes the agent that the options describe, and what it needs; what was opened is closed again in any case. */
export async function withAgent<Value>(
  { options, file, store, overrides = {} }: AgentSpec,
  io: CliIO,
  use: (agent: Agent, setup: ModelSetup) => Promise<Value>,
): Promise<Value> {
  const tools = options.tools === undefined ? undefined : await loadTools(options.tools, io.cwd)
  const setup = await openModelSetup(options, file, io)
  let mcp: OpenMcp | undefined
  try {
    mcp = await openMcp(options.mcp, io.cwd, (warning) => io.stderr.write(`statewright: ${warning}\n`))
    const { $schema: _schema, model: _model, ...written } = file
    // What was read from JSON has no keys that are undefined.
    const settings = written as Omit<AgentOptions, 'model'>
    const agent = createAgent({
      ...settings,
      ...(options.instructions !== undefined && { instructions: options.instructions }),
      ...(options.preset !== undefined && { preset: options.preset }),
      ...(setup.prices && { prices: setup.prices }),
      ...overrides,
      limits: { ...file.limits, ...overrides.limits },
      model: setup.model,
      tools: [...(tools ?? setup.tools), ...mcp.entries],
      store,
    })
    return await use(agent, setup)
  } finally {
    await mcp?.close()
    await setup.close()
  }
}
