/** Skills where there are no files: in browsers, workers and edge runtimes. */
export { instructionsFrom, skills } from './without-files.js'
