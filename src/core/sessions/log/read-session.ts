import { maskMessages } from '../../../../machines/agent/mask-uncleared.js'
import { parseSession } from '../parse-session.js'
import { Session } from '../session.js'
import type { SessionStore } from '../store/store.js'
import { readSessionAt } from '../replay-session.js'

/**
 * A session of a store as `restoreSession` gives it, ready to be used elsewhere: calls that wait for an answer are closed.
 * Nothing is written.
 * @throws {StoreError} `unknown_session`, `corrupt_log`, …
 */
export async function readSession(store: SessionStore, id: string): Promise<Session> {
  const { name, state, run } = await readSessionAt(store, id)
  const { messages: kept, usage, ...metadata } = state
  const messages = run ? maskMessages(run.context) : kept
  return parseSession(Object.assign(new Session(id, name), { messages, usage, metadata }))
}
