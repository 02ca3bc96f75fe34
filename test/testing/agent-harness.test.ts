import { agentInputs } from '../../src/testing/agent/agent-inputs.js'
import { AgentHarness } from '../support/agent-harness/agent-harness.js'

test('the harness ends its pending waits, so that the process of a failing path can exit', async () => {
  const [input] = Object.values(agentInputs)
  const harness = new AgentHarness([])
  await harness.start(input)
  const waiting = harness.perform({ type: 'xstate.done.actor.fitting' }, 1)
  const isStopped = expect(waiting).rejects.toThrow('The harness has been stopped.')
  await harness.stop()
  await isStopped
})
