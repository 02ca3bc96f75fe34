/** For watching runs in Stately's inspector, in browsers and elsewhere. For Node alone: `statewright/inspect/node`. */
export { redact, redacted, type RedactOptions } from './redact.js'
