// The exported types must not depend on this optional package.
import type * as OramaModule from '@orama/orama'
import type { DefaultTokenizer } from '@orama/orama'
import { ConfigError } from '../base/errors.js'
import { defineTool } from './define-tool.js'
import type { Tool, ToolSearch, ToolSearchScope } from './tool.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import { parseJsonOr } from '../base/json.js'
import { asObject, functionRule, memoize } from '../base/values.js'
import { checkOptions, choiceRule, countRule, flagRule, type OptionRules } from '../config/check-options.js'
import { loadOnce, loadPeer } from '../base/platform.js'

/** A deferred tool in a custom search. */
export type SearchableTool = Pick<Tool, 'name' | 'description' | 'parameters'>

/** Options for `toolSearch`. */
export interface ToolSearchOptions {
  /** Maximum tools loaded per search: 1 to 20. Defaults to 5. */
  limit?: number
  /**
   * Where to put the schemas of loaded tools. `append` (the default) adds them to the end of the request's tools, so
   * each load invalidates the provider's cache. `dispatch` adds them to the search result, and the model calls the
   * tools with `call_tool`, so the prompt prefix stays the same.
   */
  loading?: 'append' | 'dispatch'
  /**
   * A custom search that returns matching names, best first. Unknown names are ignored. Defaults to a full-text search
   * of names, descriptions and arguments with the package `@orama/orama`.
   */
  search?: (query: string, tools: readonly SearchableTool[]) => readonly string[] | Promise<readonly string[]>
  /**
   * Whether to use the provider's search, for OpenAI models with `openaiResponses`. All tools are then sent with every
   * request, and the other options do not apply. Defaults to false.
   */
  hosted?: boolean
}

const searchSchema = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      description: "What the tool should do, in a few words, or a tool's name.",
    },
  },
  required: ['query'],
  additionalProperties: false,
} as const

/**
 * Creates the tool that finds tools with `defer: true`. The model sees one line about each of these tools. The model
 * loads tools by searching, or by calling a tool, which returns the tool's schema. Loaded tools stay loaded for the
 * session, including in other processes.
 *
 * @example createAgent({ model, tools: [...tools, toolSearch({ limit: 3 })] }) // tools with defer: true
 * @throws {ConfigError} `invalid_tool` for invalid options
 */
export function toolSearch(options: ToolSearchOptions = {}): Tool<{ query: string }, unknown, 'tool_search'> {
  const { limit = 5, loading = 'append', search, hosted = false } = readOptions(options)
  const indexes = new WeakMap<readonly Tool[], Promise<(query: string) => Promise<string[]>>>()

  const findNames = async (query: string, deferred: readonly Tool[]): Promise<readonly string[]> => {
    if (search) return readNames(await search(query, deferred.map(toSearchable)))
    const index = indexes.get(deferred) ?? createToolIndex(deferred)
    indexes.set(deferred, index)
    // After a failure, the next search creates the index again.
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

  const isDispatching = loading === 'dispatch'
  const parts: ToolSearch = {
    loading,
    hosted,
    dispatcher: isDispatching ? createDispatcher() : undefined,
    writeIndex: (deferred) => writeIndex(deferred, loading),
    ready: async () => {
      if (!search) await loadOrama()
    },
    find,
    unwrap: isDispatching ? unwrapCall : (call) => call,
    wrap: isDispatching ? (messages) => messages.map(wrapMessage) : (messages) => messages,
  }
  const tool = defineTool({
    name: 'tool_search',
    description:
      'Finds tools by description and loads them, so that you can call them. Use it when none of your tools fits.',
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

function writeFound(found: readonly Tool[], loading: ToolSearch['loading'], maxChars: number) {
  if (found.length === 0) {
    const text = 'No tool found. Search again with other words, or with a name from the list of tools.'
    return { text, shown: [] }
  }
  const [how, line] =
    loading === 'append'
      ? ['by name', ({ name, description }: Tool) => JSON.stringify({ name, description })]
      : [
          "through call_tool, with the tool's name and arguments that match its parameters",
          (tool: Tool) => JSON.stringify(toSearchable(tool)),
        ]
  const shown: Tool[] = []
  let text = `These tools are loaded. Call them ${how}.`
  for (const tool of found) {
    const next = `${text}\n${line(tool)}`
    // A truncated tool could not be called.
    if (shown.length > 0 && next.length > maxChars) break
    text = next
    shown.push(tool)
  }
  return { text, shown }
}

function readNames(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((name): name is string => typeof name === 'string')) return value
  throw new Error('search in toolSearch({ search }) must return a list of tool names.')
}

const optionRules: OptionRules<ToolSearchOptions> = {
  limit: { is: (value) => countRule.is(value) && Number(value) <= 20, phrase: 'a whole number from 1 to 20' },
  loading: /* @__PURE__ */ choiceRule('append', 'dispatch'),
  search: /* @__PURE__ */ functionRule('a function: (query, tools) => names'),
  hosted: flagRule,
}

function readOptions(options: unknown): ToolSearchOptions {
  const fail = (message: string, key: string): ConfigError => new ConfigError('invalid_tool', message, key)
  const checked = checkOptions('toolSearch(options)', options, optionRules, fail)
  const other = (['limit', 'loading', 'search'] as const).find((key) => checked[key] !== undefined)
  if (checked.hosted === true && other !== undefined)
    throw fail(
      `toolSearch: ${other} has no effect with hosted: true, because the provider searches. Remove one of them.`,
      other,
    )
  return checked
}

const maxIndexChars = 10_000
const maxRestChars = 60
/** Minimum length of a tool's line. Shorter descriptions would be useless. */
const minLineChars = 12

/** The list of deferred tools for the instructions. It ignores what is loaded, so the prompt prefix stays the same. */
export function writeIndex(deferred: readonly Tool[], loading: ToolSearch['loading']): string {
  if (deferred.length === 0) return ''
  const how = loading === 'append' ? '' : ', and call it with call_tool'
  const head = `More tools are available but not loaded. Load what you need with tool_search${how}:`
  const room = maxIndexChars - head.length - maxRestChars
  const each = Math.floor(room / deferred.length) - '- : \n'.length
  const lines: string[] = []
  let size = 0
  for (const { name, description } of deferred) {
    const words = cutLine(description, each - name.length)
    const line = `- ${name}${words === '' ? '' : `: ${words}`}`
    size += line.length + 1
    if (size > room) {
      lines.push(`- and ${deferred.length - lines.length} more. Find them with tool_search`)
      break
    }
    lines.push(line)
  }
  return [head, ...lines].join('\n')
}

function cutLine(description: string, most: number): string {
  // Otherwise the `[server]` prefix of MCP tools would be repeated on every line.
  const [line = ''] = description.replace(/^\[[^\]]*\]\s*/, '').split('\n')
  const words = line.trim()
  if (words.length <= most) return words
  return most < minLineChars ? '' : `${words.slice(0, most - 1).trimEnd()}…`
}

const dispatcherName = 'call_tool'

/** The tool through which the model calls loaded tools. The tool itself is executed only if the name is unknown. */
export function createDispatcher(): Tool {
  return defineTool({
    name: dispatcherName,
    description:
      "Calls a tool that tool_search has loaded. The search result contains the tool's parameters.",
    input: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, description: "The tool's name." },
        arguments: { type: 'object', description: 'The arguments for the tool.', properties: {} },
      },
      required: ['name', 'arguments'],
      additionalProperties: false,
    },
    readOnly: true,
    execute: () => {
      throw new Error("name a tool that tool_search has loaded: { name: '…', arguments: { … } }")
    },
  }) as Tool
}

