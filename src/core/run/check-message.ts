import type { SnapshotFrom } from 'xstate'
import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import type { PendingCall } from '../../../machines/agent/run-result.js'
import { UsageError } from '../base/errors.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { getAwaitedCall } from './awaited-call.js'

const answerNeeds = { APPROVE: 'approval', REJECT: 'approval', TOOL_OUTPUT: 'client' } as const

/** The part of a run that the checks of a message read. */
export type ReceivingRun = Pick<SnapshotFrom<AgentMachine>, 'status' | 'context' | 'matches'>

/**
 * Checks whether a run can take a message now.
 * @throws {UsageError} `run_ended`, `not_waiting`, `unknown_call`, `already_answered`, `stale_answer`
 */
export function checkMessageFits(event: ControlEvent, run: ReceivingRun, sessionId: string): void {
  checkNotEnded(run, sessionId)
  const state = run.context.state ?? 'RUNNING'
  if (event.type === 'RESUME' && !canResume(run))
    throw notWaitingError(sessionId, `is ${state}, and no pause has been asked for`)
  if (event.type === 'REPLY' && !run.matches({ WAITING_FOR_INPUT: 'message' }))
    throw notWaitingError(sessionId, `is ${state}, and waits for no message`)
  if (event.type in answerNeeds) getAskedCall(event as Answer, run)
}

/** Whether there is a pause to end, or one to withdraw that the run has not taken yet. */
export function canResume({ status, context }: Pick<ReceivingRun, 'status' | 'context'>): boolean {
  return status === 'active' && (context.state === 'PAUSED' || context.pausing)
}

/** @throws {UsageError} `run_ended` */
export function checkNotEnded({ status, context }: ReceivingRun, sessionId: string): void {
  if (status === 'active') return
  throw new UsageError(
    'run_ended',
    `The run of session '${sessionId}' is ${context.state ?? 'RUNNING'}: it takes no more messages. Send a new one with ` +
      `agent.run(input, { session: '${sessionId}' }).`,
    sessionId,
  )
}

type Answer = Extract<ControlEvent, { callId: string }>

/** The call that an answer is for. */
function getAskedCall({ type, callId, ...meant }: Answer, { context }: ReceivingRun): PendingCall {
  return getAwaitedCall(context, callId, answerNeeds[type], meant)
}

/** No process holds the session, and it does not wait for this message. */
export function notWaitingError(sessionId: string, why: string): UsageError {
  return new UsageError(
    'not_waiting',
    `Session '${sessionId}' ${why}. Read its state with agent.replay('${sessionId}'), and resume an interrupted run with ` +
      `agent.resume('${sessionId}').`,
    sessionId,
  )
}
