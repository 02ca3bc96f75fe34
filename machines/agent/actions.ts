/** Every action that the chart names. */
export {
  acceptOutput,
  approve,
  askForApproval,
  closeInterruptedCalls,
  closeStartedCalls,
  markStarted,
  noteTools,
  recordResult,
  reject,
  settleBatch,
} from './actions/calls.js'
export { addChildUsage, noteChildRest, resumeChildren } from './actions/children.js'
export { heedUserGuards } from './actions/consulting.js'
export { holdDeadline, releaseDeadline, startDeadline } from './actions/deadline.js'
export { because, becauseOfAnswer, becauseOfBudget, becauseOfPause, enter, finish } from './actions/ending.js'
export {
  becauseOfFailure,
  keepPartial,
  noteFailure,
  scheduleRetry,
  warnOfConclusion,
} from './actions/failure.js'
export { applyFit } from './actions/fitting.js'
export { announceHalt, forgetHalt } from './actions/halting.js'
export {
  deliverSteering,
  notePause,
  queueSteering,
  takeInput,
  takeReply,
  withdrawPause,
} from './actions/input.js'
export { judgeCalls, judgeResults } from './actions/judging.js'
export { askAgain, askForRepair, continueAnswer, reprompt } from './actions/recovery.js'
export { recordResponse } from './actions/response.js'
export { noteRetrieved } from './actions/retrieving.js'
export {
  heedCallShields,
  heedInputShields,
  heedResultShields,
  keepShieldMessage,
  releaseAnswer,
  tellOutputFindings,
} from './actions/shields.js'
export { noteLeaving, noteStoreFailure } from './actions/storing.js'
