export * from './agents.js'
export { createBudget } from '../../../src/fleet/index.js'
