import { truncate } from '../../../guards/lib/cut.js'
import type { Message } from '../../../machines/agent/messages.js'

/** Tools that a marker names; of the others it says how many there are. */
const maxNames = 8
const maxNameLength = 64

/** What stands in place of dropped messages: how many there were, of whom, which tools were called, and when. */
export function formatGapMarker(dropped: readonly Message[]): string {
  const nouns = { user: 'user message', assistant: 'answer', tool: 'tool result', system: 'system message' }
  const whose = Object.entries(nouns).flatMap(([role, noun]) => {
    const count = dropped.filter((message) => message.role === role).length
    return count === 0 ? [] : [formatCount(count, noun)]
  })
  const tools = formatToolCounts(dropped)
  const said = [
    `${formatCount(dropped.length, 'message')} of this conversation left out here to fit the context window`,
    whose.join(', '),
    ...(tools === '' ? [] : [`tools called: ${tools}`]),
    formatTimeSpan(dropped),
  ]
  return `[${said.join('; ')}.]`
}

function formatToolCounts(dropped: readonly Message[]): string {
  const times = new Map<string, number>()
  for (const message of dropped) {
    const calls = (message.role === 'assistant' && message.tool_calls) || []
    for (const { function: called } of calls) times.set(called.name, (times.get(called.name) ?? 0) + 1)
  }
  const named = [...times].slice(0, maxNames).map(([name, n]) => `${truncate(name, maxNameLength)} ×${n}`)
  const others = times.size - maxNames
  return [...named, ...(others > 0 ? [formatCount(others, 'other tool')] : [])].join(', ')
}

function formatTimeSpan(dropped: readonly Message[]): string {
  const [first, last] = [dropped[0], dropped.at(-1)].map((message) => formatTime(message?.createdAt ?? 0))
  return first === last ? `at ${first}` : `from ${first} to ${last}`
}

/** A time that is no valid date (in a session from elsewhere) is shown as it is. */
function formatTime(createdAt: number): string {
  const date = new Date(createdAt)
  return Number.isNaN(date.getTime()) ? String(createdAt) : date.toISOString()
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
