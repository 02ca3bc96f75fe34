/** Tools of MCP servers. Needs the optional package `@modelcontextprotocol/client`. */
export { mcpTools, type McpServer } from './client/mcp-tools.js'
export type {
  McpAddress,
  McpApproval,
  McpCommand,
  McpCommonOptions,
  McpOptions,
} from './client/mcp-options.js'
