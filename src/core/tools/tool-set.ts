import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import { ConfigError } from '../base/errors.js'
import type { ToolSpec } from '../models/provider.js'
import type { Team, Tool, ToolSearch } from './tool.js'
import { type ToolGroup, listSourceTools, type ToolSource } from './tool-source.js'

/** A tool, a group with its arguments (`args` defaults to `{}`), or a source whose tools can change. */
export type ToolEntry = Tool | { readonly group: ToolGroup; readonly args?: unknown } | ToolSource

/** The tools of an agent. With a source among them, each property gives what is true when it is read. */
export interface ToolSet {
  get(name: string): Tool | undefined
  /** In the order in which they were given. */
  readonly names: readonly string[]
  /** The tools as the model sees them once all are loaded. The same array until they change. */
  readonly specs: readonly ToolSpec[]
  /** Those that the model sees from the beginning. The same array until they change. */
  readonly offered: readonly ToolSpec[]
  /** The deferred ones. */
  readonly deferred: readonly Tool[]
  /** What finds the deferred ones; undefined: no tool is deferred. */
  readonly search: ToolSearch | undefined
  /** The agents that its handoffs lead to; undefined: it has no handoff. */
  readonly team: Team | undefined
  /** The tools as the machine sees them. */
  readonly traits: Record<string, ToolTraits>
  /** A sentence for each tool that a source leaves out. Absent: there is no source. */
  readonly leftOut?: readonly string[]
  /** Whether the provider's own search finds a tool. Absent: it searches for none. */
  readonly isHosted?: ((name: string) => boolean) | undefined
}

/**
 * Gathers tools, opening groups. Tools of a group keep their own names.
 *
 * Throws a ConfigError: `duplicate_tool` when two tools have one name, `invalid_tool` for an entry that is not a tool,
 * and whatever a group throws about its arguments. Later changes of a source never throw: a tool keeps its name, and
 * another tool of that name, or an entry that is no tool, is left out.
 */
export function createToolSet(entries: readonly ToolEntry[]): ToolSet {
  const lots = openEntries(entries)
  checkDuplicates(lots)
  checkSearch(lots)
  return lots.some(({ source }) => source !== undefined)
    ? createChangingSet(lots)
    : createFixedSet(lots.flatMap(listTools))
}

/** What one entry brings. */
interface EntryTools {
  /** Where it came from, for people. */
  readonly owner: string
  readonly tools: readonly Tool[]
  readonly source?: ToolSource
  /** The source's own array, by which a change is noticed. */
  readonly listed?: readonly unknown[]
}

function createFixedSet(given: readonly Tool[]): ToolSet {
  const found = given.find((tool) => tool.search)?.search
  // Where the provider searches, each request has all tools, and the search is no tool of ours.
  const isHosted = found?.hosted === true
  const search = isHosted ? undefined : found
  const tools = isHosted ? given.filter((tool) => !tool.search) : given
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const specs = tools.map(({ name, description, parameters, defer }) => ({
    name,
    description,
    parameters,
    ...(isHosted && defer && { deferred: true as const }),
  }))
  const isDeferred = ({ defer }: Tool): boolean => search !== undefined && defer === true
  const deferred = tools.filter(isDeferred)
  return {
    get: (name) => byName.get(name),
    names: [...byName.keys()],
    specs,
    offered: deferred.length === 0 ? specs : specs.filter((_, index) => !isDeferred(tools[index] as Tool)),
    deferred,
    search,
    ...(isHosted && { isHosted: (name: string) => byName.get(name)?.defer === true }),
    team: tools.find((tool) => tool.handoff)?.handoff?.gather(tools),
    traits: Object.fromEntries(
      tools.map(
        ({
          name,
          readOnly,
          idempotent,
          polling,
          delegate,
          maxCalls,
          endsRun,
          skill,
          keepsHandle,
          defer,
          search: finds,
          handoff,
        }) => [
          name,
          {
            readOnly,
            idempotent,
            polling,
            ...(maxCalls !== undefined && { maxCalls }),
            ...(endsRun && { endsRun }),
            ...(defer && search && { deferred: true as const }),
            ...(finds && { loads: finds.loading }),
            ...(skill && { skill }),
            ...(keepsHandle && { keepsHandle }),
            ...(handoff && { handoff: true as const }),
            ...(delegate && { delegate: true as const, nested: true as const }),
          },
        ],
      ),
    ),
  }
}

