import { expectArgument, optionsRule } from '../base/values.js'
import { loadOnce, createId } from '../base/platform.js'
import type { AgentParts } from '../live/agent-parts.js'
import { getStore } from '../sessions/session-errors.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { WatchedEvent, WatchOptions } from '../run/watch-session.js'
import type { RunOrigin } from '../run/run-parts.js'
import { Session } from '../sessions/session.js'
import { type AgentInternals, getStoredRuns } from './agent-internals.js'
import type { Agent } from './agent-options.js'

const loadSessionFunctions = loadOnce(() => import('../sessions/log/lazy-session-functions.js'))

/** Only those who change what happened need them. */
const loadEdits = loadOnce(() => import('../run/edit-fork.js'))

/** Only those who rename a session need it. */
const loadRename = loadOnce(() => import('../sessions/rename-session.js'))

/** Only those who speak to a session from elsewhere need it. */
const loadTell = loadOnce(() => import('../run/send-to-stored-session.js'))
/** Only those whose sessions have branches need it. */
const loadBranchRun = loadOnce(() => import('./branch-run.js'))
const loadWatch = loadOnce(() => import('../run/watch-session.js'))

/** Starts to watch when the caller asks for the first event. When the caller leaves the loop, a pending wait ends at once. */
function createWatch(
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
      const result = left.signal.aborted ? doneResult : await told.next()
      return left.signal.aborted ? doneResult : result
    },
    return: () => {
      left.abort()
      void told.return(undefined)
      return Promise.resolve(doneResult)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

const doneResult = { done: true as const, value: undefined }

/** What an agent does with sessions of its store beside running them. */
export function createStoreMethods(
  store: SessionStore | undefined,
  parts: AgentParts,
  made: AgentInternals,
): Pick<
  Agent,
  'replay' | 'readSession' | 'rename' | 'fork' | 'branch' | 'listBranches' | 'selectBranch' | 'send' | 'watch'
> {
  return {
    replay: async (sessionId, options) => {
      expectArgument('agent.replay(id, options)', options, optionsRule)
      const [kept, id] = [getStore(store), checkSessionId(sessionId)]
      const { replayBranch } = await loadSessionFunctions()
      return replayBranch(kept, id, options)
    },
    readSession: async (sessionId) => {
      const [kept, id] = [getStore(store), checkSessionId(sessionId)]
      const { readSession } = await loadSessionFunctions()
      return readSession(kept, id)
    },
    rename: async (sessionId, title) => {
      const [kept, id] = [getStore(store), checkSessionId(sessionId)]
      const { renameSession } = await loadRename()
      return renameSession(kept, id, title)
    },
    fork: async (sessionId, seq, options) => {
      expectArgument('agent.fork(id, seq, options)', options, optionsRule)
      const { edit, askFirst } = options ?? {}
      const [kept, id] = [getStore(store), checkSessionId(sessionId)]
      const { forkSession } = await loadSessionFunctions()
      if (edit === undefined && askFirst !== true) return forkSession(kept, id, seq, parts.clock)
      const { editFork } = await loadEdits()
      return forkSession(kept, id, seq, parts.clock, (folded) => editFork(parts, folded, options ?? {}))
    },
    branch: (sessionId, given) => {
      const stored = getStoredRuns(made)
      const session = new Session(checkSessionId(sessionId))
      const runId = createId()
      const begin = async (): Promise<RunOrigin> => {
        const { beginBranch } = await loadBranchRun()
        return beginBranch(stored, given, { runId, session })
      }
      return stored.run({ runId, session, origin: begin(), signal: given?.signal, inspect: stored.inspect })
    },
    listBranches: async (sessionId) =>
      (await loadSessionFunctions()).listBranches(getStoredRuns(made).store, sessionId),
    selectBranch: async (sessionId, branch) =>
      (await loadSessionFunctions()).selectBranch(getStoredRuns(made), sessionId, branch),
    watch: (sessionId, options) => createWatch(getStore(store), parts, sessionId, options),
    send: async (sessionId, message) => {
      const kept = getStore(store)
      const { sendToStoredSession } = await loadTell()
      return sendToStoredSession({ store: kept, clock: parts.clock, tools: parts.tools }, sessionId, message)
    },
  }
}

/** Only those who delete sessions need them. */
const loadDeletion = loadOnce(() => import('../sessions/delete-session.js'))
const loadDeletions = loadOnce(() => import('../run/delete-sessions.js'))

/** How an agent deletes sessions. `sessions`: those in its memory, where it has no store. */
export function createDeleteMethods(
  store: SessionStore | undefined,
  { clock }: AgentParts,
  sessions: Map<string, Session>,
): Pick<Agent, 'deleteSession' | 'deleteSessions'> {
  return {
    deleteSession: async (sessionId) => {
      const id = checkSessionId(sessionId)
      if (store) {
        const { deleteSession } = await loadDeletion()
        const deleted = await deleteSession(store, clock, id)
        await store.purge?.()
        return deleted > 0
      }
      sessions.get(id)?.acquire('that forgets it')
      return sessions.delete(id)
    },
    deleteSessions: async (owner) => {
      const kept = getStore(store)
      const { deleteSessions } = await loadDeletions()
      return deleteSessions({ store: kept, clock }, owner)
    },
  }
}
