import { agentMachine } from '../../../machines/agent.machine.js'
import { ChartTables } from './chart-tables.js'

/** For machines with the chart's own actions and guards. */
export const agentTables = new ChartTables(agentMachine)
