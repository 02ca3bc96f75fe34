import type { Message } from '../../machines/agent/messages.js'
import type { AGUIMessage } from './protocol.js'

/**
 * The ids that a page has given to its user's messages: of the last ones in both, as long as they say the same. The
 * transcript is the truth; of the page, nothing but its names are read.
 */
export function matchClientIds(
  history: readonly Message[],
  page: readonly { id: string; role: string; content?: unknown }[],
): (message: Message) => string {
  const names = new Map<string, string>()
  const said = history.filter(({ role, internal }) => role === 'user' && !internal).toReversed()
  const shown = page.filter(({ role }) => role === 'user').toReversed()
  let at = 0
  for (const { id, content } of shown) {
    const found = said.findIndex((message, i) => i >= at && hasSameText(message, content))
    const message = said[found]
    if (!message) continue
    names.set(message.id, id)
    at = found + 1
  }
  return ({ id }) => names.get(id) ?? id
}

/** What shields have looked at, or are yet to look at, need not say what the page has said. */
function hasSameText({ content, data }: Message, shown: unknown): boolean {
  return data?.['screened'] === true || toText(content) === toText(shown)
}

/** The texts of a content, whatever parts it has besides: those two formats name differently. */
function toText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) =>
      typeof part === 'object' && part !== null && 'text' in part ? String(part.text) : '',
    )
    .filter((text) => text !== '')
    .join('\n')
}

/** Whether a page shows these messages: their names, of those that come from the transcript. */
export function hasAllMessages(
  messages: readonly AGUIMessage[],
  shown: readonly { id: string; role: string; subagentRunId?: string }[],
): boolean {
  const transcriptIds = messages.filter(isTranscriptMessage).map(({ id }) => id)
  const shownIds = shown.filter(isTranscriptMessage).map(({ id }) => id)
  return (
    transcriptIds.length === shownIds.length &&
    new Set([...transcriptIds, ...shownIds]).size === transcriptIds.length
  )
}

/** Pages keep thoughts and activities to themselves, and what sub-agents said is in no transcript of the run's. */
function isTranscriptMessage({ role, subagentRunId }: { role: string; subagentRunId?: string }): boolean {
  return subagentRunId === undefined && role !== 'reasoning' && role !== 'activity'
}
