import type { AgentEvent, StepCompleted } from '../../../machines/agent/announcements.js'
import { callName, callPath, callWord, shownArguments } from './call-words.js'
import { messageText } from './message-text.js'
import type { Paint, Style } from './paint.js'
import { styleOf } from './summary.js'
import { count, duration, firstLine, printable, shorten } from './words.js'

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

export interface LineStyle {
  paint: Paint
  /** Columns. */
  width: number
  /** Whether steps say how long they took. */
  timings: boolean
}

/** What an event has to say in a line of its own; null when that is nothing, or more than a line (streamed text). */
export function eventLine(event: AgentEvent, style: LineStyle): string | null {
  const { paint, width } = style
  const note = (color: Style, head: string, message: string): string =>
    `${paint(color, printable(head))}  ${printable(message)}`.trimEnd()
  switch (event.type) {
    case 'state_changed':
      return stateLine(event, style, note)
    case 'user_message':
      return paint('bold', `> ${printable(messageText(event.message))}`)
    case 'tool_call': {
      const { name, arguments: json } = event.call.function
      return `  ${paint('cyan', '→')} ${callName(name)}${paint('dim', `(${shownArguments(json, width - 12)})`)}`
    }
    case 'tool_progress':
      return paint('dim', `  … ${callName(event.name)}: ${shorten(inWords(event.progress), width - 20)}`)
    case 'tool_result':
      return resultLine(event, style)
    case 'step_completed':
      return stepLine(event, style)
    case 'retry': {
      const wait = `waiting ${duration(event.delayMs)} before attempt ${event.attempt}`
      return note('yellow', `↻ ${event.code}`, `${event.message.replace(/[\s.]+$/, '')}; ${wait}`)
    }
    case 'guardrail':
      return note('yellow', `⚑ ${event.guard} (${event.action})`, event.message)
    case 'shield': {
      const { shield, action, point, message } = event
      return note(action === 'block' ? 'red' : 'yellow', `⚑ ${shield} (${action} ${point})`, message ?? '')
    }
    case 'memory':
      return paint('dim', `  ◇ memory  ${shorten(sourcesOf(event), width - 12)}`)
    case 'context_fitted': {
      const { strategy, before, after, dropped } = event
      const less = `${count(before)} → ${count(after)} tokens, ${count(dropped)} messages left out`
      return paint('dim', `  ◇ context  ${less} (${strategy})`)
    }
    case 'budget_warning':
      return note('yellow', '! budget', event.message)
    case 'approval_requested': {
      const shown = shownArguments(event.arguments, width)
      const call = callWord(event.callId)
      return note('yellow', '? approval', `${callPath(event)}(${shown}) waits for a person (call ${call})`)
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
const ofChildren: ReadonlySet<string> = new Set([
  'tool_call',
  'tool_result',
  'step_completed',
  'retry',
  'guardrail',
  'shield',
  'warning',
  'error',
])

/** What a sub-agent does, behind the names of the tools that lead to it. */
export function childLine({ path, event }: EventOf<'child_event'>, style: LineStyle): string | null {
  const line = ofChildren.has(event.type) ? eventLine(event, style) : null
  if (line === null) return null
  return `  ${style.paint('dim', `${path.map(callName).join(' › ')} ›`)} ${line.trimStart()}`
}

const resting: ReadonlySet<string> = new Set(['PAUSED', 'WAITING_FOR_INPUT'])
const passing: ReadonlySet<string> = new Set(['RUNNING', 'WAITING_FOR_TOOL'])

/** Final states are left to the summary. */
function stateLine(
  { to, reason }: EventOf<'state_changed'>,
  { paint }: LineStyle,
  note: (color: Style, head: string, message: string) => string,
): string | null {
  if (passing.has(to)) return paint('dim', `● ${to}`)
  return resting.has(to) ? note(styleOf(to), `● ${to}`, reason ?? '') : null
}

function resultLine(
  { name, status, content, durationMs, truncated }: EventOf<'tool_result'>,
  { paint, width }: LineStyle,
): string {
  const mark = status === 'ok' ? paint('green', '✓') : paint('red', `✗ ${status}`)
  const cut = truncated ? ' (cut)' : ''
  const first = shorten(firstLine(content), Math.max(20, width - name.length - 24))
  return `  ${mark} ${callName(name)} ${paint('dim', `${duration(durationMs)}${cut}  ${first}`)}`
}

function sourcesOf({ snippets }: EventOf<'memory'>): string {
  if (snippets.length === 0) return 'nothing found'
  const sources = [...new Set(snippets.map(({ source }) => source))].join(', ')
  return `${count(snippets.length)} found: ${sources}`
}

function inWords(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

/** How long a step took, and what it cost. A tool's says its result. */
function stepLine(step: StepCompleted, { paint, timings }: LineStyle): string | null {
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
    case 'hosted':
      return printable(step.name)
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
