/** The rehearsal: a local server that plays the model's answers from a scenario. Node only. */
export { RehearsalError } from './errors.js'
export type { RehearsalOptions } from './rehearsal-options.js'
export { type Rehearsal, startRehearsal } from './rehearsal.js'
export type { ChatRequest, RecordedRequest, WireMessage } from './chat-request.js'
export { loadScenario, parseScenario, type Scenario, type TurnFunction } from './scenario.js'
export { largestExpense } from './scenarios/largest-expense.js'
export type { Turn } from './turn-schema.js'
