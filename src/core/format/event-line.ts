import type { AgentEvent, StepCompleted } from '../../../machines/agent/announcements.js'
import { formatToolName, formatCallPath, formatCallId, formatArguments } from './format-call.js'
import { formatMessageText } from './message-text.js'
import type { Paint, Style } from './paint.js'
import { getStateStyle } from './run-summary.js'
import { formatCount, formatDuration, getFirstLine, stripControls, shorten } from './format-words.js'

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

export interface LineStyle {
  paint: Paint
  /** Columns. */
  width: number
  /** Whether steps say how long they took. */
  timings: boolean
}

/** What an event has to say in a line of its own; null when that is nothing, or more than a line (streamed text). */
export function formatEventLine(event: AgentEvent, style: LineStyle): string | null {
  const { paint, width } = style
  const note = (color: Style, head: string, message: string): string =>
    `${paint(color, stripControls(head))}  ${stripControls(message)}`.trimEnd()
  switch (event.type) {
    case 'state_changed':
      return formatStateLine(event, style, note)
    case 'user_message':
      return paint('bold', `> ${stripControls(formatMessageText(event.message))}`)
    case 'tool_call': {
      const { name, arguments: json } = event.call.function
      return `  ${paint('cyan', '→')} ${formatToolName(name)}${paint('dim', `(${formatArguments(json, width - 12)})`)}`
    }
    case 'tool_progress':
      return paint(
        'dim',
        `  … ${formatToolName(event.name)}: ${shorten(formatProgress(event.progress), width - 20)}`,
      )
    case 'tool_result':
      return formatResultLine(event, style)
    case 'step_completed':
      return formatStepLine(event, style)
    case 'retry': {
      const wait = `waiting ${formatDuration(event.delayMs)} before attempt ${event.attempt}`
      return note('yellow', `↻ ${event.code}`, `${event.message.replace(/[\s.]+$/, '')}; ${wait}`)
    }
    case 'waiting_for_slot': {
      const { limiter, ahead } = event
      return paint('dim', `  … waits for a slot of '${stripControls(limiter)}' (${formatCount(ahead)} ahead)`)
    }
    case 'guardrail':
      return note('yellow', `⚑ ${event.guard} (${event.action})`, event.message)
    case 'shield': {
      const { shield, action, point, message } = event
      return note(action === 'block' ? 'red' : 'yellow', `⚑ ${shield} (${action} ${point})`, message ?? '')
    }
    case 'memory':
      return paint('dim', `  ◇ memory  ${shorten(formatSources(event), width - 12)}`)
    case 'context_fitted': {
      const { strategy, before, after, dropped } = event
      const less = `${formatCount(before)} → ${formatCount(after)} tokens, ${formatCount(dropped)} messages left out`
      return paint('dim', `  ◇ context  ${less} (${strategy})`)
    }
    case 'budget_warning':
      return note('yellow', '! budget', event.message)
    case 'approval_requested': {
      const shown = formatArguments(event.arguments, width)
      const call = formatCallId(event.callId)
      return note(
        'yellow',
        '? approval',
        `${formatCallPath(event)}(${shown}) waits for a person (call ${call})`,
      )
    }
    case 'warning':
      return note('yellow', `! ${event.code}`, event.message)
    case 'error':
      return note('red', `✗ ${event.code}`, event.message)
    default:
      return null
  }
}

/** What is said of a sub-agent: what it does, not what it says. */
const childEventTypes: ReadonlySet<string> = new Set([
  'tool_call',
  'tool_result',
  'step_completed',
  'retry',
  'waiting_for_slot',
  'guardrail',
  'shield',
  'warning',
  'error',
])

/** What a sub-agent does, behind the names of the tools that lead to it. */
export function formatChildLine({ path, event }: EventOf<'child_event'>, style: LineStyle): string | null {
  const line = childEventTypes.has(event.type) ? formatEventLine(event, style) : null
  if (line === null) return null
  return `  ${style.paint('dim', `${path.map(formatToolName).join(' › ')} ›`)} ${line.trimStart()}`
}

const restStates: ReadonlySet<string> = new Set(['PAUSED', 'WAITING_FOR_INPUT'])
const workStates: ReadonlySet<string> = new Set(['RUNNING', 'WAITING_FOR_TOOL'])

/** Final states are left to the summary. */
function formatStateLine(
  { to, reason }: EventOf<'state_changed'>,
  { paint }: LineStyle,
  note: (color: Style, head: string, message: string) => string,
): string | null {
  if (workStates.has(to)) return paint('dim', `● ${to}`)
  return restStates.has(to) ? note(getStateStyle(to), `● ${to}`, reason ?? '') : null
}

function formatResultLine(
  { name, status, content, durationMs, truncated }: EventOf<'tool_result'>,
  { paint, width }: LineStyle,
): string {
  const mark = status === 'ok' ? paint('green', '✓') : paint('red', `✗ ${status}`)
  const cut = truncated ? ' (cut)' : ''
  const first = shorten(getFirstLine(content), Math.max(20, width - name.length - 24))
  return `  ${mark} ${formatToolName(name)} ${paint('dim', `${formatDuration(durationMs)}${cut}  ${first}`)}`
}

function formatSources({ snippets }: EventOf<'memory'>): string {
  if (snippets.length === 0) return 'nothing found'
  const sources = [...new Set(snippets.map(({ source }) => source))].join(', ')
  return `${formatCount(snippets.length)} found: ${sources}`
}

function formatProgress(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

/** How long a step took, and what it cost. A tool's says its result. */
function formatStepLine(step: StepCompleted, { paint, timings }: LineStyle): string | null {
  if (!timings || step.stepType === 'tool_execution') return null
  const took = formatDuration(step.completedAt - step.startedAt)
  const how = { ok: took, error: `failed after ${took}`, cancelled: `stopped after ${took}` }[step.outcome]
  return paint('dim', `  ◷ ${formatStepName(step)} ${how}${formatStepTokens(step)}`)
}

function formatStepName(step: StepCompleted): string {
  switch (step.stepType) {
    case 'inference':
      return step.summary ? 'summary' : 'inference'
    case 'shield_call':
      return `shields (${step.point})`
    case 'hosted':
      return stripControls(step.name)
    default:
      return 'memory'
  }
}

function formatStepTokens(step: StepCompleted): string {
  if (step.stepType !== 'inference') return ''
  const usage = step.payload.modelResponse?.usage
  if (!usage) return ''
  return `, ${usage.estimated ? '≈ ' : ''}${formatCount(usage.totalTokens)} tokens`
}
