import { type ChatRequest, getMessageText, type WireMessage } from './chat-request.js'
import type { Turn } from './turn-schema.js'

type Expectations = NonNullable<Turn['expect']>

/** The first expectation that a request does not meet, as a sentence, or null. */
export function findUnmetExpectation(expect: Expectations, { messages, tools }: ChatRequest): string | null {
  const { lastUserIncludes, systemIncludes, toolResultsFor, toolResultsInclude } = expect
  const user = messages.findLast(({ role }) => role === 'user')
  if (lastUserIncludes !== undefined && !(user && getMessageText(user).includes(lastUserIncludes))) {
    return `expected the last user message to include ${quoteText(lastUserIncludes)}, got ${quoteText(user && getMessageText(user))}`
  }
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer').map(getMessageText)
  if (systemIncludes !== undefined && !system.some((text) => text.includes(systemIncludes))) {
    return `expected the system message to include ${quoteText(systemIncludes)}, got ${quoteText(system.join('\n'))}`
  }
  const results = listTrailingResults(messages)
  if (toolResultsFor && !hasResults(results, toolResultsFor)) {
    const got = results.map(({ id, name }) => `${name} (${id})`)
    return `expected tool results for ${formatList(toolResultsFor)}, got ${formatList(got)}`
  }
  const missing = toolResultsInclude?.find((part) => !results.some(({ text }) => text.includes(part)))
  if (missing !== undefined) {
    return `expected a tool result to include ${quoteText(missing)}, got ${formatList(results.map(({ text }) => quoteText(text)))}`
  }
  const offered = (tools ?? []).map((tool) => tool.function?.name)
  const unoffered = expect.tools?.find((name) => !offered.includes(name))
  if (unoffered !== undefined) return `expected the tool ${unoffered} on offer, got ${formatList(offered)}`
  return null
}

interface Result {
  id: string
  name: string
  text: string
}

/** The tool results that end the request. */
function listTrailingResults(messages: readonly WireMessage[]): Result[] {
  const start = messages.findLastIndex(({ role }) => role !== 'tool')
  const calls = messages[start]?.tool_calls ?? []
  return messages.slice(start + 1).map((message) => {
    const id = message.tool_call_id ?? ''
    const name = calls.find((call) => call.id === id)?.function.name ?? 'unknown'
    return { id, name, text: getMessageText(message) }
  })
}

function hasResults(results: readonly Result[], expected: readonly string[]): boolean {
  if (results.length !== expected.length) return false
  return results.every(({ id, name }, i) => expected[i] === id || expected[i] === name)
}

function quoteText(text: string | undefined): string {
  if (text === undefined) return 'none'
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)
}

function formatList(items: readonly (string | undefined)[]): string {
  return items.length === 0 ? 'none' : items.join(', ')
}
