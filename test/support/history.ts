/** What every provider checks in a history; the scenarios check it after each run. */
export { historyProblem } from '../../src/testing/index.js'
