import { agentMachine } from '../../../machines/agent.machine.js'
import { createPureTransition } from '../interpreter/table-transition.js'

/** What an event of a log makes of its run: the pure machine, without effects. */
export const takeEvent = createPureTransition(agentMachine)
