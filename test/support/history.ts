/**
 * The history rules that every provider checks. The scenarios check them after each run. In a separate file,
 * because each test file reloads its imports, and the entry imports sixty more modules.
 */
export { findHistoryProblem } from '../../src/testing/agent/invariants/transcript-rules.js'