function createChangingSet(first: readonly EntryTools[]): ToolSet {
  let lots = first
  let owners = assignOwners(lots, new Map())
  let set = createFixedSet(lots.flatMap(listTools))
  const now = (): ToolSet => {
    const latest = lots.map(refreshEntry)
    if (latest.every((lot, index) => lot === lots[index])) return set
    lots = latest
    owners = assignOwners(lots, owners)
    set = createFixedSet(
      lots.flatMap((lot, index) =>
        lot.tools.filter((tool) => owners.get(tool.name) === index && isFirst(lot, tool)),
      ),
    )
    return set
  }
  return {
    get: (name) => now().get(name),
    get names() {
      return now().names
    },
    get specs() {
      return now().specs
    },
    get offered() {
      return now().offered
    },
    get deferred() {
      return now().deferred
    },
    get search() {
      return now().search
    },
    get team() {
      return now().team
    },
    get traits() {
      return now().traits
    },
    get isHosted() {
      return now().isHosted
    },
    get leftOut() {
      return lots.flatMap(({ source }) => source?.leftOut ?? [])
    },
  }
}

/** The same object when nothing has changed. */
function refreshEntry(lot: EntryTools): EntryTools {
  const listed = lot.source && listSourceTools(lot.source)
  return listed === undefined || listed === lot.listed
    ? lot
    : { ...lot, listed, tools: listed.filter(isTool) }
}

/**
 * The entry that each name belongs to. An entry keeps its names, so that no new tool takes the place of a known one.
 */
function assignOwners(lots: readonly EntryTools[], before: ReadonlyMap<string, number>): Map<string, number> {
  const claims = lots.flatMap(({ tools }, index) => tools.map(({ name }) => ({ name, index })))
  const kept = claims.filter(({ name, index }) => before.get(name) === index)
  // The first of several with one key wins.
  return new Map([...kept, ...claims].toReversed().map(({ name, index }) => [name, index]))
}

function isFirst({ tools }: EntryTools, tool: Tool): boolean {
  return tools.find(({ name }) => name === tool.name) === tool
}

function checkDuplicates(lots: readonly EntryTools[]): void {
  const owners = new Map<string, string>()
  for (const { owner, tools } of lots) {
    for (const { name } of tools) {
      const other = owners.get(name)
      if (other !== undefined) {
        throw new ConfigError(
          'duplicate_tool',
          `Two tools are named '${name}' (${other} and ${owner}). Rename one: the model calls tools by name.`,
          name,
        )
      }
      owners.set(name, owner)
    }
  }
}

/** What nothing finds would never be called. */
function checkSearch(lots: readonly EntryTools[]): void {
  const searches = lots.flatMap(({ owner, tools }) => (tools.some(({ search }) => search) ? [owner] : []))
  if (searches.length > 1) {
    throw new ConfigError(
      'invalid_tool',
      `Two tools search for deferred tools (${searches.slice(0, 2).join(' and ')}). Keep one toolSearch().`,
      searches[1],
    )
  }
  if (searches.length > 0) return
  const lost = lots.flatMap(listTools).find(({ defer }) => defer)
  if (lost === undefined) return
  throw new ConfigError(
    'invalid_tool',
    `Tool '${lost.name}' is deferred (defer: true), but nothing finds it. Add toolSearch() to tools, or leave defer out.`,
    `${lost.name}.defer`,
  )
}

function openEntries(entries: readonly ToolEntry[]): EntryTools[] {
  if (!Array.isArray(entries)) throw new ConfigError('invalid_tool', 'tools must be an array.', 'tools')
  return (entries as readonly ToolEntry[]).map((entry, index) => openEntry(entry, `tools[${index}]`))
}

function openEntry(entry: ToolEntry, place: string): EntryTools {
  if (isGroup(entry)) {
    const owner = `${place}, group '${entry.group.name}'`
    return { owner, tools: entry.group.open(entry.args ?? {}).map((tool) => expectTool(owner, tool)) }
  }
  const listed = listSourceTools(entry)
  if (listed !== undefined) {
    const source = entry as ToolSource
    const owner = `${place}, '${source.name}'`
    return { owner, tools: listed.map((tool) => expectTool(owner, tool)), source, listed }
  }
  const tool = expectTool(place, entry)
  const dispatcher = tool.search?.dispatcher
  return { owner: place, tools: dispatcher ? [tool, dispatcher] : [tool] }
}

function listTools({ tools }: EntryTools): readonly Tool[] {
  return tools
}

function isGroup(entry: unknown): entry is Extract<ToolEntry, { group: ToolGroup }> {
  const { group } = (entry ?? {}) as { group?: { open?: unknown } }
  return typeof group?.open === 'function'
}

function isTool(entry: unknown): entry is Tool {
  const { name, parameters, validate } = (entry ?? {}) as Partial<Tool>
  return typeof name === 'string' && typeof parameters === 'object' && typeof validate === 'function'
}

function expectTool(place: string, entry: unknown): Tool {
  if (isTool(entry)) return entry
  throw new ConfigError(
    'invalid_tool',
    `${place} is not a tool. Make it with defineTool({ … }), or pass { group: defineToolGroup({ … }), args }.`,
    place,
  )
}
