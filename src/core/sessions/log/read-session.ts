import { maskMessages } from '../../../../machines/agent/uncleared-input.js'
import { sessionFrom } from '../session-from.js'
import { Session } from '../session.js'
import type { SessionStore } from '../store/store.js'
import { standingAt } from '../replay.js'

/**
 * A session of a store as `restoreSession` gives it, fit to be taken elsewhere: calls that wait for somebody are closed.
 * Nothing is written.
 * @throws {StoreError} `unknown_session`, `corrupt_log`, …
 */
export async function readSession(store: SessionStore, id: string): Promise<Session> {
  const { name, state, run } = await standingAt(store, id)
  const { messages: kept, usage, ...metadata } = state
  const messages = run ? maskMessages(run.context) : kept
  return sessionFrom(Object.assign(new Session(id, name), { messages, usage, metadata }))
}
