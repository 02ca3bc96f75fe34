import type { SessionStore } from '../sessions/store/store.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Agent } from './agent-options.js'

/** What of an agent its own interface does not show, for whoever shows agents to people. */
export interface MadeOf {
  tools: ToolSet
  store: SessionStore | undefined
}

/** Of the agents that `createAgent` has made; nobody knows what is in another implementation of the interface. */
export const madeOf = new WeakMap<Pick<Agent, 'config'>, MadeOf>()
