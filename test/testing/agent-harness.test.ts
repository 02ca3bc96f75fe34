import { agentInputs } from '../../src/testing/agent/agent-inputs.js'
import { AgentHarness } from '../support/agent-harness/agent-harness.js'

test('what the harness waits for ends with it, so that a path that fails lets its process end', async () => {
  const [input] = Object.values(agentInputs)
  const harness = new AgentHarness([])
  await harness.start(input)
  const waiting = harness.perform({ type: 'xstate.done.actor.fitting' }, 1)
  const isStopped = expect(waiting).rejects.toThrow('The harness has been stopped.')
  await harness.stop()
  await isStopped
})
