/** What only agents with shields need. */
export { screenCalls, screenResults } from './screen-calls.js'
export { screenInput } from './screen-input.js'
export { screenOutput } from './screen-output.js'
