import { type AgentState, type Reason, isWorkState } from '../../machines/agent/run-result.js'
import { readSessionAt } from '../core/sessions/replay-session.js'
import { createSummary } from '../core/sessions/session-summary.js'
import { StoreError, type StoreErrorCode } from '../core/sessions/store/store-error.js'
import type { ListedSession, SessionStore, SessionSummary } from '../core/sessions/store/store.js'

/**
 * - `interrupted`: its run was at work, and no process holds it
 * - `new`: no run has started · `corrupt_log` and other codes: why it cannot be read
 */
export type ListedState = AgentState | 'interrupted' | 'new' | StoreErrorCode

/** A session in a list, with its current state. */
export interface SessionInList extends Omit<SessionSummary, 'state'> {
  id: string
  state: ListedState
  reason: Reason | null
  createdAt: number
  updatedAt: number
  head: number
  holder: string | null
}

/** Reads the current state from the log: the summary in the store is as old as the last rest of a run. */
export async function readSessionRow(
  store: SessionStore,
  entry: ListedSession,
): Promise<SessionInList | null> {
  const { summary, ...place } = entry
  try {
    const { run, name, tags, parent, runs, state, definition } = await readSessionAt(store, entry.id)
    if (run !== null) {
      const now = createSummary(run.context, { name, tags, parent, runs, definition })
      const title = summary?.title ?? now.title
      return { ...now, ...place, title, state: toListedState(now.state, entry.holder) }
    }
    const [messages, { totalTokens, cost }] = [state.messages.length, state.usage]
    const named = { ...(name !== undefined && { name }), title: summary?.title ?? name ?? '' }
    return { ...emptySummary, ...place, ...named, messages, totalTokens, cost, state: 'new' }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // The session was deleted in the meantime.
    if (error.code === 'unknown_session') return null
    return { ...(summary ?? emptySummary), ...place, state: error.code }
  }
}

/** The state of a run, given its own state and the holder of its session. */
export function toListedState(state: AgentState | null, holder: string | null): AgentState | 'interrupted' {
  const isAtWork = state === null || isWorkState(state)
  return isAtWork && holder === null ? 'interrupted' : (state ?? 'RUNNING')
}

const emptySummary: Omit<SessionSummary, 'state'> = {
  title: '',
  reason: null,
  runs: 0,
  messages: 0,
  totalTokens: 0,
  cost: null,
}
