import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentState, Reason, RunResult } from '../../../machines/agent/run-result.js'
import { getCacheHitRate } from '../../../machines/agent/usage.js'
import type { Paint, Style } from './paint.js'
import { count, duration, money } from './words.js'

/** How a run ended and what it took, each against its limit. */
export function summary(
  result: Pick<RunResult, 'steps' | 'usage'> & { state: AgentState; reason: Reason },
  limits: Partial<AgentConfig['limits']>,
  /** Null: not known. */
  durationMs: number | null,
  paint: Paint,
): string {
  const { state, reason, steps, usage } = result
  const rows = [
    ['steps', count(steps) + of(limits.maxSteps, count)],
    [
      'tokens',
      `${usage.estimated ? '≈ ' : ''}${count(usage.totalTokens)}${of(limits.tokenBudget, count)}` +
        ` (${count(usage.inputTokens)} in${cached(usage)}, ${count(usage.outputTokens)} out)`,
    ],
    ['cost', money(usage.cost) + of(limits.costLimit, money)],
    ...(durationMs === null
      ? []
      : [['time', duration(durationMs) + of(limits.timeoutMs, duration)] as const]),
  ] as const
  return [
    `${paint('bold', paint(styleOf(state), state))} ${paint('dim', '·')} ${reason}`,
    ...rows.map(([name, value]) => `  ${paint('dim', name.padEnd(6))}  ${value}`),
    '',
  ].join('\n')
}

/** What of the input was cheap. */
function cached(usage: RunResult['usage']): string {
  const share = Math.floor(getCacheHitRate(usage) * 100)
  return share > 0 ? `, ${share} % of it cached` : ''
}

function of(limit: number | null | undefined, show: (value: number) => string): string {
  return !limit ? '' : ` of ${show(limit)}`
}

export function styleOf(state: AgentState): Style {
  switch (state) {
    case 'RUNNING':
    case 'WAITING_FOR_TOOL':
      return 'cyan'
    case 'COMPLETED':
      return 'green'
    case 'ERROR':
    case 'BLOCKED':
      return 'red'
    default:
      return 'yellow'
  }
}
