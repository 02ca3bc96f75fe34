import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import { ConfigError } from '../base/errors.js'
import type { ToolSpec } from '../models/provider.js'
import type { Team, Tool, ToolSearch } from './tool.js'
import { readPath, readProperty } from '../base/json.js'
import { explainIssues } from './parse-arguments.js'
import { isStandardSchema, type StandardSchema } from './input-schema.js'

/** A tool, a group with arguments (`args` defaults to `{}`), or a source whose tools may change. */
export type ToolEntry = Tool | { readonly group: ToolGroup; readonly args?: unknown } | ToolSource

/** The tools in an entry of `tools`. The compiler does not know the tools of a source. */
type ToolsIn<Entry> = Entry extends { readonly group: ToolGroup<infer _Args, infer Member> }
  ? Member
  : Entry extends Tool
    ? Entry
    : Tool

/**
 * Names and arguments of an agent's tools, such as `{ add: { a: number; b: number } }`. If any of the names is unknown,
 * every name is allowed.
 */
export type ToolsOf<Entries extends readonly ToolEntry[]> =
  string extends NameOf<ToolsIn<Entries[number]>>
    ? Record<string, unknown>
    : { [Each in ToolsIn<Entries[number]> as NameOf<Each>]: ArgumentsOf<Each> }

type NameOf<Each> = Each extends { name: infer Name extends string } ? Name : string

type ArgumentsOf<Each> =
  Each extends Tool<infer _Input, infer _Context, infer _Name, infer Arguments> ? Arguments : unknown

/** The intersection of the `context` types of all these tools, which `run` demands, or `unknown`. */
export type ContextOf<Entries extends readonly ToolEntry[]> =
  Wish<ToolsIn<Entries[number]>> extends (context: infer Context) => void ? Context : unknown

/** Wraps the type in a parameter position, so that the types of several tools intersect. */
type Wish<Each> =
  Each extends Tool<infer _Input, infer Context, infer _Name, infer _Arguments>
    ? (context: Context) => void
    : never

/** The tools of an agent. If there is a source, the properties return its current tools. */
export interface ToolSet {
  get(name: string): Tool | undefined
  readonly names: readonly string[]
  /** The array is the same until the tools change. */
  readonly specs: readonly ToolSpec[]
  /** The tools that are not deferred. The array is the same until the tools change. */
  readonly offered: readonly ToolSpec[]
  readonly deferred: readonly Tool[]
  readonly search: ToolSearch | undefined
  readonly team: Team | undefined
  readonly traits: Record<string, ToolTraits>
  /** A sentence for each tool that a source omits. Absent if there are no sources. */
  readonly leftOut?: readonly string[]
  /** Whether the provider's search finds a tool. Undefined if there is no such search. */
  readonly isHosted: ((name: string) => boolean) | undefined
}

/**
 * Collects tools and opens groups. Throws a ConfigError: `duplicate_tool` for duplicate names, `invalid_tool` for
 * invalid entries, and the errors from groups. Later changes to a source never throw: duplicate names and invalid
 * entries are omitted.
 */
export function createToolSet(entries: readonly ToolEntry[]): ToolSet {
  if (!Array.isArray(entries)) throw toolError('tools must be an array.', 'tools')
  const lots = (entries as readonly ToolEntry[]).map((entry, index) => openEntry(entry, `tools[${index}]`))
  checkDuplicates(lots)
  checkSearch(lots)
  return lots.some(({ source }) => source !== undefined)
    ? createChangingSet(lots)
    : createFixedSet(lots.flatMap(({ tools }) => tools))
}

interface EntryTools {
  readonly owner: string
  readonly tools: readonly Tool[]
  readonly source?: ToolSource
  /** The source's array, which is compared to detect changes. */
  readonly listed?: readonly unknown[]
}

