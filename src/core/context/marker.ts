import { cut } from '../../../guards/lib/cut.js'
import type { Message } from '../../../machines/agent/messages.js'

/** Tools that a marker names; of the others it says how many there are. */
const maxNames = 8
const maxNameLength = 64

/** What stands in place of dropped messages: how many there were, of whom, which tools were called, and when. */
export function marker(dropped: readonly Message[]): string {
  const count = (role: Message['role']): number => dropped.filter((message) => message.role === role).length
  const whose = [
    plural(count('user'), 'user message'),
    plural(count('assistant'), 'answer'),
    plural(count('tool'), 'tool result'),
    plural(count('system'), 'system message'),
  ].filter(Boolean)
  const tools = toolsOf(dropped)
  const said = [
    `${plural(dropped.length, 'message')} of this conversation left out here to fit the context window`,
    whose.join(', '),
    ...(tools === '' ? [] : [`tools called: ${tools}`]),
    spanOf(dropped),
  ]
  return `[${said.join('; ')}.]`
}

function toolsOf(dropped: readonly Message[]): string {
  const times = new Map<string, number>()
  for (const message of dropped) {
    const calls = (message.role === 'assistant' && message.tool_calls) || []
    for (const { function: called } of calls) times.set(called.name, (times.get(called.name) ?? 0) + 1)
  }
  const named = [...times].slice(0, maxNames).map(([name, n]) => `${cut(name, maxNameLength)} ×${n}`)
  const others = plural(Math.max(0, times.size - maxNames), 'other tool')
  return [...named, others].filter(Boolean).join(', ')
}

function spanOf(dropped: readonly Message[]): string {
  const [first, last] = [dropped[0], dropped.at(-1)].map((message) => timeOf(message?.createdAt ?? 0))
  return first === last ? `at ${first}` : `from ${first} to ${last}`
}

/** A time that no calendar has (from a session of somebody else's making) is shown as it is. */
function timeOf(createdAt: number): string {
  const date = new Date(createdAt)
  return Number.isNaN(date.getTime()) ? String(createdAt) : date.toISOString()
}

function plural(count: number, noun: string): string {
  if (count === 0) return ''
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`
}
