import type { ToolTraits } from '../../machines/agent/results.js'
import { ConfigError } from '../errors.js'
import type { ToolSpec } from '../providers/provider.js'
import type { Tool } from './tool.js'
import type { ToolGroup } from './tool-group.js'

/** A tool, or a group with its arguments. `args` defaults to `{}`. */
export type ToolEntry = Tool | { readonly group: ToolGroup; readonly args?: unknown }

/** The tools of an agent. */
export interface ToolSet {
  get(name: string): Tool | undefined
  /** In the order in which they were given. */
  readonly names: readonly string[]
  /** The tools as the model sees them. */
  readonly specs: readonly ToolSpec[]
  /** The tools as the machine sees them. */
  readonly traits: Record<string, ToolTraits>
}

/**
 * Gathers tools, opening groups. Tools of a group keep their own names.
 *
 * Throws a ConfigError: `duplicate_tool` when two tools have one name, `invalid_tool` for an entry that is not a tool,
 * and whatever a group throws about its arguments.
 */
export function toolSet(entries: readonly ToolEntry[]): ToolSet {
  const owners = new Map<string, string>()
  const byName = new Map<string, Tool>()
  for (const { tool, owner } of flatten(entries)) {
    const other = owners.get(tool.name)
    if (other !== undefined) {
      throw new ConfigError(
        'duplicate_tool',
        `Two tools are named '${tool.name}' (${other} and ${owner}). Rename one: the model calls tools by name.`,
        tool.name,
      )
    }
    owners.set(tool.name, owner)
    byName.set(tool.name, tool)
  }
  const tools = [...byName.values()]
  return {
    get: (name) => byName.get(name),
    names: [...byName.keys()],
    specs: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
    traits: Object.fromEntries(
      tools.map(({ name, readOnly, idempotent, polling }) => [name, { readOnly, idempotent, polling }]),
    ),
  }
}

/** Every tool, with where it came from, for people. */
function* flatten(entries: readonly ToolEntry[]): Generator<{ tool: Tool; owner: string }> {
  if (!Array.isArray(entries)) throw new ConfigError('invalid_tool', 'tools must be an array.', 'tools')
  for (const [index, entry] of entries.entries()) {
    const place = `tools[${index}]`
    if (isGroup(entry)) {
      const owner = `${place}, group '${entry.group.name}'`
      for (const tool of entry.group.open(entry.args ?? {})) yield { tool: toolAt(owner, tool), owner }
    } else {
      yield { tool: toolAt(place, entry), owner: place }
    }
  }
}

function isGroup(entry: unknown): entry is Exclude<ToolEntry, Tool> {
  const { group } = (entry ?? {}) as { group?: { open?: unknown } }
  return typeof group?.open === 'function'
}

function toolAt(place: string, entry: unknown): Tool {
  const { name, parameters, validate } = (entry ?? {}) as Partial<Tool>
  if (typeof name === 'string' && typeof parameters === 'object' && typeof validate === 'function') {
    return entry as Tool
  }
  throw new ConfigError(
    'invalid_tool',
    `${place} is not a tool. Make it with defineTool({ … }), or pass { group: defineToolGroup({ … }), args }.`,
    place,
  )
}
