export { askForRepair, continueAnswer, reprompt, retryEmptyAnswer } from './actions/answer-recovery.js'
export { announceHalt, forgetHalt } from './actions/apply-findings.js'
export {
  applyCallScreening,
  applyInputScreening,
  applyResultScreening,
  emitOutputFindings,
  keepShieldMessage,
  releaseAnswer,
} from './actions/apply-screening.js'
export {
  acceptOutput,
  approve,
  askPeople,
  closeInterruptedCalls,
  closeStartedCalls,
  endGrant,
  expireCalls,
  markStarted,
  noteHandle,
  noteHandoff,
  noteSkillChange,
  noteTools,
  recordResult,
  reject,
  revokeApproval,
  revokeGrant,
  settleBatch,
  takeGrant,
} from './actions/call-results.js'
export { holdDeadline, releaseDeadline, startDeadline } from './actions/deadline.js'
export { applyUserGuards, judgeCalls, judgeResults } from './actions/judge-batch.js'
export { applyFit, loadTools, notePlan, noteRetrieved } from './actions/prepare-step.js'
export { recordResponse, takeResult } from './actions/record-response.js'
export {
  keepPartial,
  leaveOutRefused,
  noteFailure,
  scheduleRetry,
  setFailureReason,
  warnOfConclusion,
} from './actions/request-failure.js'
export { forgetSleep, noteSleep, noteWakeTime, postpone, sleepForBudget } from './actions/sleep.js'
export { addChildUsage, noteChildRest, resumeChildren } from './actions/spend-usage.js'
export {
  enter,
  finish,
  noteRelease,
  noteStoreFailure,
  setAnswerReason,
  setBudgetReason,
  setCancelReason,
  setCapReason,
  setNearReason,
  setPauseReason,
  setReason,
} from './actions/state-entry.js'
export {
  deliverSteering,
  notePause,
  queueSteering,
  takeInput,
  takeReply,
  withdrawPause,
} from './actions/user-input.js'
