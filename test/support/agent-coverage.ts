import { agentMachine } from '../../machines/agent.machine.js'
import { observeMachine } from '../../src/core/chart/observe-machine.js'
import { coverExploration } from '../../src/testing/cover-paths.js'
import { resolveSpace } from '../../src/testing/explore-options.js'
import { exploreMachine } from '../../src/testing/explore.js'
import { agentSpace } from '../../src/testing/index.js'

/** The paths over all transitions and over all pairs of the agent machine, from one exploration. */
export function coverAgent() {
  const observed = observeMachine(agentMachine)
  const exploration = exploreMachine(observed, resolveSpace(agentSpace() as never))
  return {
    transitions: coverExploration(observed, exploration, 'transitions'),
    pairs: coverExploration(observed, exploration, 'transition-pairs'),
  }
}
