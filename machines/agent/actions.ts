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
export { loadTools } from './actions/prepare-step.js'
export { addChildUsage, noteChildRest, resumeChildren } from './actions/spend-usage.js'
export { applyUserGuards } from './actions/judge-batch.js'
export { holdDeadline, releaseDeadline, startDeadline } from './actions/deadline.js'
export {
  setReason,
  setAnswerReason,
  setBudgetReason,
  setCancelReason,
  setCapReason,
  setNearReason,
  setPauseReason,
  enter,
  finish,
} from './actions/state-entry.js'
export {
  setFailureReason,
  keepPartial,
  leaveOutRefused,
  noteFailure,
  scheduleRetry,
  warnOfConclusion,
} from './actions/request-failure.js'
export { applyFit } from './actions/prepare-step.js'
export { announceHalt, forgetHalt } from './actions/apply-findings.js'
export {
  deliverSteering,
  notePause,
  queueSteering,
  takeInput,
  takeReply,
  withdrawPause,
} from './actions/user-input.js'
export { forgetSleep, noteSleep, noteWakeTime, postpone, sleepForBudget } from './actions/sleep.js'
export { judgeCalls, judgeResults } from './actions/judge-batch.js'
export { retryEmptyAnswer, askForRepair, continueAnswer, reprompt } from './actions/answer-recovery.js'
export { takeResult } from './actions/record-response.js'
export { recordResponse } from './actions/record-response.js'
export { notePlan } from './actions/prepare-step.js'
export { noteRetrieved } from './actions/prepare-step.js'
export {
  applyCallScreening,
  applyInputScreening,
  applyResultScreening,
  keepShieldMessage,
  releaseAnswer,
  emitOutputFindings,
} from './actions/apply-screening.js'
export { noteRelease, noteStoreFailure } from './actions/state-entry.js'
