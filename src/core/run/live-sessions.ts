import { getOrCreate } from '../base/values.js'
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
class LiveSessions {
  readonly #live = new Map<string, LiveSession>()
  readonly #followers = new Map<string, Set<() => void>>()

  get(sessionId: string): LiveSession | undefined {
    return this.#live.get(sessionId)
  }

  add(sessionId: string, session: LiveSession): void {
    this.#live.set(sessionId, session)
    this.notify(sessionId)
  }

  remove(sessionId: string, session: LiveSession): void {
    if (this.#live.get(sessionId) === session) this.#live.delete(sessionId)
    this.notify(sessionId)
  }

  /** Notifies followers that the log has grown, or that the session was added or removed. */
  notify(sessionId: string): void {
    for (const follow of this.#followers.get(sessionId) ?? []) follow()
  }

  follow(sessionId: string, listener: () => void): () => void {
    const followers = getOrCreate(this.#followers, sessionId, () => new Set<() => void>())
    followers.add(listener)
    return () => {
      followers.delete(listener)
      if (followers.size === 0 && this.#followers.get(sessionId) === followers)
        this.#followers.delete(sessionId)
    }
  }
}

const known = new WeakMap<SessionStore, LiveSessions>()

export function getLiveSessions(store: SessionStore): LiveSessions {
  return getOrCreate(known, getInnerStore(store), () => new LiveSessions())
}

/** Makes a run available to other code in this process while this process holds its session. */
export function publishSession(
  log: SessionLog,
  { runId, actor, hub }: { runId: string; actor: Actor<AgentMachine>; hub: EventHub },
): void {
  const { sessionId } = log
  const sessions = getLiveSessions(log.store)
  const session: LiveSession = {
    runId,
    answer: () => findRuntime(actor)?.answer ?? null,
    listen: (hear) => {
      const subscription = hub.events$.subscribe({ next: hear, error: () => undefined })
      return () => subscription.unsubscribe()
    },
  }
  log.setListener({
    onHeld: () => sessions.add(sessionId, session),
    onWritten: () => sessions.notify(sessionId),
    onReleased: () => sessions.remove(sessionId, session),
  })
}
