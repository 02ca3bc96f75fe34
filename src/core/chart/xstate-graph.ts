/** The only module that depends on the graph package, because `xstate/graph` has the same code. */
export { getStateNodes, serializeEvent } from '@xstate/graph'
export type { StatePath } from '@xstate/graph'
