import { lazily } from '../base/load.js'
import type { AgentParts } from '../live/agent-parts.js'
import { storeOrThrow } from '../sessions/refusals.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { WatchedEvent, WatchOptions } from '../run/watch-session.js'
import type { Agent } from './agent-options.js'

const loadSessions = lazily(() => import('../sessions/log/index.js'))

/** Only those who change what happened need them. */
const loadEdits = lazily(() => import('../run/edit-fork.js'))

/** Only those who speak to a session from elsewhere need it. */
const loadTell = lazily(() => import('../run/tell-stored-session.js'))
const loadWatch = lazily(() => import('../run/watch-session.js'))

/** A watch that begins when its first event is asked for; who leaves it is left alone at once, whatever it waits for. */
function watched(
  store: SessionStore,
  { clock }: AgentParts,
  sessionId: string,
  options?: WatchOptions,
): AsyncIterableIterator<WatchedEvent, undefined> {
  const left = new AbortController()
  async function* events(): AsyncGenerator<WatchedEvent, undefined> {
    const { watchSession } = await loadWatch()
    yield* watchSession({ store, clock }, sessionId, options, left.signal)
    return undefined
  }
  const told = events()
  return {
    next: async () => {
      const result = left.signal.aborted ? over : await told.next()
      return left.signal.aborted ? over : result
    },
    return: () => {
      left.abort()
      void told.return(undefined)
      return Promise.resolve(over)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

const over = { done: true as const, value: undefined }

/** What an agent does with sessions of its store without running them. */
export function inStore(
  store: SessionStore | undefined,
  parts: AgentParts,
): Pick<Agent, 'replay' | 'readSession' | 'fork' | 'tell' | 'watch'> {
  return {
    replay: async (sessionId, { to } = {}) => {
      const [kept, id] = [storeOrThrow(store), checkSessionId(sessionId)]
      const { replay } = await loadSessions()
      return replay(kept, id, to)
    },
    readSession: async (sessionId) => {
      const [kept, id] = [storeOrThrow(store), checkSessionId(sessionId)]
      const { readSession } = await loadSessions()
      return readSession(kept, id)
    },
    fork: async (sessionId, seq, { edit, context } = {}) => {
      const [kept, id] = [storeOrThrow(store), checkSessionId(sessionId)]
      const { fork } = await loadSessions()
      if (edit === undefined) return fork(kept, id, seq, parts.clock)
      const { editFork } = await loadEdits()
      return fork(kept, id, seq, parts.clock, (standing) => editFork(parts, standing, edit, context))
    },
    watch: (sessionId, options) => watched(storeOrThrow(store), parts, sessionId, options),
    tell: async (sessionId, message) => {
      const kept = storeOrThrow(store)
      const { tellStoredSession } = await loadTell()
      return tellStoredSession({ store: kept, clock: parts.clock, tools: parts.tools }, sessionId, message)
    },
  }
}
