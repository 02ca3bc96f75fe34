import { expectArgument, optionsRule } from '../base/values.js'
import { deleteSessions } from '../run/delete-sessions.js'
import { editFork } from '../run/edit-fork.js'
import { endAbandonedChild } from '../run/end-stored-run.js'
import { sendToStoredSession } from '../run/send-to-stored-session.js'
import { type WatchedEvent, type WatchOptions, watchSession } from '../run/watch-session.js'
import { deleteSession, renameSession } from '../sessions/delete-session.js'
import { forkSession } from '../sessions/fork-session.js'
import { readSession, readSessionAt } from '../sessions/replay-session.js'
import { listBranches, replayBranch, selectBranch } from '../sessions/select-branch.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import { type AgentInternals, getStoredRuns } from './agent-internals.js'
import type { Agent } from './agent-options.js'
import { beginBranch, beginQueuedRun } from './branch-run.js'
import { beginRun, resumeRun } from './stored-runs.js'

export { beginBranch, beginQueuedRun, beginRun, endAbandonedChild, readSessionAt, resumeRun }

type StoreMethods = Pick<
  Agent,
  'replay' | 'readSession' | 'rename' | 'fork' | 'listBranches' | 'selectBranch' | 'send' | 'deleteSessions'
> & {
  /** False if the store does not have the session. */
  deleteSession(sessionId: string): Promise<boolean>
  watch(
    sessionId: string,
    options: WatchOptions | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<WatchedEvent, void>
}

/**
 * The store methods of an agent. This module is loaded at first use, so that pages and programs without a store do not
 * load it.
 */
export function createStoreMethods(internals: AgentInternals): StoreMethods {
  const stored = getStoredRuns(internals)
  const { store, parts } = stored
  const { clock, tools } = parts
  return {
    replay: async (sessionId, options) => {
      expectArgument('agent.replay(id, options)', options, optionsRule)
      return replayBranch(store, checkSessionId(sessionId), options)
    },
    readSession: async (sessionId) => readSession(store, checkSessionId(sessionId)),
    rename: async (sessionId, title) => renameSession(store, checkSessionId(sessionId), title),
    fork: async (sessionId, seq, options) => {
      expectArgument('agent.fork(id, seq, options)', options, optionsRule)
      const { edit, askFirst } = options ?? {}
      const id = checkSessionId(sessionId)
      if (edit === undefined && askFirst !== true) return forkSession(store, id, seq, clock)
      return forkSession(store, id, seq, clock, (folded) => editFork(parts, folded, options ?? {}))
    },
    listBranches: async (sessionId) => listBranches(store, sessionId),
    selectBranch: async (sessionId, branch) => selectBranch(stored, sessionId, branch),
    send: async (sessionId, message) => sendToStoredSession({ store, clock, tools }, sessionId, message),
    watch: (sessionId, options, signal) => watchSession({ store, clock }, sessionId, options, signal),
    deleteSession: async (sessionId) => {
      const deleted = await deleteSession(store, clock, sessionId)
      await store.purge?.()
      return deleted > 0
    },
    deleteSessions: async (owner) => deleteSessions({ store, clock }, owner),
  }
}
