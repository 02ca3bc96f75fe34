/** What a run whose session is in a store needs. Loaded when there is one. */
export { fork } from '../fork.js'
export { openSession } from '../open-session.js'
export { readSession } from './read-session.js'
export { replay } from '../replay.js'
export { machineStateOf, toldBefore } from '../standing.js'
