import type { Message } from '../../../machines/agent/messages.js'
import { formatTimestamp } from './format-time.js'
import { formatMessageText } from '../../core/format/message-text.js'
import { collectToolNames } from './format-transcript.js'
import { stripControls } from '../../core/format/format-words.js'

export interface MarkdownHead {
  id: string
  name?: string | undefined
}

/** A conversation as Markdown: texts unchanged, calls and complete results as code blocks. */
export function formatMarkdown({ id, name }: MarkdownHead, messages: readonly Message[]): string {
  const names = collectToolNames(messages)
  const blocks = messages.flatMap((message) => (message.internal ? [] : formatMessage(message, names)))
  return [`# ${toInline(name ?? `Session ${id}`)}`, ...blocks, ''].join('\n\n').trimEnd() + '\n'
}

function formatMessage(message: Message, names: ReadonlyMap<string, string>): string[] {
  const when = formatTimestamp(message.createdAt)
  switch (message.role) {
    case 'system':
      return [`> ${toInline(formatMessageText(message))}`]
    case 'user':
      return [`## You · ${when}`, stripControls(formatMessageText(message))]
    case 'assistant': {
      const text = message.content || message.refusal || ''
      const calls = (message.tool_calls ?? []).flatMap(({ function: call }) => [
        `Calls \`${toInline(call.name)}\`:`,
        toFencedBlock(call.arguments),
      ])
      return [`## Assistant · ${when}`, ...(text === '' ? [] : [stripControls(text)]), ...calls]
    }
    default: {
      const status = typeof message.data?.status === 'string' ? ` (${message.data.status})` : ''
      const name = names.get(message.tool_call_id) ?? message.tool_call_id
      return [`Result of \`${toInline(name)}\`${toInline(status)}:`, toFencedBlock(message.content)]
    }
  }
}

/** One line without backticks, which would end a code span. */
function toInline(text: string): string {
  return stripControls(text).replaceAll(/\s+/g, ' ').replaceAll('`', "'")
}

/** A code block with a fence that is longer than any in the text. */
function toFencedBlock(text: string): string {
  const code = stripControls(text)
  const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${code}\n${fence}`
}
