import type { AgentEvent, StepCompleted } from '../../../machines/agent/announcements.js'
import { parseStepNumber } from '../../../machines/agent/messages.js'
import { isRestState, isWorkState } from '../../../machines/agent/run-result.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { toJson } from '../base/json.js'
import { optionsRule, expectArgument } from '../base/values.js'
import {
  createPaint,
  type Paint,
  type Style,
  stripControls,
  formatCount,
  formatDuration,
  getFirstLine,
  shorten,
  formatMessageText,
  wrapWords,
} from './format-words.js'
import { createTextFlow } from './text-flow.js'
import { formatRunSummary, formatUntil, getStateStyle } from './run-summary.js'
import {
  escapeInvisible,
  formatToolName,
  formatCallPath,
  formatCallId,
  formatArguments,
} from './format-call.js'

/** Options for `createEventFormatter`. */
export interface EventFormatterOptions {
  /** Columns, at least 40, by default 100. Longer lines are cut, except text of people and models. */
  width?: number
  /** Whether to use terminal escape sequences. Defaults to false. */
  color?: boolean
  /** For a terminal: whether to render Markdown from models and wrap text at `width`. Defaults to false. */
  markdown?: boolean
  /** Whether inferences, shields and memory show their duration, like tools. Defaults to true. */
  timings?: boolean
}

/**
 * Formats the events of a run for a terminal: streamed text, one line per other event, and a summary at the end. Call
 * the returned function with the events of one run in order, and write the results without adding line breaks. Control
 * characters from models and tools are removed.
 *
 * @example
 * const format = createEventFormatter({ color: true })
 * for await (const event of agent.run('What changed?')) process.stdout.write(format(event))
 */
export function createEventFormatter(options: EventFormatterOptions = {}): (event: AgentEvent) => string {
  expectArgument('createEventFormatter(options)', options, optionsRule)
  const { width = 100, color = false, markdown = false, timings = true } = options
  const style: LineStyle = { paint: createPaint(color), width: width >= 40 ? width : 40, timings }
  let flow: ReturnType<typeof createTextFlow> | null = null
  let column: 'start' | 'text' | 'reasoning' = 'start'
  let streamed: string | null = null
  let waiting = ''
  let startedAt: number | null = null
  let steps = 0
  let usage = noUsage

  function show(event: AgentEvent): string {
    startedAt ??= event.at
    switch (event.type) {
      case 'stream_chunk':
        return showChunk(event)
      case 'assistant_message':
        return showAnswer(event)
      case 'child_event':
        return writeLine(formatChildLine(event, style))
      case 'run_ended':
        return showEnd(event)
      case 'usage':
        usage = event.run
        return ''
      case 'step_completed':
        // Each accepted response counts as a step. The step id contains the step number, even after a resume.
        if (event.stepType === 'inference' && !event.summary && event.outcome === 'ok')
          steps = parseStepNumber(event.stepId) ?? steps + 1
        return writeAfterText(formatEventLine(event, style))
      default:
        return writeLine(formatEventLine(event, style))
    }
  }

  function showChunk({ stepId, text, reasoning, reset, finished }: EventOf<'stream_chunk'>): string {
    let out = ''
    if (reset && streamed === stepId) {
      streamed = null
      const withdrawn = '↻ the output above is discarded, and the model starts over'
      out += writeLine(style.paint('dim', withdrawn))
    }
    if (reasoning) out += writeText('reasoning', stripControls(reasoning))
    if (text) {
      streamed = stepId
      out += writeText('text', stripControls(text))
    }
    if (!finished) return out
    out += startLine() + waiting
    waiting = ''
    return out
  }

  function showAnswer({ stepId, message }: EventOf<'assistant_message'>): string {
    const text = message.content || message.refusal || ''
    if (streamed === stepId || text === '') return startLine()
    streamed = stepId
    return startLine() + writeText('text', stripControls(text)) + startLine()
  }

  function showEnd({ state, reason, at }: EventOf<'run_ended'>): string {
    const durationMs = at - (startedAt ?? at)
    const reported = { state, reason, steps, usage }
    return writeLine('') + formatRunSummary(reported, {}, durationMs, style.paint)
  }

  function writeLine(text: string | null): string {
    if (text === null) return ''
    const line = markdown ? wrapWords(text, style.width, '  ') : text
    return `${startLine()}${line}\n`
  }

  /** Writes a line, or queues it until the streamed text ends. A hosted tool may end while text is being streamed. */
  function writeAfterText(text: string | null): string {
    if (column === 'start' || text === null) return writeLine(text)
    waiting += `${text}\n`
    return ''
  }

  function writeText(kind: 'text' | 'reasoning', text: string): string {
    if (text === '') return ''
    const start = column === kind ? '' : startLine()
    if (markdown) {
      column = kind
      flow ??= createTextFlow({ ...style, ...(kind === 'reasoning' && { style: 'dim' }) })
      return start + flow.write(text)
    }
    column = text.endsWith('\n') ? 'start' : kind
    return start + (kind === 'reasoning' ? style.paint('dim', text) : text)
  }

  function startLine(): string {
    const start = flow?.end() ?? (column === 'start' ? '' : '\n')
    flow = null
    column = 'start'
    return start
  }

  return show
}

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>

