import type { Message } from '../../../machines/agent/messages.js'
import { timestamp } from './ago.js'
import { messageText } from '../../core/format/message-text.js'
import { toolNames } from './transcript.js'
import { printable } from '../../core/format/words.js'

export interface MarkdownHead {
  id: string
  name?: string | undefined
}

/** A conversation as Markdown: texts as they were written, calls and whole results as blocks of code. */
export function markdown({ id, name }: MarkdownHead, messages: readonly Message[]): string {
  const names = toolNames(messages)
  const blocks = messages.flatMap((message) => (message.internal ? [] : blocksOf(message, names)))
  return [`# ${inline(name ?? `Session ${id}`)}`, ...blocks, ''].join('\n\n').trimEnd() + '\n'
}

function blocksOf(message: Message, names: ReadonlyMap<string, string>): string[] {
  const when = timestamp(message.createdAt)
  switch (message.role) {
    case 'system':
      return [`> ${inline(messageText(message))}`]
    case 'user':
      return [`## You · ${when}`, printable(messageText(message))]
    case 'assistant': {
      const text = message.content || message.refusal || ''
      const calls = (message.tool_calls ?? []).flatMap(({ function: call }) => [
        `Calls \`${inline(call.name)}\`:`,
        fenced(call.arguments),
      ])
      return [`## Assistant · ${when}`, ...(text === '' ? [] : [printable(text)]), ...calls]
    }
    default: {
      const status = typeof message.data?.status === 'string' ? ` (${message.data.status})` : ''
      const name = names.get(message.tool_call_id) ?? message.tool_call_id
      return [`Result of \`${inline(name)}\`${inline(status)}:`, fenced(message.content)]
    }
  }
}

/** On one line, and without a backtick that would end a span of code. */
function inline(text: string): string {
  return printable(text).replaceAll(/\s+/g, ' ').replaceAll('`', "'")
}

/** A block of code with a fence that is longer than any in it. */
function fenced(text: string): string {
  const code = printable(text)
  const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${code}\n${fence}`
}
