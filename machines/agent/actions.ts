/** Every action that the chart names. */
export {
  acceptOutput,
  approve,
  askForApproval,
  closeStartedCalls,
  markStarted,
  recordResult,
  reject,
  settleBatch,
} from './actions/calls.js'
export { heedUserGuards } from './actions/consulting.js'
export { holdDeadline, releaseDeadline, startDeadline } from './actions/deadline.js'
export { because, becauseOfBudget, enter, finish } from './actions/ending.js'
export { keepPartial, noteFailure, scheduleRetry, warnOfConclusion } from './actions/failure.js'
export { announceHalt, forgetHalt } from './actions/halting.js'
export { deliverSteering, notePause, queueSteering, takeInput, takeReply } from './actions/input.js'
export { judgeCalls, judgeResults } from './actions/judging.js'
export { askAgain, continueAnswer, reprompt } from './actions/recovery.js'
export { recordResponse } from './actions/response.js'
export { keepShieldMessage } from './actions/shields.js'
