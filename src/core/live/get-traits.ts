import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Binding } from './runtime.js'

/** Tools as the machine of a run sees them. Without a store no sub-agent has a log from which a call of it could go on. */
export function getTraits(
  { traits }: ToolSet,
  { store }: Pick<Binding, 'store'>,
): Record<string, ToolTraits> {
  if (store || !Object.values(traits).some(({ delegate }) => delegate)) return traits
  return Object.fromEntries(
    Object.entries(traits).map(([name, { delegate: _delegate, nested: _nested, ...rest }]) => [name, rest]),
  )
}
