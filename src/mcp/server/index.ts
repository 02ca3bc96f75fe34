/** Agents as an MCP server. Needs the optional package `@modelcontextprotocol/server`. */
export {
  mcpServer,
  serveMcpStdio,
  type McpHandler,
  type McpStdioOptions,
  type McpStdioServer,
} from './mcp-server.js'
export type { McpServerOptions } from './options.js'
export type { McpAgentTool } from './agent-tools.js'
