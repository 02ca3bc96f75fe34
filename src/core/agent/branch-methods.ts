import { UsageError } from '../base/errors.js'
import { createId } from '../base/create-id.js'
import { loadOnce } from '../base/lazy-load.js'
import { overrideLimits } from '../config/resolve-config.js'
import { checkInspector } from '../run/safe-inspector.js'
import type { RunOrigin } from '../run/run-parts.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import { Session } from '../sessions/session.js'
import type { Agent, BranchOptions } from './agent-options.js'
import { type AgentInternals, getStoredRuns } from './agent-internals.js'
import { checkRunOptions } from './run-options.js'

/** Only those whose sessions have branches need them. */
const loadBranchRun = loadOnce(() => import('./branch-run.js'))
const loadBranches = loadOnce(() => import('../sessions/select-branch.js'))

/** What an agent does with the branches of sessions in its store. */
export function createBranchMethods(
  made: AgentInternals,
): Pick<Agent, 'branch' | 'listBranches' | 'selectBranch'> {
  return {
    branch: (sessionId: string, given: BranchOptions) => {
      const { from, edit, key, ...rest } = checkBranchOptions(given)
      const { signal, context, tags, limits, attachments, inspect } = checkRunOptions(rest, 'branch')
      const stored = getStoredRuns(made)
      const { parts } = made
      parts.model.check?.()
      const inspector = checkInspector(inspect ?? stored.inspect)
      const session = new Session(checkSessionId(sessionId))
      const runId = createId()
      const config = limits === undefined ? parts.config : overrideLimits(parts.config, limits)
      const begin = async (): Promise<RunOrigin> => {
        const { beginBranch } = await loadBranchRun()
        return beginBranch(
          stored,
          { from, edit, attachments, key },
          { runId, session, config, context, tags },
        )
      }
      return stored.run({ runId, session, origin: begin(), signal, inspect: inspector })
    },
    listBranches: async (sessionId) => {
      const [{ store }, id] = [getStoredRuns(made), checkSessionId(sessionId)]
      const { listBranches } = await loadBranches()
      return listBranches(store, id)
    },
    selectBranch: async (sessionId, branch) => {
      const [{ store, parts }, id] = [getStoredRuns(made), checkSessionId(sessionId)]
      const { selectBranch } = await loadBranches()
      await selectBranch({ store, clock: parts.clock }, id, branch)
    },
  }
}

/** @throws {UsageError} `invalid_option` */
function checkBranchOptions(given: BranchOptions): BranchOptions {
  const { from, key } = given ?? {}
  if (typeof from !== 'string' || from === '')
    throw optionError(
      "branch() needs { from }: the id of the message that is answered anew or edited, such as 'm3'.",
      'from',
    )
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 500))
    throw optionError('key must be a text of 1 to 500 characters.', 'key')
  for (const name of ['session', 'journal'])
    if (Object.hasOwn(given, name)) throw optionError(`branch() has no option '${name}'.`, name)
  return given
}

function optionError(message: string, subject: string): UsageError {
  return new UsageError('invalid_option', message, subject)
}
