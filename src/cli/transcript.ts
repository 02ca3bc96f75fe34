import type { AssistantMessage, Message, ToolMessage } from '../../machines/agent/messages.js'
import { formatToolName, formatArguments } from '../core/format/format-call.js'
import {
  formatMessageText,
  getFirstLine,
  type Paint,
  shorten,
  stripControls,
} from '../core/format/format-words.js'

export function formatTranscript(
  messages: readonly Message[],
  { paint, width }: { paint: Paint; width: number },
): string {
  const names = collectToolNames(messages)
  let speaker = ''
  const lines: string[] = []
  const write = (who: string, note: string, text: string): void => {
    if (who !== speaker) lines.push(...(lines.length > 0 ? [''] : []), paint('bold', who))
    speaker = who
    if (text !== '') lines.push(stripControls(text).trimEnd() + (note && ` ${paint('dim', note)}`))
  }
  for (const message of messages) {
    if (message.internal) continue
    switch (message.role) {
      case 'system':
        lines.push(
          ...formatMessageText(message)
            .split('\n')
            .map((line) => paint('dim', stripControls(line))),
        )
        break
      case 'user': {
        const note = message.data?.reason === 'steering' ? '(during the run)' : ''
        write('You', note, formatMessageText(message))
        break
      }
      case 'assistant':
        write('Assistant', formatNote(message), message.content || message.refusal || '')
        for (const { function: call } of message.tool_calls ?? []) {
          const args = `(${formatArguments(call.arguments, width - 12)})`
          lines.push(`  ${paint('cyan', '→')} ${formatToolName(call.name)}${paint('dim', args)}`)
        }
        break
      case 'tool':
        lines.push(formatResultLine(message, names.get(message.tool_call_id) ?? '', paint, width))
    }
  }
  return lines.map((line) => `${line}\n`).join('')
}

function formatNote({ data, refusal }: AssistantMessage): string {
  if (data?.partial === true) return '(cut off)'
  if (data?.reason === 'shield') return '(a shield)'
  return refusal ? '(refused)' : ''
}

function formatResultLine({ content, data }: ToolMessage, name: string, paint: Paint, width: number): string {
  const status = typeof data?.status === 'string' ? data.status : 'ok'
  const mark = status === 'ok' ? paint('green', '✓') : paint('red', `✗ ${stripControls(status)}`)
  const shown = shorten(getFirstLine(content), Math.max(20, width - name.length - 12))
  return `  ${mark} ${formatToolName(name)}  ${paint('dim', shown)}`
}

/** Tool names by call id, because results contain only the id. */
export function collectToolNames(messages: readonly Message[]): Map<string, string> {
  const calls = messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []) : [],
  )
  return new Map(calls.map(({ id, function: { name } }) => [id, name]))
}
