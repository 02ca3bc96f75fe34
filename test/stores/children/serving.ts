export * from './agents.js'
export * from '../../../src/mcp/server/index.js'
export { fileTokenStore } from '../../../src/mcp/index.js'
