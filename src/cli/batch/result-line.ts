import type { AgentState, Reason, RunResult } from '../../../machines/agent/run-result.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { BatchResult } from '../../fleet/batch-run.js'

/** A line of the results. */
export interface ResultLine {
  id: string
  session: string
  state: AgentState
  reason: Reason | null
  /** The last answer. */
  output: string
  /** Tokens of the run; null where there is no run. */
  usage: Omit<Usage, 'cost'> | null
  /** Of the run, in USD; null where it is not known. */
  cost: number | null
  /** Only where an error, a limit or a shield has ended the run. */
  error?: { code: string; message: string }
}

export function toResultLine({ item, session, result, error }: BatchResult): ResultLine {
  const { id } = item
  if (result === null) {
    const [code, message] = [error?.code ?? 'internal', error?.message ?? '']
    return {
      id,
      session,
      state: 'ERROR',
      reason: null,
      output: '',
      usage: null,
      cost: null,
      error: { code, message },
    }
  }
  const { state, reason, output, usage } = result as RunResult
  const { cost, ...tokens } = usage
  const failure = (result as RunResult).error
  return {
    id,
    session,
    state,
    reason,
    output,
    usage: tokens,
    cost,
    ...(failure && { error: { code: failure.code, message: failure.message } }),
  }
}
