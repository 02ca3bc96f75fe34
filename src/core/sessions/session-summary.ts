import type { AgentContext } from '../../../machines/agent/context.js'
import { maskMessages } from '../../../machines/agent/uncleared-input.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { AgentDefinition } from './agent-definition.js'
import type { SessionSummary } from './store/store.js'

/** Enough of the first message to recognise a session by. */
const titleLength = 80

/** What the context of the latest run does not know. */
interface SummaryParts {
  name: string | undefined
  runs: number
  definition: AgentDefinition | null
}

export function createSummary(
  context: AgentContext,
  { name, runs, definition }: SummaryParts,
): SessionSummary {
  const { session } = context.usage
  return {
    ...(name !== undefined && { name }),
    title: createTitle(maskMessages(context)),
    state: context.state,
    reason: context.reason,
    runs,
    ...(definition?.name !== undefined && { agent: definition.name }),
    ...(definition?.version !== undefined && { version: definition.version }),
    messages: context.messages.length,
    totalTokens: session.totalTokens,
    cost: session.cost,
  }
}

function createTitle(messages: readonly Message[]): string {
  const first = messages.find((message) => message.role === 'user' && !message.internal)
  if (first?.role !== 'user') return ''
  const { content } = first
  const text =
    typeof content === 'string'
      ? content
      : content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ')
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > titleLength ? `${line.slice(0, titleLength - 1)}…` : line
}
