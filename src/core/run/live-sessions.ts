import { getOrCreate, memoize } from '../base/values.js'
import type { Actor } from 'xstate'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { ShownAnswer } from '../live/answer-stream.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import { getInnerStore } from '../sessions/store/checked-store.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { EventHub } from './event-hub.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { findRuntime } from '../live/runtime.js'

export interface LiveSession {
  readonly runId: string
  answer(): ShownAnswer | null
  listen(hear: (event: AgentEvent) => void): () => void
}

/** The active sessions of one store in this process, and the followers of any sessions. */
const openLiveSessions = memoize((_store: SessionStore) => ({
  live: new Map<string, LiveSession>(),
  followers: new Map<string, Set<() => void>>(),
}))

export function findLiveSession(store: SessionStore, sessionId: string): LiveSession | undefined {
  return openLiveSessions(getInnerStore(store)).live.get(sessionId)
}

/** Calls the listener when the log has grown, and when the session becomes active or inactive in this process. */
export function followSession(store: SessionStore, sessionId: string, listener: () => void): () => void {
  const { followers } = openLiveSessions(getInnerStore(store))
  const listeners = getOrCreate(followers, sessionId, () => new Set<() => void>())
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0 && followers.get(sessionId) === listeners) followers.delete(sessionId)
  }
}

/** Makes a run available to other code in this process while this process holds its session. */
export function publishSession(
  log: SessionLog,
  { runId, actor, hub }: { runId: string; actor: Actor<AgentMachine>; hub: EventHub },
): void {
  const { sessionId } = log
  const { live, followers } = openLiveSessions(getInnerStore(log.store))
  const session: LiveSession = {
    runId,
    answer: () => findRuntime(actor)?.answer ?? null,
    listen: (hear) => {
      const subscription = hub.events$.subscribe({ next: hear, error: () => undefined })
      return () => subscription.unsubscribe()
    },
  }
  log.setListener((change) => {
    if (change === 'held') live.set(sessionId, session)
    else if (change === 'released' && live.get(sessionId) === session) live.delete(sessionId)
    for (const follow of followers.get(sessionId) ?? []) follow()
  })
}
