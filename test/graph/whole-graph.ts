import { agentMachine } from '../../machines/agent.machine.js'
import { observeMachine } from '../../src/core/chart/observe-machine.js'
import { createInvariantCheck } from '../../src/testing/check-invariants.js'
import { coverExploration } from '../../src/testing/cover-paths.js'
import { resolveSpace } from '../../src/testing/explore-options.js'
import { exploreMachine } from '../../src/testing/explore.js'
import { agentInvariants, agentSpace, canReach, isFinal } from '../../src/testing/index.js'
import { createPropertyCheck } from '../../src/testing/properties/check-properties.js'
import { agentProperties, decisionProperties } from './agent-properties.js'

let explored: ReturnType<typeof explore> | undefined

/** The results of all checks of the whole graph. One exploration, which takes half a minute, serves them all. */
export const exploreWhole = () => (explored ??= explore())

function explore() {
  const space = resolveSpace(agentSpace() as never)
  const observed = observeMachine(agentMachine)
  const invariants = createInvariantCheck(agentInvariants)
  const patient = { patient: canReach<typeof agentMachine>(isFinal) }
  const properties = createPropertyCheck(
    agentMachine,
    { ...decisionProperties, ...agentProperties, ...patient },
    {
      // People who approve and revoke in turn never decide.
      ...Object.fromEntries(Object.keys(decisionProperties).map((name) => [name, ['REVOKE']])),
      patient: ['CANCEL', 'DEADLINE'],
    },
  )
  const exploration = exploreMachine(observed, space, (visit) => {
    invariants.visit(visit)
    properties.visit(visit)
  })
  return {
    invariants: invariants.report(exploration),
    properties: properties.report(observed, space, exploration),
    paths: coverExploration(observed, exploration, 'transition-pairs'),
  }
}
