import { loadOnce } from '../../base/platform.js'
import { ConfigError } from '../../base/errors.js'
import { defineTool } from '../define-tool.js'
import type { Tool, ToolSearch, ToolSearchScope } from '../tool.js'
import { createDispatcher, unwrapCall, wrapMessages } from './dispatched-calls.js'
import { writeIndex } from './tool-index-text.js'

/** A deferred tool as a search sees it. */
export type SearchableTool = Pick<Tool, 'name' | 'description' | 'parameters'>

/** How deferred tools are found and loaded. */
export interface ToolSearchOptions {
  /** Tools that a search loads at most: 1 to 20. Default 5. */
  limit?: number
  /**
   * Where the schemas of loaded tools go. `append`: to the end of the request's tools, so that each load costs the provider's
   * cache once. `dispatch`: into the result of the search, and the model calls them by the one tool `call_tool`, so that
   * requests keep their whole beginning. Default `append`.
   */
  loading?: 'append' | 'dispatch'
  /**
   * A search of your own: the names of the tools that fit, the best first. Names of other tools are left out. Default: the words
   * of names, descriptions and arguments, by the package `@orama/orama`.
   */
  search?: (query: string, tools: readonly SearchableTool[]) => readonly string[] | Promise<readonly string[]>
  /**
   * The provider searches in place of us: for models of OpenAI over `openaiResponses`. Each request has all tools, marked, and the
   * other options do not apply. Default false: the same search everywhere.
   */
  hosted?: boolean
}

const loadIndex = loadOnce(() => import('./tool-index.js'))

/** What a search may be asked for. */
const searchSchema = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      description: 'What the tool has to do, in a few words, or the name of a tool.',
    },
  },
  required: ['query'],
  additionalProperties: false,
} as const

/**
 * The tool by which a model finds the tools that have `defer: true`. The model gets their names with one line each, and loads
 * what it needs: by a search, or by a call of a tool that is not loaded, which is answered with its schema. What is loaded stays
 * loaded for the session, also in another process.
 *
 * @example
 * const weather = defineTool({
 *   name: 'weather',
 *   description: 'The weather of a town.',
 *   input: z.object({ town: z.string() }),
 *   defer: true,
 *   execute: ({ town }) => `It rains in ${town}.`,
 * })
 * createAgent({ model, tools: [weather, toolSearch({ limit: 3, search: () => ['weather'] })] })
 * @throws {ConfigError} `invalid_tool` for options that cannot be used
 */
export function toolSearch(options: ToolSearchOptions = {}): Tool<{ query: string }, unknown, 'tool_search'> {
  const { limit = 5, loading = 'append', search, hosted = false } = checkOptions(options)
  const indexes = new WeakMap<readonly Tool[], Promise<(query: string) => Promise<string[]>>>()

  const findNames = async (query: string, deferred: readonly Tool[]): Promise<readonly string[]> => {
    if (search) return readNames(await search(query, deferred.map(toSearchable)))
    const index =
      indexes.get(deferred) ?? loadIndex().then(({ createToolIndex }) => createToolIndex(deferred))
    indexes.set(deferred, index)
    // What could not be made is made anew.
    index.catch(() => indexes.delete(deferred))
    return (await index)(query)
  }

  const find = async (input: unknown, { deferred, maxChars, load }: ToolSearchScope): Promise<string> => {
    const { query } = input as { query: string }
    const byName = new Map(deferred.map((tool) => [tool.name, tool]))
    const exact = byName.has(query.trim()) ? [query.trim()] : []
    const names = [...new Set([...exact, ...(await findNames(query, deferred))])]
    const found = names.flatMap((name) => byName.get(name) ?? []).slice(0, limit)
    const { text, shown } = writeFound(found, loading, maxChars)
    load(shown.map(({ name }) => name))
    return text
  }

  const parts: ToolSearch = {
    loading,
    hosted,
    dispatcher: loading === 'dispatch' ? createDispatcher() : undefined,
    writeIndex: (deferred) => writeIndex(deferred, loading),
    ready: async () => {
      if (!search) await (await loadIndex()).loadOrama()
    },
    find,
    unwrap: loading === 'dispatch' ? unwrapCall : (call) => call,
    wrap: loading === 'dispatch' ? wrapMessages : (messages) => messages,
  }
  const tool = defineTool({
    name: 'tool_search',
    description:
      'Finds tools by what they do and loads them, so that you can call them. Use it when no tool that you have fits.',
    input: searchSchema,
    readOnly: true,
    execute: () => undefined,
  })
  return Object.freeze({
    ...(tool as unknown as Tool<{ query: string }, unknown, 'tool_search'>),
    search: parts,
  })
}

function toSearchable({ name, description, parameters }: Tool): SearchableTool {
  return { name, description, parameters }
}

/** What the model reads of the tools that were found: those that the result has room for. */
function writeFound(
  found: readonly Tool[],
  loading: ToolSearch['loading'],
  maxChars: number,
): { text: string; shown: readonly Tool[] } {
  if (found.length === 0) {
    const text = 'No tool fits. Search again with other words, or with a name of the list of tools.'
    return { text, shown: [] }
  }
  const head =
    loading === 'append'
      ? 'These tools are loaded. Call them by their names.'
      : "These tools are loaded. Call them by call_tool, with the tool's name and arguments that fit its parameters."
  const lines: string[] = [head]
  const shown: Tool[] = []
  let size = head.length
  for (const tool of found) {
    const { name, description, parameters } = tool
    const line = JSON.stringify(
      loading === 'append' ? { name, description } : { name, description, parameters },
    )
    size += line.length + 1
    // What is cut off could not be called.
    if (shown.length > 0 && size > maxChars) break
    lines.push(line)
    shown.push(tool)
  }
  return { text: lines.join('\n'), shown }
}

function readNames(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((name): name is string => typeof name === 'string')) return value
  throw new Error('The search of toolSearch({ search }) must return a list of names of tools.')
}

const optionNames = ['limit', 'loading', 'search', 'hosted']

function checkOptions(options: unknown): ToolSearchOptions {
  const refuse = (problem: string, key?: string): never => {
    throw new ConfigError('invalid_tool', `toolSearch: ${problem}`, key)
  }
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return refuse('takes an object: { limit, loading, search, hosted }.')
  const { limit, loading, search, hosted } = options as Record<string, unknown>
  for (const key of Object.keys(options)) {
    if (!optionNames.includes(key))
      refuse(`there is no option '${key}'. The options are ${optionNames.join(', ')}.`, key)
  }
  if (limit !== undefined && !(Number.isSafeInteger(limit) && Number(limit) >= 1 && Number(limit) <= 20))
    refuse('limit must be a whole number from 1 to 20.', 'limit')
  if (loading !== undefined && loading !== 'append' && loading !== 'dispatch')
    refuse("loading must be 'append' or 'dispatch'.", 'loading')
  if (search !== undefined && typeof search !== 'function')
    refuse('search must be a function: (query, tools) => names.', 'search')
  if (hosted !== undefined && typeof hosted !== 'boolean') refuse('hosted must be true or false.', 'hosted')
  const other = optionNames.find(
    (key) => key !== 'hosted' && (options as Record<string, unknown>)[key] !== undefined,
  )
  if (hosted === true && other !== undefined)
    refuse(
      `${other} is of the search here; with hosted: true, the provider searches. Leave one of them out.`,
      other,
    )
  return options as ToolSearchOptions
}
