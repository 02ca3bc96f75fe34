import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { replay, type ReplayPath } from '../../src/testing/index.js'
import { AgentHarness } from './agent-harness/agent-harness.js'

/**
 * The live agent follows a generated path. `segment` receives the events up to each wait and up to the path's
 * end, which may be anywhere. Returns the final state.
 */
export async function followPath(
  path: ReplayPath,
  segment: (events: AgentEvent[], context: AgentContext) => Promise<void>,
): Promise<AgentContext> {
  const events: AgentEvent[] = []
  const harness = new AgentHarness(path.steps, (event) => events.push(event))
  const context = (): AgentContext => (harness.snapshot() as unknown as { context: AgentContext }).context
  const outcome = await replay(path, {
    start: harness.start,
    perform: harness.perform,
    settled: async () => {
      await harness.settled()
      const { state } = context()
      if (state === 'WAITING_FOR_INPUT' || state === 'PAUSED') await segment(events.splice(0), context())
    },
    snapshot: harness.snapshot,
    stop: async () => {
      if (events.length > 0) await segment(events.splice(0), context())
      await harness.stop()
    },
  })
  if (!outcome.ok) throw new Error(JSON.stringify(outcome))
  return context()
}
