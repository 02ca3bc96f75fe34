import { expectArgument, optionsRule } from '../../core/base/values.js'
import { UsageError } from '../../core/base/errors.js'
import { expectKnownOptions } from '../../core/config/other-names.js'
import { agentsRule, getCommonStore } from '../../core/drive/common-store.js'
import type { Agents } from '../../core/drive/define-agents.js'
import { runSession } from '../../core/drive/drive.js'
import {
  addHostValues,
  checkHostFunctions,
  type HostFunctions,
  type HostOptionsFor,
} from '../../core/drive/host-functions.js'
import { type DueAlarm, type SleepLeft, wakeSleepers } from '../../core/drive/wake-sleepers.js'
import { StoreError } from '../../core/sessions/store/store-error.js'

type WakeOptions<Context = unknown> = Pick<HostFunctions<Context>, 'context'>

/** Another request to the object works on the session. */
const busyMs = 1000
/** What failed may succeed later. */
const againMs = 60_000

/**
 * Runs the sessions whose time has come to their next rest: what the object's `alarm` does. A session that fails is tried again a minute
 * later, and one that another request works on a second later; the others go on.
 *
 * @example
 * const agents = defineAgents({ clerk: createAgent({ model, store: memoryStore() }) }) // with durableObjectStore in an object
 * await wakeSessions(agents)
 * @throws {ConfigError} `invalid_config` where the agents have no common store
 * @throws {UsageError} `invalid_option`
 * @throws {StoreError} what `runSession` throws, once all sessions have been tried: the first, where several failed
 */
export function wakeSessions<Context = unknown>(
  agents: Agents<Context>,
  ...options: HostOptionsFor<WakeOptions<NoInfer<Context>>, NoInfer<Context>>
): Promise<void>
export async function wakeSessions(agents: Agents, options: WakeOptions = {}): Promise<void> {
  expectArgument('wakeSessions(agents)', agents, agentsRule)
  expectArgument('wakeSessions(agents, options)', options, optionsRule)
  expectKnownOptions('wakeSessions', options, ['context'])
  checkHostFunctions('wakeSessions', options)
  const store = getCommonStore(agents)
  const failures: unknown[] = []
  const wake = async ({ session }: DueAlarm): Promise<SleepLeft> => {
    try {
      const rest = await runSession(agents, await addHostValues(options, { session }, false))
      // By the clock of the run, which is behind the alarm by the time that its last event took to be written.
      return rest.wakeMs ?? null
    } catch (error) {
      if (error instanceof StoreError && error.code === 'session_busy') return busyMs
      // The session was deleted.
      if (error instanceof UsageError && error.code === 'not_begun') return null
      failures.push(error)
      // A log that cannot be read does not get better.
      return error instanceof StoreError && !error.retryable ? null : againMs
    }
  }
  let hasWoken = true
  // Again for those whose time has come meanwhile.
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  while (hasWoken) hasWoken = await wakeSleepers(agents, store, wake)
  // The alarm that has rung is set to what comes next.
  await store.timers?.set([])
  if (failures.length > 0) throw failures[0]
}
