import { expectArgument, optionsRule } from '../../core/base/expect-argument.js'
import { expectKnownOptions } from '../../core/config/known-options.js'
import { agentsRule, getCommonStore } from '../../core/drive/common-store.js'
import type { Agents } from '../../core/drive/define-agents.js'
import { runSession } from '../../core/drive/drive.js'
import {
  addHostValues,
  checkHostFunctions,
  type HostFunctions,
  type HostOptionsFor,
} from '../../core/drive/host-functions.js'
import { wakeSleepers } from '../../core/drive/wake-sleepers.js'

type WakeOptions<Context = unknown> = Pick<HostFunctions<Context>, 'context'>

/**
 * Runs the sessions whose time has come to their next rest: what the object's `alarm` does. When it rejects, Cloudflare rings again.
 *
 * @example
 * const agents = defineAgents({ clerk: createAgent({ model, store: memoryStore() }) }) // with durableObjectStore in an object
 * await wakeSessions(agents)
 * @throws {ConfigError} `invalid_config` where the agents have no common store
 * @throws {UsageError} `invalid_option`
 * @throws {StoreError} `session_busy` and what else `runSession` throws
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
  await wakeSleepers(agents, store, async ({ session }) => {
    await runSession(agents, await addHostValues(options, { session }, false))
  })
  // An alarm that has rung too early is set again.
  await store.timers?.set([])
}
