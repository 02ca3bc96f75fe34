import type { ConfigFile } from '../core/config/config-file.js'
import type { Agent, AgentOptions } from '../core/agent/agent-options.js'
import { createAgent } from '../core/agent/agent.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import type { CliIO } from './command.js'
import type { CommonOptions } from './commands/common-options.js'
import { loadTools } from './load-tools.js'
import { createMcpAuth } from './mcp-sign-in.js'
import { openMcp, type OpenMcp } from './open-mcp.js'
import { openModelSetup, type ModelSetup } from './model-setup.js'

export interface AgentSpec {
  options: CommonOptions
  file: ConfigFile
  store: SessionStore
  /** Settings that override those of the file. */
  overrides?: Partial<Pick<AgentOptions, 'limits' | 'stream'>>
}

/** Creates the agent of the options with what it needs, and closes everything afterwards. */
export async function withAgent<Value>(
  { options, file, store, overrides = {} }: AgentSpec,
  io: CliIO,
  use: (agent: Agent, setup: ModelSetup) => Promise<Value>,
): Promise<Value> {
  const tools = options.tools === undefined ? undefined : await loadTools(options.tools, io.cwd)
  const setup = await openModelSetup(options, file, io)
  let mcp: OpenMcp | undefined
  try {
    const warn = (warning: string): unknown => io.stderr.write(`statewright: ${warning}\n`)
    mcp = await openMcp(options.mcp, io.cwd, warn, () => createMcpAuth(io))
    const { $schema: _schema, model: _model, ...written } = file
    // Values from JSON are never undefined.
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
