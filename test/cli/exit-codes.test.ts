import { toExitCode } from '../../src/cli/exit-codes.js'
import type { Reason, RunResult } from '../../machines/agent/run-result.js'
import { noUsage } from '../../machines/agent/usage.js'

function result(state: RunResult['state'], reason: Reason): RunResult {
  const rest = {
    output: '',
    messages: [],
    usage: noUsage,
    steps: 0,
    resumable: false,
    sessionId: 's',
    runId: 'r',
  }
  return { state, reason, ...rest } as unknown as RunResult
}

test.each<[RunResult['state'], Reason, number]>([
  ['COMPLETED', 'end_turn', 0],
  ['COMPLETED', 'max_tokens', 0],
  ['ERROR', 'provider_error', 1],
  ['ERROR', 'context_overflow', 1],
  ['ERROR', 'internal', 1],
  ['MAX_STEPS', 'max_steps', 3],
  ['BUDGET_EXCEEDED', 'cost_limit', 3],
  ['TIMED_OUT', 'timeout', 3],
  ['BLOCKED', 'shield', 3],
  ['ERROR', 'repeated_call', 3],
  ['ERROR', 'cycle', 3],
  ['ERROR', 'policy_denied', 3],
  ['ERROR', 'terminal_delegation', 3],
  ['ERROR', 'user_guard', 3],
  ['WAITING_FOR_INPUT', 'approval', 4],
  ['PAUSED', 'paused', 4],
  ['CANCELLED', 'cancelled', 130],
])('%s by %s exits with %d', (state, reason, code) => {
  expect(toExitCode(result(state, reason))).toBe(code)
})
