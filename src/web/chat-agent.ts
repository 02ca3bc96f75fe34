import type { Agent } from '../core/agent/agent-options.js'
import type { RunInput } from '../core/sessions/input-history.js'
import type { AnyRun } from './live-runs.js'

/** An agent of any output, tools and context; it has a store. */
export type ChatAgent = Pick<Agent, 'config' | 'replay' | 'send' | 'watch' | 'selectBranch'> & {
  /** The type of the options depends on the `context` that the agent's tools take. */
  run(input: RunInput, options: never): AnyRun
  resume(sessionId: string, options: never): Promise<AnyRun>
  branch(sessionId: string, options: never): AnyRun
}
