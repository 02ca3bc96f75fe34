import { peek } from '../base/peek.js'
import type { Tool } from './tool.js'

/**
 * Tools that can change while agents use them: those of a server that adds and removes some. Put it among the `tools`
 * of an agent like a tool. What `mcpTools` of `statewright/mcp` resolves with is one.
 *
 * @example
 * const source: ToolSource = { name: 'plugins', get tools() { return loaded } }
 */
export interface ToolSource {
  /** For people, in error messages. */
  readonly name: string
  /**
   * The tools as they are now. Read again for every request and every call, so it has to be cheap, and the same array
   * until something changes: arrays are compared by identity.
   */
  readonly tools: readonly Tool[]
}

/** A source's present list; undefined for what is none, or has none to give. Never throws. */
export function toolsOf(source: unknown): readonly unknown[] | undefined {
  const tools = peek(source, 'tools')
  return Array.isArray(tools) ? (tools as unknown[]) : undefined
}
