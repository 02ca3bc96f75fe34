/** A rehearsal is a local server that plays model responses from a scenario. Node only. */
export {
  loadScenario,
  parseScenario,
  RehearsalError,
  type RehearsalOptions,
  type Scenario,
  type TurnFunction,
} from './scenario.js'
export { startRehearsal, type Rehearsal } from './rehearsal.js'
export type { ChatRequest, RecordedRequest, WireMessage } from './chat-request.js'
export { largestExpense } from './largest-expense.js'
export type { Turn } from './turn-schema.js'
