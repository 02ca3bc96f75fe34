import type { StepCompleted } from '../../../machines/agent/announcements.js'
import type { LineStyle } from './event-line.js'
import { count, duration } from './words.js'

/** How long a step took, and what it cost. A tool's says its result. */
export function stepLine(step: StepCompleted, { paint, timings }: LineStyle): string | null {
  if (!timings || step.stepType === 'tool_execution') return null
  const took = duration(step.completedAt - step.startedAt)
  const how = { ok: took, error: `failed after ${took}`, cancelled: `stopped after ${took}` }[step.outcome]
  return paint('dim', `  ◷ ${workOf(step)} ${how}${tokensOf(step)}`)
}

function workOf(step: StepCompleted): string {
  switch (step.stepType) {
    case 'inference':
      return step.summary ? 'summary' : 'inference'
    case 'shield_call':
      return `shields (${step.point})`
    default:
      return 'memory'
  }
}

function tokensOf(step: StepCompleted): string {
  if (step.stepType !== 'inference') return ''
  const usage = step.payload.modelResponse?.usage
  if (!usage) return ''
  return `, ${usage.estimated ? '≈ ' : ''}${count(usage.totalTokens)} tokens`
}
