export * from './actions/answer-recovery.js'
export {
  applyCallScreening,
  applyInputScreening,
  applyResultScreening,
  emitOutputFindings,
  keepShieldMessage,
  releaseAnswer,
} from './actions/apply-screening.js'
export * from './actions/call-results.js'
export * from './actions/deadline.js'
export { announceHalt, applyUserGuards, forgetHalt, judgeCalls, judgeResults } from './actions/judge-batch.js'
export * from './actions/prepare-request.js'
export * from './actions/record-response.js'
export * from './actions/request-failure.js'
export { forgetSleep, noteSleep, noteWakeTime, postpone, sleepForBudget } from './actions/sleep.js'
export { addChildUsage, noteChildRest, resumeChildren } from './actions/spend-usage.js'
export * from './actions/state-entry.js'
