import type { JsonObject } from '../../../machines/agent/json.js'
import type { ModelProvider, ModelRequest, ResponseFormat, ToolSpec } from '../models/provider.js'
import { toStrictSchema } from './strict-schema.js'
import type { StructuredOutput } from './structured-output.js'

/**
 * The request with the output asked for: as its response format, or by one more tool. A last answer that is to come
 * without tools may still call that one. `deferred`: tools that may be loaded later, whose names it must not have.
 */
export function demandOutput(
  output: StructuredOutput,
  request: ModelRequest,
  model: ModelProvider,
  conclude: boolean,
  deferred: readonly { name: string }[] = [],
): ModelRequest {
  if (canTakeFormat(output, request, model)) return { ...request, responseFormat: getFormat(output) }
  const tool = getFinalToolSpec(
    output,
    deferred.length === 0 ? request.tools : [...request.tools, ...deferred],
  )
  return {
    ...request,
    tools: [...request.tools, tool],
    ...(conclude && { nudges: [...request.nudges, `Give the answer by calling ${tool.name}.`] }),
  }
}

/** The name of the tool that the request takes its answer by; undefined when it has none. */
export function findFinalTool({ schema }: StructuredOutput, { tools }: ModelRequest): string | undefined {
  // A tool of the user's own may have any name, but not this very object.
  return tools.find(({ parameters }) => parameters === schema)?.name
}

/** Whether the answer can be asked for as a format of the response, beside the tools that there are. */
export function canTakeFormat(
  { mode }: StructuredOutput,
  { tools }: Pick<ModelRequest, 'tools'>,
  model: ModelProvider,
): boolean {
  if (mode !== 'auto') return mode === 'response_format'
  return (
    model.structuredOutput === 'beside_tools' || (model.structuredOutput === 'alone' && tools.length === 0)
  )
}

const formats = new WeakMap<StructuredOutput, ResponseFormat>()

/** Strict where that changes nothing of what the schema accepts. Made with the first request, and kept. */
export function getFormat(output: StructuredOutput): ResponseFormat {
  const known = formats.get(output)
  if (known) return known
  const { name, schema } = output
  const strict = toStrictSchema(schema)
  const format = { name, schema: strict ?? schema, strict: strict !== null }
  formats.set(output, format)
  return format
}

const specs = new WeakMap<JsonObject, Map<string, ToolSpec>>()

/** The same object for the same name: providers and token counters cache tools by identity. */
function getFinalToolSpec(
  { name: wanted, schema }: StructuredOutput,
  tools: readonly { name: string }[],
): ToolSpec {
  const known = specs.get(schema) ?? new Map<string, ToolSpec>()
  specs.set(schema, known)
  const name = findFreeName(wanted, tools)
  const spec = known.get(name) ?? { name, description, parameters: schema }
  known.set(name, spec)
  return spec
}

const description =
  'Gives the final answer and ends the work. Call it once, alone, when everything else is done, instead of answering in text.'

function findFreeName(wanted: string, tools: readonly { name: string }[]): string {
  const taken = new Set(tools.map(({ name }) => name))
  let name = wanted
  for (let number = 2; taken.has(name); number++) name = `${wanted.slice(0, 60)}_${number}`
  return name
}