function createFixedSet(input: readonly Tool[]): ToolSet {
  const found = input.find((tool) => tool.search)?.search
  // The provider receives all tools, and the search is not one of the agent's tools.
  const isHosted = found?.hosted === true
  const search = isHosted ? undefined : found
  const tools = isHosted ? input.filter((tool) => !tool.search) : input
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
    // Always a key, because a spread of a changing set copies the keys of its first state.
    isHosted: isHosted ? (name: string) => byName.get(name)?.defer === true : undefined,
    team: tools.find((tool) => tool.handoff)?.handoff?.gather(tools),
    traits: Object.fromEntries(tools.map((tool) => [tool.name, toTraits(tool, search !== undefined)])),
  }
}

function toTraits(tool: Tool, canDefer: boolean): ToolTraits {
  const { readOnly, idempotent, polling, maxCalls, endsRun, skill, keepsHandle } = tool
  return {
    readOnly,
    idempotent,
    polling,
    ...(maxCalls !== undefined && { maxCalls }),
    ...(endsRun && { endsRun }),
    ...(tool.defer && canDefer && { deferred: true as const }),
    ...(tool.search && { loads: tool.search.loading }),
    ...(skill && { skill }),
    ...(keepsHandle && { keepsHandle }),
    ...(tool.handoff && { handoff: true as const }),
    ...(tool.delegate && { delegate: true as const }),
  }
}

function createChangingSet(first: readonly EntryTools[]): ToolSet {
  let lots = first
  let owners = assignOwners(lots, new Map())
  let set = createFixedSet(lots.flatMap(({ tools }) => tools))
  const now = (): ToolSet => {
    const latest = lots.map(refreshEntry)
    if (latest.every((lot, index) => lot === lots[index])) return set
    lots = latest
    owners = assignOwners(lots, owners)
    set = createFixedSet(
      lots.flatMap(({ tools }, index) =>
        tools.filter(
          (tool) => owners.get(tool.name) === index && tools.find(({ name }) => name === tool.name) === tool,
        ),
      ),
    )
    return set
  }
  return new Proxy(set, {
    get: (_, key) =>
      key === 'leftOut'
        ? lots.flatMap(({ source }) => source?.leftOut ?? [])
        : now()[key as Exclude<keyof ToolSet, 'leftOut'>],
  })
}

function refreshEntry(lot: EntryTools): EntryTools {
  const listed = lot.source && listSourceTools(lot.source)
  if (listed === undefined || listed === lot.listed) return lot
  return { ...lot, listed, tools: listed.filter(isTool) }
}

/** Assigns names to entries. An entry keeps its names, so a new tool cannot replace a known one. */
function assignOwners(lots: readonly EntryTools[], before: ReadonlyMap<string, number>): Map<string, number> {
  const claims = lots.flatMap(({ tools }, index) => tools.map(({ name }) => ({ name, index })))
  const winners = claims.filter(({ name, index }) => before.get(name) === index)
  // If several entries have the same name, the first wins.
  return new Map([...winners, ...claims].toReversed().map(({ name, index }) => [name, index]))
}

function checkDuplicates(lots: readonly EntryTools[]): void {
  const owners = new Map<string, string>()
  for (const { owner, tools } of lots) {
    for (const { name } of tools) {
      const other = owners.get(name)
      if (other !== undefined) {
        const text = `Two tools are named '${name}' (${other} and ${owner}). Rename one: the model calls tools by name.`
        throw new ConfigError('duplicate_tool', text, name)
      }
      owners.set(name, owner)
    }
  }
}