interface LineStyle {
  paint: Paint
  width: number
  timings: boolean
}

function formatEventLine(event: AgentEvent, style: LineStyle): string | null {
  const { paint, width } = style
  const dim = (text: string): string => paint('dim', text)
  const note = (color: Style, head: string, message: string): string =>
    `${paint(color, stripControls(head))}  ${stripControls(message)}`.trimEnd()
  switch (event.type) {
    case 'state_changed':
      return formatStateLine(event, style, note)
    case 'user_message':
      return paint('bold', `> ${stripControls(formatMessageText(event.message))}`)
    case 'tool_call': {
      const { name, arguments: json } = event.call.function
      return `  ${paint('cyan', '→')} ${formatToolName(name)}${dim(`(${formatArguments(json, width - 12)})`)}`
    }
    case 'tool_progress':
      return dim(`  … ${formatToolName(event.name)}: ${shorten(formatProgress(event), width - 20)}`)
    case 'tool_result':
      return formatResultLine(event, style)
    case 'step_completed':
      return formatStepLine(event, style)
    case 'retry': {
      const wait = `waiting ${formatDuration(event.delayMs)} before attempt ${event.attempt}`
      return note('yellow', `↻ ${event.code}`, `${event.message.replace(/[\s.]+$/, '')}; ${wait}`)
    }
    case 'waiting_for_slot': {
      const ahead = `(${formatCount(event.ahead)} ahead)`
      return dim(`  … waiting for a slot of '${stripControls(event.limiter)}' ${ahead}`)
    }
    case 'guardrail':
      return note('yellow', `⚑ ${event.guard} (${event.action})`, event.message)
    case 'shield': {
      const { shield, action, point, message } = event
      return note(action === 'block' ? 'red' : 'yellow', `⚑ ${shield} (${action} ${point})`, message ?? '')
    }
    case 'memory':
      return dim(`  ◇ memory  ${shorten(formatSources(event), width - 12)}`)
    case 'tools_loaded':
      return dim(`  ◇ tools  ${shorten(`${event.names.join(', ')} loaded`, width - 11)}`)
    case 'handed_off':
      return paint('bold', `  ⇒ ${stripControls(event.to)} speaks`)
    case 'step_prepared':
      return dim(`  ◇ step  ${shorten(formatPreparedStep(event), width - 10)}`)
    case 'context_fitted': {
      const { strategy, before, after, dropped } = event
      const less = `${formatCount(before)} → ${formatCount(after)} tokens, ${formatCount(dropped)} messages omitted`
      return dim(`  ◇ context  ${less} (${strategy})`)
    }
    case 'budget_warning':
      return note('yellow', '! budget', event.message)
    case 'policy_decided': {
      const { policy, decision, rule, reason = '', shadow, name } = event
      if (decision === 'allow' && !shadow) return null
      const how = [decision, rule, shadow ? 'shadow' : undefined].filter((word) => word !== undefined)
      const color = decision === 'deny' && !shadow ? 'red' : 'yellow'
      return note(color, `⚑ ${policy} (${how.join(', ')})`, formatToolName(name) + (reason && `: ${reason}`))
    }
    case 'approval_requested': {
      const called = `${formatCallPath(event)}(${formatArguments(event.arguments, width)})`
      const how = `needs approval${formatUntil(event.expiresAt)} (call ${formatCallId(event.callId)})`
      return note('yellow', '? approval', `${called} ${how}`)
    }
    case 'approval_decided': {
      const { name, outcome, by, why = '' } = event
      if (by === undefined && why === '' && outcome !== 'granted') return null
      const isYes = outcome === 'approved' || outcome === 'granted'
      const words = `${formatToolName(name)} ${outcome}${by ? ` by ${by.id}` : ''}${why && `: ${why}`}`
      return note(isYes ? 'green' : 'red', isYes ? '✓ approval' : '✗ approval', words)
    }
    case 'grant_changed': {
      const { grant, change } = event
      const words = `${formatToolName(grant.tool)}: ${change.replace('_', ' ')} (${stripControls(grant.id)})`
      return note(change === 'given' ? 'green' : 'yellow', '⚑ grant', words)
    }
    case 'elicitation_requested': {
      const { server, message, url = '' } = event.elicitation
      const pending = escapeInvisible(`${server} asks: ${message} ${url}`.trim())
      return note('yellow', '? question', `${shorten(pending, width)} (call ${formatCallId(event.callId)})`)
    }
    case 'warning':
      return note('yellow', `! ${event.code}`, event.message)
    case 'error':
      return note('red', `✗ ${event.code}`, event.message)
    default:
      return null
  }
}

