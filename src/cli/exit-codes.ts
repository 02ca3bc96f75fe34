import type { AgentState, RunResult } from '../../machines/agent/run-result.js'
import { GuardrailError, orThrow } from '../core/run/run-errors.js'

export const exitCodes = {
  completed: 0,
  error: 1,
  usage: 2,
  /** Stopped by a limit, a shield or a guardrail. */
  stopped: 3,
  /** Waits for an approval, a client tool, or a resume. */
  waiting: 4,
  /** The exit code that shells use for Ctrl-C. */
  cancelled: 130,
  /** Released at SIGTERM. The run can be resumed. */
  released: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

const codeByState: Partial<Record<AgentState, ExitCode>> = {
  COMPLETED: exitCodes.completed,
  CANCELLED: exitCodes.cancelled,
  TIMED_OUT: exitCodes.stopped,
  MAX_STEPS: exitCodes.stopped,
  BUDGET_EXCEEDED: exitCodes.stopped,
  BLOCKED: exitCodes.stopped,
}

export function toExitCode(result: RunResult): ExitCode {
  const known = codeByState[result.state]
  if (known !== undefined) return known
  try {
    orThrow(result)
  } catch (error) {
    if (error instanceof GuardrailError) return exitCodes.stopped
  }
  return result.state === 'ERROR' ? exitCodes.error : exitCodes.waiting
}

/** An error takes precedence over a stop, and a stop over a wait. A cancelled run counts as a stop. */
export function toWorstExitCode(codes: ReadonlySet<ExitCode>): ExitCode {
  if (codes.has(exitCodes.error)) return exitCodes.error
  if (codes.has(exitCodes.stopped) || codes.has(exitCodes.cancelled)) return exitCodes.stopped
  return codes.has(exitCodes.waiting) ? exitCodes.waiting : exitCodes.completed
}
