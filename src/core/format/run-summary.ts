import { formatWakeTime } from '../base/clock.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentState, Reason, RunResult } from '../../../machines/agent/run-result.js'
import {
  type Paint,
  type Style,
  formatCount,
  formatDuration,
  formatMoney,
  getCachedPercent,
} from './format-words.js'

export function formatRunSummary(
  result: Pick<RunResult, 'steps' | 'usage'> & { state: AgentState; reason: Reason; wakeAt?: number },
  limits: Partial<AgentConfig['limits']>,
  durationMs: number | null,
  paint: Paint,
  runNumber = 1,
): string {
  const { state, reason, steps, usage, wakeAt } = result
  const until = wakeAt === undefined ? '' : ` until ${formatWakeTime(wakeAt)}`
  const rows = [
    [
      'steps',
      formatCount(steps) +
        formatLimit(limits.maxSteps, formatCount) +
        (runNumber > 1 ? ` in run ${formatCount(runNumber)}` : ''),
    ],
    [
      'tokens',
      `${usage.estimated ? '≈ ' : ''}${formatCount(usage.totalTokens)}${formatLimit(limits.tokenBudget, formatCount)}` +
        ` (${formatCount(usage.inputTokens)} in${formatCachedShare(usage)}, ${formatCount(usage.outputTokens)} out)`,
    ],
    [
      'cost',
      formatMoney(usage.cost, 'unknown (no price for this model)') +
        formatLimit(limits.costLimit, formatMoney),
    ],
    ...(durationMs === null
      ? []
      : [['time', formatDuration(durationMs) + formatLimit(limits.timeoutMs, formatDuration)] as const]),
  ] as const
  return [
    `${paint('bold', paint(getStateStyle(state), state))} ${paint('dim', '·')} ${reason}${until}`,
    ...rows.map(([name, value]) => `  ${paint('dim', name.padEnd(6))}  ${value}`),
    '',
  ].join('\n')
}

function formatCachedShare(usage: RunResult['usage']): string {
  const share = getCachedPercent(usage)
  return share > 0 ? `, ${share}% of it cached` : ''
}

function formatLimit(limit: number | null | undefined, show: (value: number) => string): string {
  return !limit ? '' : ` of ${show(limit)}`
}

export function getStateStyle(state: AgentState): Style {
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
