import type { JsonObject } from '../../../machines/agent/json.js'
import { StatewrightError } from '../../core/base/errors.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { needsPerson } from '../../core/tools/prepare-calls.js'
import type { Tool } from '../../core/tools/tool.js'
import { sampleValue } from './sample-input.js'

/** A tool of the agent, and inputs that it takes. */
export interface SampledTool {
  readonly name: string
  /** Whether it may run twice: it is `readOnly` or `idempotent`. */
  readonly mayRepeat: boolean
  /** Another input for another `n`, where `varies`. */
  readonly input: (n: number) => JsonObject
  readonly varies: boolean
}

/** What the checks need to know of an agent. */
export interface AgentFacts {
  /** Runs as soon as the model calls it; one that must not run twice before one that may. Null: there is none. */
  readonly tool: SampledTool | null
  /** A person has to approve each call. Null: there is none. */
  readonly askingTool: SampledTool | null
  /** What its answers have to be: the name of the format or the tool, and its schema. Null: words. */
  readonly output: { readonly name: string; readonly schema: JsonObject } | null
  /** The tools that no input could be made up for. */
  readonly unsampled: readonly string[]
}

export async function readAgentFacts(
  { tools, output }: AgentParts,
  inputs: Readonly<Record<string, JsonObject>>,
  context: unknown,
): Promise<AgentFacts> {
  for (const name of Object.keys(inputs)) {
    if (!tools.get(name)) throw inputError(name, `the agent has no tool '${name}'`)
  }
  const plain: SampledTool[] = []
  const asking: SampledTool[] = []
  const unsampled: string[] = []
  for (const name of tools.names) {
    const tool = tools.get(name)
    if (!tool || !isPlain(tool)) continue
    // oxlint-disable-next-line no-await-in-loop -- a schema may check asynchronously
    const sampled = await sampleTool(tool, inputs[name])
    // oxlint-disable-next-line no-await-in-loop -- as above
    if (sampled) ((await needsPerson(tool, sampled.input(0), context)) ? asking : plain).push(sampled)
    else unsampled.push(name)
  }
  return {
    tool: plain.toSorted((a, b) => rank(a) - rank(b))[0] ?? null,
    askingTool: asking.toSorted((a, b) => rank(a) - rank(b))[0] ?? null,
    output: output ? { name: output.name, schema: output.schema } : null,
    unsampled,
  }
}

const rank = ({ mayRepeat, varies }: SampledTool): number => (mayRepeat ? 2 : 0) + (varies ? 0 : 1)

/** Its calls are executed by the run, and the run goes on afterwards. */
function isPlain({ client, search, skill, defer, endsRun, maxCalls }: Tool): boolean {
  return !client && !search && !skill && !defer && !endsRun && maxCalls === undefined
}

async function sampleTool(tool: Tool, given: JsonObject | undefined): Promise<SampledTool | null> {
  const { name, parameters, readOnly, idempotent } = tool
  const input = (n: number): JsonObject => given ?? (sampleValue(parameters, n) as JsonObject)
  if (!(await accepts(tool, input(0)))) {
    if (given) throw inputError(name, `tool '${name}' does not take it`)
    return null
  }
  const varies = JSON.stringify(input(0)) !== JSON.stringify(input(1)) && (await accepts(tool, input(1)))
  return { name, mayRepeat: readOnly || idempotent, input: (n) => input(varies ? n : 0), varies }
}

async function accepts({ validate }: Tool, input: JsonObject): Promise<boolean> {
  try {
    return (await validate(input)).issues === undefined
  } catch {
    return false
  }
}

function inputError(name: string, why: string): StatewrightError {
  return new StatewrightError('bad_option', `checkAgent: inputs.${name}: ${why}.`, `inputs.${name}`)
}
