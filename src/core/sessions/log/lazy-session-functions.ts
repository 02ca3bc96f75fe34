/** What a run whose session is in a store needs. Loaded when there is one. */
export { forkSession } from '../fork-session.js'
export { openSession } from '../open-session.js'
export { readSession } from './read-session.js'
export { readSessionAt } from '../replay-session.js'
export { listBranches, replayBranch, selectBranch } from '../select-branch.js'
export { toMachineState, getLastEventNumber } from '../fold-session.js'
