import { type ChatRequest, textOf, type WireMessage } from './request.js'
import type { Turn } from './turn.js'

type Expectations = NonNullable<Turn['expect']>

/** The first expectation that a request does not meet, as a sentence, or null. */
export function unmetExpectation(expect: Expectations, { messages, tools }: ChatRequest): string | null {
  const { lastUserIncludes, systemIncludes, toolResultsFor, toolResultsInclude } = expect
  const user = messages.findLast(({ role }) => role === 'user')
  if (lastUserIncludes !== undefined && !(user && textOf(user).includes(lastUserIncludes))) {
    return `expected the last user message to include ${quote(lastUserIncludes)}, got ${quote(user && textOf(user))}`
  }
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer').map(textOf)
  if (systemIncludes !== undefined && !system.some((text) => text.includes(systemIncludes))) {
    return `expected the system message to include ${quote(systemIncludes)}, got ${quote(system.join('\n'))}`
  }
  const results = trailingResults(messages)
  if (toolResultsFor && !answers(results, toolResultsFor)) {
    const got = results.map(({ id, name }) => `${name} (${id})`)
    return `expected tool results for ${list(toolResultsFor)}, got ${list(got)}`
  }
  const missing = toolResultsInclude?.find((part) => !results.some(({ text }) => text.includes(part)))
  if (missing !== undefined) {
    return `expected a tool result to include ${quote(missing)}, got ${list(results.map(({ text }) => quote(text)))}`
  }
  const offered = (tools ?? []).map((tool) => tool.function?.name)
  const unoffered = expect.tools?.find((name) => !offered.includes(name))
  if (unoffered !== undefined) return `expected the tool ${unoffered} on offer, got ${list(offered)}`
  return null
}

interface Result {
  id: string
  name: string
  text: string
}

/** The tool results that end the request. */
function trailingResults(messages: readonly WireMessage[]): Result[] {
  const start = messages.findLastIndex(({ role }) => role !== 'tool')
  const calls = messages[start]?.tool_calls ?? []
  return messages.slice(start + 1).map((message) => {
    const id = message.tool_call_id ?? ''
    const name = calls.find((call) => call.id === id)?.function.name ?? 'unknown'
    return { id, name, text: textOf(message) }
  })
}

function answers(results: readonly Result[], expected: readonly string[]): boolean {
  if (results.length !== expected.length) return false
  return results.every(({ id, name }, i) => expected[i] === id || expected[i] === name)
}

function quote(text: string | undefined): string {
  if (text === undefined) return 'none'
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)
}

function list(items: readonly (string | undefined)[]): string {
  return items.length === 0 ? 'none' : items.join(', ')
}
