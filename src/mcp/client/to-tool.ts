import { truncate } from '../../../guards/lib/words.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import { defineTool } from '../../core/tools/define-tool.js'
import { readProperty, readText } from '../../core/base/json.js'
import { asList, asText } from '../../core/base/values.js'
import type { StandardJsonSchema, Validation } from '../../core/tools/input-schema.js'
import { Ask } from '../../core/tools/tool-outcomes.js'
import type { Tool } from '../../core/tools/tool.js'
import { ResultWithData } from '../../core/tools/tool-content.js'
import type { McpCall, McpConnection } from './mcp-connection.js'
import { makeAskingCall, type OpenCalls } from './asking-call.js'
import type { CheckedMcpOptions } from './mcp-options.js'
import { stripInvisible } from './plain-text.js'
import { readAppData, readResult } from './read-result.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { mapObject } from '../../core/models/normalize-schema.js'
import { findRefFault } from '../../core/models/fit-tools.js'
import { isNestedDeeper } from '../../core/models/plain-json.js'

/** Some providers reject longer descriptions. */
const maxDescription = 1_024

/** Maximum progress notifications per call, and maximum characters of each message. */
const [maxProgress, maxProgressChars] = [1_000, 1_000]

export interface McpToolParts {
  server: string
  options: CheckedMcpOptions
  calls: OpenCalls
  call: (call: McpCall) => Promise<JsonObject>
  hasHeaders: boolean
  tasks: McpConnection['tasks']
}

/** Returns why a tool cannot be used, phrased to complete a sentence. */
export function findToolFault(
  listed: Json,
  { hasHeaders, tasks }: Pick<McpToolParts, 'hasHeaders' | 'tasks'>,
): string | undefined {
  if (needsTask(listed) && tasks === 'none') return 'runs only as a task, which the server does not support'
  const schema = readInputSchema(readProperty(listed, 'inputSchema') as Json | undefined)
  const fault = findSchemaFault(schema) ?? (hasHeaders ? findHeaderFault(schema) : undefined)
  return fault === undefined ? undefined : `has an input schema that ${fault}`
}

/** According to the protocol's defaults, a tool without annotations is destructive. */
function mayDestroy(listed: Json): boolean {
  const annotations = readProperty(listed, 'annotations')
  const isDestructive = readProperty(annotations, 'destructiveHint')
  return (
    isDestructive === true || (isDestructive !== false && readProperty(annotations, 'readOnlyHint') !== true)
  )
}

function needsTask(listed: Json): boolean {
  return readProperty(readProperty(listed, 'execution'), 'taskSupport') === 'required'
}

export function toTool(
  listed: Json,
  toolName: string,
  name: string,
  { server, options, call, calls, tasks }: McpToolParts,
): Tool {
  const { needsApproval, trustAnnotations, defer, timeoutMs } = options
  const isTask = tasks === 'asked' && needsTask(listed)
  const inputSchema = readInputSchema(readProperty(listed, 'inputSchema') as Json) as JsonObject
  const hint = (key: string): boolean =>
    trustAnnotations && readProperty(readProperty(listed, 'annotations'), key) === true
  const readOnly = hint('readOnlyHint') && !hint('destructiveHint')
  const idempotent = hint('idempotentHint')
  return defineTool({
    name,
    description: createDescription(listed, toolName, server),
    input: {
      '~standard': {
        version: 1,
        vendor: 'statewright',
        validate: (value: unknown) => checkRequired(value as JsonObject, inputSchema),
        jsonSchema: { input: () => inputSchema },
      },
    } satisfies StandardJsonSchema<JsonObject, JsonObject>,
    readOnly,
    idempotent,
    keepsHandle: tasks === 'extension' || isTask,
    defer: typeof defer === 'function' ? defer(toolName) : defer,
    // The connection has the timer, because only the connection sees progress.
    timeoutMs: 0,
    needsApproval:
      typeof needsApproval === 'function'
        ? (args: JsonObject) => needsApproval(toolName, args)
        : needsApproval === 'annotations'
          ? mayDestroy(listed)
          : needsApproval,
    execute: async (args, execution) => {
      const { idempotencyKey: key, handle, progress } = execution
      let isKept = handle !== undefined
      const keepHandle = (newHandle: Json): Promise<void> => {
        isKept = true
        return execution.keepHandle?.(newHandle) ?? Promise.resolve()
      }
      let reports = 0
      const result = await makeAskingCall({
        server,
        execution,
        onProgress: (report) => {
          reports += 1
          if (reports > maxProgress) return
          const limit = (value: Json): Json =>
            typeof value === 'string' ? truncate(value, maxProgressChars) : value
          progress(mapObject(report, limit))
        },
        open: calls,
        // Continuing a task does not repeat its effects.
        isRepeatable: () => readOnly || idempotent || isKept,
        timeoutMs,
        make: (watch) =>
          call({ name: toolName, inputSchema, args, isTask, key, handle, keepHandle, ...watch }),
      })
      if (result instanceof Ask) return result
      const value = readResult(result)
      const appData = readAppData(result)
      return appData === null ? value : new ResultWithData(value, appData)
    },
  }) as Tool
}

