export * from './agents.js'
export * from '../../../src/mcp/index.js'
export { createOneCallModel } from '../../support/manual-model.js'