/** The named tool is then validated, approved, guarded, shown and stored. */
function unwrapCall(call: ToolCall): ToolCall {
  if (call.function.name !== dispatcherName || call.hosted) return call
  const { name, arguments: source } = readObject(call.function.arguments) ?? {}
  if (typeof name !== 'string' || name.trim() === '' || name === dispatcherName) return call
  // Some models write the inner object as a string.
  const inner = typeof source === 'string' ? readObject(source) : asObject(source)
  if (inner === null) return call
  return { ...call, function: { name, arguments: JSON.stringify(inner) }, dispatched: true }
}

/**
 * Restores the calls of a message to the form that the model wrote. The same object for the same message, because
 * providers cache messages by identity.
 */
const wrapMessage = memoize((message: Message): Message => {
  if (message.role !== 'assistant' || !message.tool_calls?.some(({ dispatched }) => dispatched))
    return message
  return { ...message, tool_calls: message.tool_calls.map(wrapCall) }
})

function wrapCall(call: ToolCall): ToolCall {
  if (!call.dispatched) return call
  const { dispatched: _dispatched, ...rest } = call
  const { name, arguments: text } = call.function
  // Text inserted by a shield is not JSON.
  const inner = readObject(text) === null ? JSON.stringify({ text }) : text
  const whole = `{"name":${JSON.stringify(name)},"arguments":${inner}}`
  return { ...rest, function: { name: dispatcherName, arguments: whole } }
}

const readObject = (text: string): JsonObject | null => asObject(parseJsonOr(text, undefined))

const loadOrama = loadOnce(() => loadPeer<typeof OramaModule>('@orama/orama', 'toolSearch()'))

/** A full-text index (BM25). Results are deterministic, and ties keep the order of the tools. */
export async function createToolIndex(tools: readonly Tool[]): Promise<(query: string) => Promise<string[]>> {
  const orama = await loadOrama()
  const stemmer = orama.components.tokenizer.createTokenizer({ stemming: true }) as DefaultTokenizer
  const database = orama.create({
    schema: { name: 'string', description: 'string', fields: 'string' },
    sort: { enabled: false },
    components: {
      tokenizer: {
        language: 'english',
        normalizationCache: new Map(),
        tokenize: (text) => splitWords(text, (word) => stemmer.stemmer?.(word) ?? word),
      },
    },
  })
  const order = new Map(tools.map(({ name }, index) => [name, index]))
  for (const { name, description, parameters } of tools) {
    const fields = Object.keys(parameters.properties ?? {}).join(' ')
    void orama.insert(database, { id: name, name, description, fields })
  }
  return async (query) => {
    const { hits } = await orama.search(database, {
      term: query,
      properties: ['name', 'description', 'fields'],
      boost: { name: 3, description: 1, fields: 1 },
      threshold: 1,
      limit: tools.length,
    })
    const place = (id: string): number => order.get(id) ?? 0
    return hits
      .toSorted((one, other) => other.score - one.score || place(one.id) - place(other.id))
      .map(({ id }) => id)
  }
}

/** This suffix prevents prefix matches and clashes with built-in property names. */
const end = '$'

function splitWords(text: string, stem: (word: string) => string): string[] {
  const parts = text.replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').toLowerCase()
  return [...new Set((parts.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map((word) => stem(word) + end))]
}
