import { joinTextParts } from '../core/base/text.js'
import type { Message } from '../../machines/agent/messages.js'
import type { AGUIMessage } from './protocol.js'

/**
 * Matches user messages of the transcript with those of the page, from the last one back, and returns the page's ids. Only
 * the ids are taken from the page.
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

/** A screened message may have another text than the page sent. */
function hasSameText({ content, data }: Message, shown: unknown): boolean {
  return data?.['screened'] === true || joinTextParts(content) === joinTextParts(shown)
}

/** Whether the page shows exactly these messages, compared by the ids of transcript messages. */
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

/** Reasoning, activities and messages of sub-agents are not part of the run's transcript. */
function isTranscriptMessage({ role, subagentRunId }: { role: string; subagentRunId?: string }): boolean {
  return subagentRunId === undefined && role !== 'reasoning' && role !== 'activity'
}