/** Checks only required fields without a default. The server validates the arguments. */
function checkRequired(args: JsonObject, { required, properties }: JsonObject): Validation<JsonObject> {
  const issues = asList(required)
    .filter((name) => typeof name === 'string')
    .filter((name) => !Object.hasOwn(args, name))
    .filter((name) => readProperty(readProperty(properties, name), 'default') === undefined)
    .map((name) => ({ path: [name], message: 'Missing.' }))
  return issues.length > 0 ? { issues } : { value: args }
}

/** Attributes the description to the server, because it may contain instructions for the model. */
function createDescription(listed: Json, toolName: string, server: string): string {
  const texts = [readText(listed, 'description'), readText(listed, 'title'), `The tool '${toolName}'.`]
  const words = texts.find((text) => text.trim() !== '') ?? ''
  return truncate(`[Described by the MCP server '${server}'] ${stripInvisible(words).trim()}`, maxDescription)
}

const maxSchema = 64 * 1024

/** No provider accepts deeper schemas. */
const maxDepth = 100

/** A schema without a type gets the type object. Drops `null` for an unset keyword (Go, Java) and `[]` for none (PHP). */
function readInputSchema(listed: Json | undefined): Json | undefined {
  if (!isRecord(listed)) return listed
  const { type, properties, required, ...schema } = listed as JsonObject
  const isObject = type === undefined || [type].flat().some((name) => asText(name).toLowerCase() === 'object')
  const isEmpty = properties === null || (Array.isArray(properties) && properties.length === 0)
  return {
    ...schema,
    ...(type !== undefined && { type }),
    ...(isObject && { type: 'object' }),
    ...(properties !== undefined && { properties: isEmpty ? {} : properties }),
    ...(required !== undefined && required !== null && { required }),
  }
}

/** Why models cannot use this input schema, phrased to complete a sentence. `fitTools` adapts all other schemas. */
function findSchemaFault(schema: unknown): string | undefined {
  if (!isRecord(schema) || schema.type !== 'object') return 'is not of type "object"'
  if (isNestedDeeper(schema, maxDepth)) return `is nested more than ${maxDepth} levels deep`
  if (JSON.stringify(schema).length > maxSchema) return `is longer than ${maxSchema} characters`
  const { properties = {}, required = [] } = schema
  const isSchema = (value: unknown): boolean =>
    typeof value === 'boolean' || isRecord(value) || (Array.isArray(value) && value.length === 0)
  if (!isRecord(properties) || !Object.values(properties).every(isSchema))
    return 'has properties that are not schemas'
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string'))
    return 'has a required list that contains something other than names'
  return findRefFault(schema as JsonObject)
}

const headerKey = 'x-mcp-header'

/**
 * Checks the rules of "Custom Headers from Tool Parameters" in revision 2026-07-28: a header belongs to a string,
 * integer or boolean property, and its name is unique. The result completes a sentence about the schema.
 */
export function findHeaderFault(schema: unknown): string | undefined {
  const names = new Set<string>()
  const visit = (node: unknown, isProperty: boolean, isReachable: boolean): string | undefined => {
    if (typeof node !== 'object' || node === null) return undefined
    if (Object.hasOwn(node, headerKey)) {
      const fault = findNameFault(node, names)
      if (fault !== undefined) return fault
      if (!isProperty || !isReachable) return `has an ${headerKey} outside the arguments`
    }
    for (const [key, child] of Object.entries(node)) {
      const isProperties = key === 'properties' && !Array.isArray(node)
      const inner =
        isProperties && typeof child === 'object' && child !== null ? Object.values(child) : [child]
      for (const value of inner) {
        const fault = visit(value, isProperties, isProperties && isReachable)
        if (fault !== undefined) return fault
      }
    }
    return undefined
  }
  return visit(schema, false, true)
}

function findNameFault(node: object, names: Set<string>): string | undefined {
  const name = readProperty(node, headerKey)
  // A token according to RFC 9110, section 5.6.2.
  if (typeof name !== 'string' || !/^[!#$%&'*+\-.^_`|~\w]+$/.test(name))
    return `has an ${headerKey} that is not a valid header name`
  if (!['string', 'integer', 'boolean'].includes(String(readProperty(node, 'type'))))
    return `has an ${headerKey} on a property that is not a string, integer or boolean`
  if (names.has(name.toLowerCase())) return `has the ${headerKey} '${name}' twice`
  names.add(name.toLowerCase())
  return undefined
}
