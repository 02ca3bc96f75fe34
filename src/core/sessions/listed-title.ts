import { maskMessages } from '../../../machines/agent/mask-uncleared.js'
import type { FoldedSession } from './fold-session.js'
import { createTitle } from './session-summary.js'
import type { SessionSummary } from './store/store.js'

/** The title of a session in a list: the one it was given, its name, or the beginning of its first message. */
export function getListedTitle(
  summary: Pick<SessionSummary, 'title'> | null,
  { name, run, state }: Pick<FoldedSession, 'name' | 'run' | 'state'>,
): string {
  return summary?.title ?? name ?? createTitle(run ? maskMessages(run.context) : state.messages)
}
