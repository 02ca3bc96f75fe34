/**
 * What every provider checks in a history; the scenarios check it after each run. By its own file: each test file
 * loads what it imports anew, and the entry brings sixty more.
 */
export { findHistoryProblem } from '../../src/testing/agent/invariants/transcript-rules.js'
