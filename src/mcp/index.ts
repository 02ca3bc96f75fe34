/** Tools from MCP servers. Needs the optional package `@modelcontextprotocol/client`. */
export { mcpTools } from './client/mcp-tools.js'
export type {
  McpAddress,
  McpApproval,
  McpCommand,
  McpCommonOptions,
  McpOptions,
  McpServer,
} from './client/mcp-options.js'
export { loopbackSignIn, type LoopbackOptions, type McpAuth } from './client/sign-in/auth-options.js'
export { mcpPrompt, mcpResources } from './client/resources.js'
export { finishMcpSignIn } from './client/sign-in/finish-sign-in.js'
export { fileTokenStore, type McpTokenStore } from './client/sign-in/token-store.js'
