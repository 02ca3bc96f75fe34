import { expectArgument } from '../../core/base/values.js'
import { UsageError } from '../../core/base/errors.js'
import { checkOptions } from '../../core/config/check-options.js'
import { type Agents, agentsRule, getCommonStore } from '../../core/drive/define-agents.js'
import { runSession } from '../../core/drive/drive.js'
import {
  addHostValues,
  checkHostFunctions,
  type HostFunctions,
  type HostOptionsFor,
} from '../../core/drive/host-functions.js'
import { type DueAlarm, type SleepLeft, wakeSleepers } from '../../core/drive/wake-sleepers.js'
import { isSessionBusy, StoreError } from '../../core/sessions/store/store-error.js'

type WakeOptions<Context = unknown> = Pick<HostFunctions<Context>, 'context'>

/** Retry delay if another request to the object holds the session. */
const busyMs = 1000
/** Retry delay after a failure. */
const againMs = 60_000

/**
 * Runs due sessions until they settle. Call it in the object's `alarm`. A failed session is retried after a minute, and
 * a session that another request holds after a second.
 *
 * @example
 * const agents = defineAgents({ clerk: createAgent({ model, store: memoryStore() }) }) // with durableObjectStore in an object
 * await wakeSessions(agents)
 * @throws {ConfigError} `invalid_config` if the agents have no common store
 * @throws {UsageError} `invalid_option`
 * @throws {StoreError} the first error of `runSession`, after all sessions have been tried
 */
export function wakeSessions<Context = unknown>(
  agents: Agents<Context>,
  ...options: HostOptionsFor<WakeOptions<NoInfer<Context>>, NoInfer<Context>>
): Promise<void>
export async function wakeSessions(agents: Agents, options: WakeOptions = {}): Promise<void> {
  expectArgument('wakeSessions(agents)', agents, agentsRule)
  checkOptions<WakeOptions>('wakeSessions(agents, options)', options, { context: null })
  checkHostFunctions('wakeSessions', options)
  const store = getCommonStore(agents)
  const failures: unknown[] = []
  const wake = async ({ session }: DueAlarm): Promise<SleepLeft> => {
    try {
      const rest = await runSession(agents, await addHostValues(options, { session }, false))
      // The run's clock lags behind the alarm by the duration of its last write.
      return rest.wakeMs ?? null
    } catch (error) {
      if (isSessionBusy(error)) return busyMs
      if (error instanceof UsageError && error.code === 'not_begun') return null
      failures.push(error)
      // An unreadable log will stay unreadable.
      return error instanceof StoreError && !error.retryable ? null : againMs
    }
  }
  let hasWoken = true
  // Repeats for sessions that became due in the meantime.
  while (hasWoken) hasWoken = await wakeSleepers(agents, store, wake)
  // Sets the alarm to the next timer.
  await store.timers?.set([])
  if (failures.length > 0) throw failures[0]
}
