import type { AgentMachineEvent } from '../../../machines/agent/machine-events.js'
import type { RecordContent } from '../../core/sessions/log/record-content.js'
import { formatIsoTime } from './format-time.js'
import { formatToolName, formatArguments } from '../../core/format/format-call.js'
import { formatMessageText } from '../../core/format/message-text.js'
import { shorten } from '../../core/format/format-words.js'

/** A record of a session's log. */
export interface NumberedEntry {
  seq: number
  at: number
  entry: RecordContent
}

/** A record as one line: its number (for `--at`), time, type, and the beginning of its content. */
export function formatLogLine({ seq, at, entry }: NumberedEntry, width: number): string {
  const when = (formatIsoTime(at) ?? '?').slice(0, 23).replace('T', ' ').padEnd(23)
  const kind = entry.type === 'event' ? entry.event.type.replace(/^xstate\./, '') : entry.type
  const head = `${String(seq).padStart(5)}  ${when}  ${shorten(kind, 40).padEnd(18)}`
  const room = Math.max(40, width - head.length - 2)
  return `${head}  ${shorten(formatContent(entry), room)}`.trimEnd()
}

function formatContent(entry: RecordContent): string {
  switch (entry.type) {
    case 'opened': {
      const { name, state, forkedFrom } = entry
      const from = forkedFrom ? `from ${forkedFrom.sessionId} at ${forkedFrom.seq}` : ''
      const brought = state ? `with ${state.messages.length} messages` : ''
      return [name ?? '', from, brought].filter((part) => part !== '').join(', ')
    }
    case 'start':
      if (entry.input.features.inputShields) return unclearedNote
      return entry.input.input.map((message) => formatMessageText(message)).join(' ')
    case 'event':
      return entry.event.withheld ? unclearedNote : formatEventContent(entry.event)
    default:
      return JSON.stringify(entry.state.value)
  }
}

/** The transcript shows the content after the shields. */
const unclearedNote = '(not cleared by shields)'

type LooseEvent = AgentMachineEvent & { now?: number; fingerprint?: string }

function formatEventContent(event: AgentMachineEvent): string {
  switch (event.type) {
    case 'xstate.done.actor.model':
    case 'xstate.done.actor.conclusion': {
      const { text, toolCalls } = event.output.response
      const calls = toolCalls.map(
        ({ function: call }) => `→ ${formatToolName(call.name)}(${formatArguments(call.arguments, 80)})`,
      )
      return [text, ...calls].filter((part) => part !== '').join(' ')
    }
    case 'xstate.error.actor.model':
    case 'xstate.error.actor.conclusion':
      return `${event.error.code}: ${event.error.message}`
    case 'TOOL_RESULT':
      return `${event.callId} ${event.result.status}: ${event.result.content}`
    case 'STORE_FAILED':
      return `${event.failure.code}: ${event.failure.message}`
    case 'REPLY':
      return event.messages.map((message) => formatMessageText(message)).join(' ')
    default: {
      // The fingerprint of an answer is not for people.
      const { type: _type, now: _now, fingerprint: _fingerprint, ...rest } = event as LooseEvent
      return Object.values(rest)
        .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
        .join(' ')
    }
  }
}
