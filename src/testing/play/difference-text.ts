import { truncate } from '../../../guards/lib/cut.js'
import type { CallNeeds } from '../../../machines/agent/model-response.js'
import { describeEventType } from '../../core/chart/state-labels.js'
import { formatToolName, formatArguments } from '../../core/format/format-call.js'
import type { RecordContent } from '../../core/sessions/log/record-content.js'

const mostLines = 12
const longestLine = 200

/** Removed and added lines, without the common beginning and end. */
export function formatTextDifference(before: string, after: string): string {
  const [one, other] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(one.length, other.length) && one[start] === other[start]) start += 1
  let end = 0
  while (
    end < Math.min(one.length, other.length) - start &&
    one[one.length - 1 - end] === other[other.length - 1 - end]
  )
    end += 1
  const gone = one.slice(start, one.length - end)
  const come = other.slice(start, other.length - end)
  const where = start > 0 ? [`  (line ${start + 1})`] : []
  return [...where, ...markLines('-', gone, come[0]), ...markLines('+', come, gone[0])].join('\n')
}

function markLines(sign: string, lines: readonly string[], beside: string | undefined): string[] {
  const shown = lines
    .slice(0, mostLines)
    .map((line, i) => `  ${sign} ${cutNearDifference(line, i === 0 ? beside : undefined)}`)
  const more = lines.length - shown.length
  return more > 0 ? [...shown, `  ${sign} … ${more} more lines`] : shown
}

/** Of a long line, the part at which it differs from the other one. */
function cutNearDifference(line: string, beside: string | undefined): string {
  if (line.length <= longestLine || beside === undefined) return truncate(line, longestLine)
  let at = 0
  while (at < line.length && line[at] === beside[at]) at += 1
  const from = Math.max(0, at - 60)
  return `${from > 0 ? '…' : ''}${truncate(line.slice(from), longestLine)}`
}

/** A value on one line. */
export function formatValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  return truncate(typeof value === 'string' ? `'${value}'` : JSON.stringify(value), longestLine)
}

/** `read_file({"path":"march.txt"})`. */
export function formatCall({ name, arguments: text }: { name: string; arguments: string }): string {
  return `${formatToolName(name)}(${formatArguments(text, 120)})`
}

export const needsThenWords: Record<CallNeeds, string> = {
  nobody: 'ran by itself',
  approval: 'waited for a person to approve it',
  client: 'was left to the client',
  child: 'waited for its sub-agent',
}

export const needsNowWords: Record<CallNeeds, string> = {
  nobody: 'runs by itself',
  approval: 'waits for a person to approve it',
  client: 'is left to the client',
  child: 'waits for its sub-agent',
}

/** Describes an entry, as text after `After …`. */
export function describeEntry(entry: RecordContent, callOf: (callId: string) => string | undefined): string {
  if (entry.type === 'start') return 'the start'
  if (entry.type !== 'event') return `a record of type '${entry.type}'`
  const { event } = entry
  switch (event.type) {
    case 'xstate.done.actor.model': {
      const names = event.output.response.toolCalls.map((call) => formatToolName(call.function.name))
      return names.length > 0 ? `the model's answer that calls ${names.join(', ')}` : "the model's answer"
    }
    case 'xstate.error.actor.model':
      return `the request that failed (${event.error.code})`
    case 'TOOL_RESULT':
    case 'TOOL_OUTPUT':
      return `the result of ${callOf(event.callId) ?? event.callId}`
    case 'APPROVE':
      return `the approval of ${callOf(event.callId) ?? event.callId}`
    case 'REJECT':
      return `the rejection of ${callOf(event.callId) ?? event.callId}`
    default:
      return describeEventType(event.type)
  }
}
