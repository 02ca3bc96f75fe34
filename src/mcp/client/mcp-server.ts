import type { Tool } from '../../core/tools/tool.js'
import type { ToolSource } from '../../core/tools/tool-source.js'

/** A server whose tools agents use. Put it among an agent's `tools`; its list may change while the agent runs. */
export interface McpServer extends ToolSource {
  /** `options.name`, or the name that the server gives itself. */
  readonly name: string
  /** The tools that it offers now. */
  readonly tools: readonly Tool[]
  /**
   * Ends the connection, and the child process of a server that was started. May be called more than once.
   *
   * @example
   * const server = await mcpTools({ command: 'npx', args: ['-y', 'some-server'] })
   * await server.close()
   */
  close(): Promise<void>
}
