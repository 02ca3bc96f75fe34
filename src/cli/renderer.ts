import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentConfig } from '../../machines/agent/config.js'
import type { RunResult } from '../../machines/agent/run-result.js'
import { createEventFormatter } from '../core/format/format-events.js'
import { createPaint, type Paint, stripControls } from '../core/format/format-words.js'
import { formatRunSummary } from '../core/format/run-summary.js'
import { omitUndefined } from '../../guards/lib/json.js'
import type { CliIO } from './command.js'
import type { CommonOptions } from './options.js'
import { formatJsonLine, wantsColor } from './output.js'

/** Converts events to text for stdout, without I/O or a clock. */
interface Renderer {
  renderEvent(event: AgentEvent): string
  renderResult(result: RunResult): string
}

export function createRenderer(
  output: CommonOptions['output'],
  limits: AgentConfig['limits'],
  { stdout, env }: Pick<CliIO, 'stdout' | 'env'>,
  isAnswered = false,
): Renderer {
  if (output === 'json') return { renderEvent: () => '', renderResult: formatJsonLine }
  if (output === 'events') return { renderEvent: formatJsonLine, renderResult: () => '' }
  const color = wantsColor(stdout, env)
  const markdown = stdout.isTTY === true
  const width = stdout.columns || undefined
  return createHumanRenderer({ color, markdown, isAnswered, limits, ...omitUndefined({ width }) })
}

interface HumanOptions {
  color: boolean
  /** Whether to render Markdown and wrap text. Defaults to false. */
  markdown?: boolean
  /** Whether approvals are answered without a question that shows the call. Defaults to false. */
  isAnswered?: boolean
  /** Number of columns. Defaults to 100. */
  width?: number
  limits: AgentConfig['limits']
}

/** A hint that guards repeat with each nudge. It is shown only once. */
const developerHint = / \(For the developer: [^)]*\)/

export function createHumanRenderer({ limits, isAnswered = false, ...options }: HumanOptions): Renderer {
  const format = createEventFormatter({ ...options, timings: false })
  const shownHints = new Set<string>()
  /** Lines of calls that have not started. For approvals, the question or the last notice shows the call. */
  const heldCalls = new Map<string, string>()
  let startedAt: number | null = null
  let endedAt = 0

  function showEvent(event: AgentEvent): string {
    const { type } = unwrapChildEvent(event).inner
    // The prompt or the last notice shows the call, and the summary shows the end.
    if (type === 'approval_requested' || event.type === 'run_ended') return ''
    return format(event).replace(developerHint, (hint) => {
      const isRepeated = shownHints.has(hint)
      shownHints.add(hint)
      return isRepeated ? '' : hint
    })
  }

  function showHeldCalls(event: AgentEvent): string {
    const { inner, prefix } = unwrapChildEvent(event)
    const started = 'callId' in event ? [event.callId] : []
    if ('callId' in inner && event !== inner) started.push(prefix + inner.callId)
    if (inner.type === 'approval_requested' && !isAnswered) heldCalls.delete(prefix + inner.callId)
    const isOver = inner.type === 'state_changed' && !inner.to.startsWith('WAITING')
    const ids = isOver ? [...heldCalls.keys()].filter((id) => id.startsWith(prefix)) : started
    const lines = ids.map((id) => heldCalls.get(id) ?? '')
    for (const id of ids) heldCalls.delete(id)
    return lines.join('')
  }

  return {
    renderEvent(event) {
      startedAt ??= event.at
      endedAt = event.at
      const { inner, prefix } = unwrapChildEvent(event)
      if (inner.type !== 'tool_call') return showHeldCalls(event) + showEvent(event)
      heldCalls.set(prefix + inner.call.id, format(event))
      return event === inner ? '' : showHeldCalls(event)
    },
    renderResult(result) {
      const durationMs = startedAt === null ? null : endedAt - startedAt
      return `\n${formatRunSummary(result, limits, durationMs, createPaint(options.color))}`
    },
  }
}

/** An event, or the event of a sub-agent with the path of its calls. */
function unwrapChildEvent(event: AgentEvent): { inner: AgentEvent; prefix: string } {
  return event.type === 'child_event'
    ? { inner: event.event, prefix: `${event.callId}/` }
    : { inner: event, prefix: '' }
}

export function formatErrorLine({ error }: Pick<RunResult, 'error'>, paint: Paint): string {
  return error === undefined
    ? ''
    : `${paint('red', `✗ ${stripControls(error.code)}`)}  ${stripControls(error.message)}\n`
}