/** Rejects deferred tools without a search, because they could never be called. */
function checkSearch(lots: readonly EntryTools[]): void {
  const searches = lots.flatMap(({ owner, tools }) => (tools.some(({ search }) => search) ? [owner] : []))
  if (searches.length > 1) {
    const both = searches.slice(0, 2).join(' and ')
    throw toolError(`Two tools search for deferred tools (${both}). Keep one toolSearch().`, searches[1])
  }
  if (searches.length > 0) return
  const lost = lots.flatMap(({ tools }) => tools).find(({ defer }) => defer)
  if (lost)
    throw toolError(
      `Tool '${lost.name}' is deferred (defer: true), but there is no search. Add toolSearch() to tools, or remove defer.`,
      `${lost.name}.defer`,
    )
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

function isGroup(entry: unknown): entry is Extract<ToolEntry, { group: ToolGroup }> {
  return typeof readPath(entry, ['group', 'open']) === 'function'
}

function isTool(entry: unknown): entry is Tool {
  const { name, parameters, validate } = (entry ?? {}) as Partial<Tool>
  return typeof name === 'string' && typeof parameters === 'object' && typeof validate === 'function'
}

function expectTool(place: string, entry: unknown): Tool {
  if (isTool(entry)) return entry
  throw toolError(
    `${place} is not a tool. Create it with defineTool({ … }), or pass { group: defineToolGroup({ … }), args }.`,
    place,
  )
}

function toolError(message: string, subject: string | undefined): ConfigError {
  return new ConfigError('invalid_tool', message, subject)
}

/**
 * Tools that may change at run time, such as the tools of a server. Add the source to the `tools` of an agent.
 * `mcpTools` from `statewright/mcp` resolves with one.
 */
export interface ToolSource {
  /** The name for error messages. */
  readonly name: string
  /**
   * The current tools. Read for every request and call, so the getter must be cheap and return the same array until
   * something changes.
   */
  readonly tools: readonly Tool[]
  /** A sentence for each omitted tool. Each run emits it as the warning `tool_left_out`. */
  readonly leftOut?: readonly string[]
}

/** Lists the tools of a source. Returns undefined if the source is invalid. Never throws. */
function listSourceTools(source: unknown): readonly unknown[] | undefined {
  const tools = readProperty(source, 'tools')
  return Array.isArray(tools) ? (tools as unknown[]) : undefined
}

/** Tools created from arguments, such as a root folder, a base URL or a tenant. See `defineToolGroup`. */
export interface ToolGroup<Input = unknown, Member extends Tool = Tool> {
  /** The name for error messages. */
  readonly name: string
  /** Creates the tools. Throws a ConfigError `invalid_tool_group` for invalid arguments. */
  readonly open: { method(args: Input): readonly Member[] }['method']
}

interface ToolGroupDefinition<Args extends StandardSchema, Member extends Tool = Tool> {
  name: string
  /** Schema of the arguments. The schema must validate synchronously. */
  args: Args
  /** Creates the tools. Their names must not change. */
  tools: (args: OutputOf<Args>) => readonly Member[]
}

type InputOf<Schema> = Schema extends StandardSchema<infer Input, infer _Output> ? Input : never
type OutputOf<Schema> = Schema extends StandardSchema<infer _Input, infer Output> ? Output : never

/**
 * Defines a group of tools with arguments.
 *
 * ```ts
 * const files = defineToolGroup({
 *   name: 'files',
 *   args: z.object({ root: z.string() }),
 *   tools: ({ root }) => [readIn(root), listIn(root)],
 * })
 * createAgent({ model, tools: [{ group: files, args: { root: '/srv' } }] })
 * ```
 *
 * Throws a ConfigError `invalid_tool_group` for an invalid definition.
 */
export function defineToolGroup<Args extends StandardSchema, Member extends Tool>(
  definition: ToolGroupDefinition<Args, Member>,
): ToolGroup<InputOf<Args>, Member> {
  const { name, args: schema, tools } = (definition ?? {}) as typeof definition
  if (typeof name !== 'string' || name === '') throw invalidGroupError('?', 'name is missing')
  if (!isStandardSchema(schema))
    throw invalidGroupError(name, 'args must be a schema, such as z.object({ … })')
  if (typeof tools !== 'function')
    throw invalidGroupError(name, 'tools must be a function that returns the tools')
  const open = (args: unknown): readonly Member[] => {
    const checked = schema['~standard'].validate(args)
    if ('then' in checked) throw invalidGroupError(name, 'args must be a schema that validates synchronously')
    if (checked.issues)
      throw invalidGroupError(name, `its args are invalid:\n${explainIssues(checked.issues)}\n`)
    const created: unknown = tools(checked.value as OutputOf<Args>)
    if (!Array.isArray(created)) throw invalidGroupError(name, 'tools must return an array of tools')
    return created as Member[]
  }
  return Object.freeze({ name, open })
}

function invalidGroupError(name: string, problem: string): ConfigError {
  return new ConfigError('invalid_tool_group', `Tool group '${name}': ${problem}.`, name)
}
