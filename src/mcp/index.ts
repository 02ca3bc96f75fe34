/** Tools of MCP servers. Needs the optional package `@modelcontextprotocol/sdk`. */
export { mcpTools, type McpServer } from './mcp-tools.js'
export type { McpAddress, McpApproval, McpCommand, McpCommonOptions, McpOptions } from './mcp-options.js'
