import { expectArgument, objectRule } from '../base/values.js'
import { guardNames } from '../../../guards/roster.js'
import type { AgentState, Reason, RunResult } from '../../../machines/agent/run-result.js'
import { StatewrightError } from '../base/errors.js'

/**
 * A run that did not complete, as an exception. `result` contains the transcript, the usage and the last output.
 * @example if (error instanceof RunError) console.log(error.code, error.result.state, error.result.output)
 */
export class RunError extends StatewrightError {
  override readonly name: string = 'RunError'
  readonly result: RunResult

  constructor(result: RunResult) {
    super(
      result.error?.code ?? result.reason,
      result.error?.message ?? result.outputProblem ?? `The run ended ${result.state}: ${result.reason}.`,
    )
    this.result = result
  }
}

/**
 * The run ended in ERROR because of the provider or an internal failure.
 * @example if (error instanceof ProviderError) console.log(error.code, error.message) // insufficient_quota …
 */
export class ProviderError extends RunError {
  override readonly name = 'ProviderError'
}
/**
 * MAX_STEPS: the run used all of its `limits.maxSteps`.
 * @example if (error instanceof MaxStepsError) console.log(`Gave up after ${error.result.steps} steps.`)
 */
export class MaxStepsError extends RunError {
  override readonly name = 'MaxStepsError'
}
/**
 * BUDGET_EXCEEDED with the `code` `token_budget`, `output_tokens` or `cost_limit`.
 * @example if (error instanceof BudgetExceededError) console.log(error.code)
 */
export class BudgetExceededError extends RunError {
  override readonly name = 'BudgetExceededError'
}
/**
 * TIMED_OUT: the run took longer than `limits.timeoutMs`.
 * @example if (error instanceof TimedOutError) console.log(`So far: ${error.result.output}`)
 */
export class TimedOutError extends RunError {
  override readonly name = 'TimedOutError'
}
/**
 * CANCELLED: `cancel()` was called, or the signal aborted.
 * @example if (error instanceof CancelledError) console.log(error.result.reason) // cancelling is not a failure
 */
export class CancelledError extends RunError {
  override readonly name = 'CancelledError'
}
/**
 * A shield refused the input or the answer.
 * @example if (error instanceof BlockedError) console.log(error.message) // the message of the shield
 */
export class BlockedError extends RunError {
  override readonly name = 'BlockedError'
}
/**
 * A guard halted the run in ERROR or PAUSED. A paused run can be resumed.
 * @example if (error instanceof GuardrailError && error.result.resumable) run.resume()
 */
export class GuardrailError extends RunError {
  override readonly name = 'GuardrailError'
}
/**
 * An agent with an output schema returned no object.
 * @example if (error instanceof InvalidOutputError) console.log(error.result.output) // the raw text
 */
export class InvalidOutputError extends RunError {
  override readonly name = 'InvalidOutputError'
}
/**
 * The run rests and waits for an approval, a client tool, a message or a resume.
 * @example if (error instanceof NotFinishedError) console.log(error.result.state) // WAITING_FOR_INPUT or PAUSED
 */
export class NotFinishedError extends RunError {
  override readonly name = 'NotFinishedError'
}

/**
 * The result of a completed run. Throws for any other run.
 * @example const { output } = orThrow(await agent.run('What changed?').result)
 * @throws {MaxStepsError} and the other errors of this module, depending on the state of the run. Each error contains
 * the `result`
 */
export function orThrow<Output>(result: RunResult<Output>): RunResult<Output> {
  expectArgument('orThrow(result)', result, resultRule)
  if (result.state !== 'COMPLETED') throw toRunError(result)
  return result
}

/**
 * The typed output of a run. Throws like `orThrow`, and an `InvalidOutputError` for a completed run without output (the
 * model declined, or the answer was filtered or truncated).
 * @example const { city } = objectOrThrow(await agent.run('Where was it?').result)
 */
export function objectOrThrow<Output>(result: RunResult<Output>): Output {
  expectArgument('objectOrThrow(result)', result, resultRule)
  const { object } = orThrow(result)
  if (object === undefined) throw new InvalidOutputError(result)
  return object
}

const resultRule = /* @__PURE__ */ objectRule(['state', 'reason'], "a run's result: await run.result")

const errorByState: Partial<Record<AgentState, new (result: RunResult) => RunError>> = {
  MAX_STEPS: MaxStepsError,
  BUDGET_EXCEEDED: BudgetExceededError,
  TIMED_OUT: TimedOutError,
  CANCELLED: CancelledError,
  BLOCKED: BlockedError,
}

function toRunError(result: RunResult): RunError {
  const { state, reason } = result
  const StateError = errorByState[state]
  if (StateError) return new StateError(result)
  if (guardReasons.has(reason)) return new GuardrailError(result)
  if (state !== 'ERROR') return new NotFinishedError(result)
  if (reason === 'invalid_output') return new InvalidOutputError(result)
  return providerReasons.has(reason) ? new ProviderError(result) : new RunError(result)
}

const guardReasons: ReadonlySet<Reason> = new Set([...guardNames, 'user_guard'])

const providerReasons: ReadonlySet<string> = new Set(
  'provider_error incomplete_response empty_response context_overflow'.split(' '),
)
