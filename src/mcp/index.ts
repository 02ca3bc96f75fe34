/** Tools from MCP servers. Needs the optional package `@modelcontextprotocol/client`. */
export type { McpServer } from './client/mcp-options.js'
export { mcpTools } from './client/mcp-tools.js'
export type {
  McpAddress,
  McpApproval,
  McpCommand,
  McpCommonOptions,
  McpOptions,
} from './client/mcp-options.js'
export type { McpAuth } from './client/sign-in/auth-options.js'
export { mcpPrompt } from './client/resources.js'
export { mcpResources } from './client/resources.js'
export { finishMcpSignIn } from './client/sign-in/finish-sign-in.js'
export { loopbackSignIn, type LoopbackOptions } from './client/sign-in/auth-options.js'
export { fileTokenStore, type McpTokenStore } from './client/sign-in/token-store.js'
