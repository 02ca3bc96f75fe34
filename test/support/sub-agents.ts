import type { AgentOptions, Tool } from '../../src/index.js'
import type { Turn, TurnFunction } from '../../src/rehearsal/index.js'
import { type Stage, stage } from './play.js'
import { call, text } from './tools.js'

export type Turns = readonly (Turn | TurnFunction)[]

const description = 'Finds things out.'
/** A child as a tool of its parent. */
export const research = (child: Stage, options = {}): Tool =>
  child.agent.asTool({ name: 'research', description, ...options }) as Tool
/** A parent turn that calls the child. */
export const ask = (task = 'Look it up.'): Turn => call('research', { task })

/** A parent and a child, each with a separate model. */
export async function pair(
  parentTurns: Turns,
  childTurns: Turns,
  options: { parent?: Partial<AgentOptions>; child?: Partial<AgentOptions>; tool?: object } = {},
): Promise<{ parent: Stage; child: Stage }> {
  const child = await stage(childTurns, options.child)
  const { tools = [], ...rest } = options.parent ?? {}
  const parent = await stage(parentTurns, { tools: [research(child, options.tool), ...tools], ...rest })
  return { parent, child }
}

/** An answer with this cost. */
export const priced = (words: string, tokens: number): Turn =>
  text(words, { usage: { input: tokens - 1, output: 1 } })
/** A turn with this cost. */
export const costing = (turn: Turn, tokens: number): Turn => ({
  ...turn,
  usage: { input: tokens - 1, output: 1 },
})
