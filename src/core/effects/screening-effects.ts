/** The effects that only agents with shields load. */
export { screenCalls, screenResults } from './screen-calls.js'
export { screenInput } from './screen-input.js'
export { screenOutput } from './screen-output.js'
