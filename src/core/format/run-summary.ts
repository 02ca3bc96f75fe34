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
  const estimate = usage.estimated ? '≈ ' : ''
  const output = formatCount(usage.outputTokens)
  const input = `${formatCount(usage.inputTokens)} in${formatCachedShare(usage)}`
  const tokens = `${estimate}${formatCount(usage.totalTokens)}${formatLimit(limits.tokenBudget, formatCount)}`
  const run = runNumber > 1 ? ` in run ${formatCount(runNumber)}` : ''
  const cost = formatMoney(usage.cost, 'unknown (no price for this model)')
  const rows: (readonly [string, string])[] = [
    ['steps', formatCount(steps) + formatLimit(limits.maxSteps, formatCount) + run],
    ['tokens', `${tokens} (${input}, ${output} out)`],
    ['cost', cost + formatLimit(limits.costLimit, formatMoney)],
  ]
  if (durationMs !== null)
    rows.push(['time', formatDuration(durationMs) + formatLimit(limits.timeoutMs, formatDuration)])
  return [
    `${paint('bold', paint(getStateStyle(state), state))} ${paint('dim', '·')} ${reason}${formatUntil(wakeAt)}`,
    ...rows.map(([name, value]) => `  ${paint('dim', name.padEnd(6))}  ${value}`),
    '',
  ].join('\n')
}

/** The time until which a run waits, if any, after a space. */
export function formatUntil(at: number | undefined): string {
  return at === undefined ? '' : ` until ${formatWakeTime(at)}`
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
