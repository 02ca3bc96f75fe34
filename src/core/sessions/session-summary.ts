import { truncate } from '../../../guards/lib/words.js'
import type { AgentContext, SessionState } from '../../../machines/agent/context.js'
import { maskMessages } from '../../../machines/agent/mask-uncleared.js'
import { findDueTime } from '../../../machines/agent/due-times.js'
import type { Message } from '../../../machines/agent/messages.js'
import { formatMessageText } from '../base/text.js'
import { type SessionFacts, toIdentityFields } from './log/create-records.js'
import type { ListedSession, SessionStore, SessionSummary } from './store/store.js'
import { StoreError } from './store/store-error.js'
import type { FoldedSession } from './fold-session.js'
import { readSessionAt } from './replay-session.js'

/** Long enough to recognize a session. */
const titleLength = 80

export function createSummary(context: AgentContext, facts: SessionFacts): SessionSummary {
  const { definition } = facts
  // An interactive run is woken by its own program.
  const wakeAt = findDueTime(context)
  return {
    ...createFirstSummary({ messages: maskMessages(context), usage: context.usage.session }, facts),
    state: context.state,
    reason: context.reason,
    ...(wakeAt !== null && !context.config.interactive && { wakeAt }),
    ...(definition?.name !== undefined && { agent: definition.name }),
    ...(definition?.version !== undefined && { version: definition.version }),
  }
}

export function createFirstSummary(
  { messages, usage }: Pick<SessionState, 'messages' | 'usage'>,
  { runs, ...identity }: SessionFacts,
): SessionSummary {
  return {
    ...toIdentityFields(identity),
    title: identity.name ?? createTitle(messages),
    state: null,
    reason: null,
    runs,
    messages: messages.length,
    totalTokens: usage.totalTokens,
    cost: usage.cost,
  }
}

/** The session, with a summary from its log if the stored summary is damaged. It stays null if the log is damaged, too. */
export async function restoreSummary(
  store: Pick<SessionStore, 'read'>,
  session: ListedSession,
): Promise<ListedSession> {
  if (session.summary !== null) return session
  try {
    const folded = await readSessionAt(store, session.id)
    const { run, state } = folded
    return {
      ...session,
      summary: run ? createSummary(run.context, folded) : createFirstSummary(state, folded),
    }
  } catch (error) {
    if (error instanceof StoreError && error.code !== 'store_unavailable') return session
    throw error
  }
}

function createTitle(messages: readonly Message[]): string {
  const first = messages.find((message) => message.role === 'user' && !message.internal)
  if (first === undefined) return ''
  return truncate(formatMessageText(first).replaceAll(/\s+/g, ' ').trim(), titleLength)
}

/** The title that was set, otherwise the session's name, otherwise the start of its first message. */
export function getListedTitle(
  summary: Pick<SessionSummary, 'title'> | null,
  { name, run, state }: Pick<FoldedSession, 'name' | 'run' | 'state'>,
): string {
  return summary?.title ?? name ?? createTitle(run ? maskMessages(run.context) : state.messages)
}
