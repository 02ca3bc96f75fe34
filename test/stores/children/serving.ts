export * from './agents.js'
export * from '../../../src/mcp/server/index.js'
