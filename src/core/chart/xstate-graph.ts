/** The one place that knows the graph package; `xstate/graph` has the same code. */
export { getStateNodes, serializeEvent } from '@xstate/graph'
export type { StatePath } from '@xstate/graph'