function formatPreparedStep({ changes, model, tools }: EventOf<'step_prepared'>): string {
  const named: Partial<Record<string, string>> = {
    ...(model !== undefined && { model: `model ${model}` }),
    ...(tools && { tools: tools.length === 0 ? 'no tools' : `tools ${tools.join(', ')}` }),
  }
  return `prepared: ${changes.map((change) => named[change] ?? change).join('; ')}`
}

/** The types of sub-agent events that are shown. They cover the sub-agent's actions but not its text. */
const childEventTypes =
  'tool_call tool_result step_completed retry waiting_for_slot guardrail shield warning error'.split(' ')

function formatChildLine({ path, event }: EventOf<'child_event'>, style: LineStyle): string | null {
  const line = childEventTypes.includes(event.type) ? formatEventLine(event, style) : null
  if (line === null) return null
  return `  ${style.paint('dim', `${path.map(formatToolName).join(' › ')} ›`)} ${line.trimStart()}`
}

function formatStateLine(
  { to, reason, wakeAt }: EventOf<'state_changed'>,
  { paint }: LineStyle,
  note: (color: Style, head: string, message: string) => string,
): string | null {
  if (isWorkState(to)) return paint('dim', `● ${to}`)
  return isRestState(to) ? note(getStateStyle(to), `● ${to}`, `${reason ?? ''}${formatUntil(wakeAt)}`) : null
}

function formatResultLine(
  { name, status, content, durationMs, truncated }: EventOf<'tool_result'>,
  { paint, width }: LineStyle,
): string {
  const mark = status === 'ok' ? paint('green', '✓') : paint('red', `✗ ${status}`)
  const took = status === 'ok' || durationMs > 0 ? ` ${formatDuration(durationMs)}` : ''
  const cut = truncated ? ' (cut)' : ''
  const first = shorten(getFirstLine(content), Math.max(20, width - name.length - 24))
  return `  ${mark} ${formatToolName(name)}${paint('dim', `${took}${cut}  ${first}`)}`
}

function formatProgress({ progress }: EventOf<'tool_progress'>): string {
  return typeof progress === 'string' ? progress : JSON.stringify(toJson(progress))
}

function formatSources({ snippets }: EventOf<'memory'>): string {
  if (snippets.length === 0) return 'nothing found'
  const sources = [...new Set(snippets.map(({ source }) => source))].join(', ')
  return `${formatCount(snippets.length)} found: ${sources}`
}

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
  const usage = step.stepType === 'inference' && step.payload.modelResponse?.usage
  return usage ? `, ${usage.estimated ? '≈ ' : ''}${formatCount(usage.totalTokens)} tokens` : ''
}
