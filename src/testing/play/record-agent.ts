import { scrubSecrets } from '../../core/shields/scrub-secrets.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { AgentParts } from '../../core/live/agent-parts.js'
import { subAgentByDelegate } from '../../core/sub-agents/as-tool.js'
import type { RecordedAgent, RecordedTool } from './recording.js'

/** The recorded parts of an agent that is at hand. */
export type CompleteRecordedAgent = Required<Omit<RecordedAgent, 'team'>> & {
  team?: Record<string, CompleteRecordedAgent>
}

/** The parts of an agent that requests contain, as plain JSON, without secrets. */
export function toRecordedAgent(parts: AgentParts, config: AgentConfig): CompleteRecordedAgent {
  const members = (parts.tools.team?.list() ?? []) as readonly [string, AgentParts][]
  if (members.length === 0) return toRecordedParts(parts, config)
  const team = Object.fromEntries(
    members.map(([name, member]) => [name, toRecordedParts(member, config)] as const),
  )
  return { ...toRecordedParts(parts, config), team }
}

function toRecordedParts(parts: AgentParts, config: AgentConfig): CompleteRecordedAgent {
  const { instructions, tools, sampling, toolChoice, extraBody, output } = parts
  return toPlainJson({
    instructions,
    tools: tools.specs.map((spec): RecordedTool => {
      const tool = tools.get(spec.name)
      const below = tool?.delegate && subAgentByDelegate.get(tool.delegate)
      return {
        ...spec,
        ...(tool?.client && { client: true as const }),
        ...(tool?.defer && { defer: true as const }),
        ...(below && { agent: toRecordedAgent(below.parts, below.config) }),
        ...(tool?.handoff && { handoff: tool.handoff.to }),
      }
    }),
    settings: scrubSettings({
      sampling,
      ...(toolChoice !== undefined && { toolChoice }),
      extraBody,
    } as unknown as Json),
    output: output ? { name: output.name, schema: output.schema } : null,
    config,
  } as CompleteRecordedAgent)
}

function toPlainJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value
}

function scrubSettings(value: Json): JsonObject {
  const clean = (one: Json): Json => {
    if (typeof one === 'string') return scrubSecrets(one)
    if (Array.isArray(one)) return one.map(clean)
    if (typeof one !== 'object' || one === null) return one
    return Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, clean(inner)]))
  }
  return clean(value) as JsonObject
}

/** A difference between two values at one path. */
export interface LeafChange {
  path: string
  before: unknown
  after: unknown
}

/** Lists all differing leaves of two values. */
export function listLeafChanges(before: unknown, after: unknown, path = ''): LeafChange[] {
  if (isObject(before) && isObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap((key) =>
      listLeafChanges(before[key], after[key], path === '' ? key : `${path}.${key}`),
    )
  }
  return toCanonicalJson(before) === toCanonicalJson(after) ? [] : [{ path, before, after }]
}

/**
 * The configuration that a recorded run has now: what the agent has changed since it was recorded is changed, and what
 * the run alone was given stays.
 */
export function mergeConfig(
  run: AgentConfig,
  then: AgentConfig | undefined,
  now: AgentConfig,
  limits: Partial<AgentConfig['limits']>,
): AgentConfig {
  const base = then === undefined ? { ...now, limits: run.limits } : mergeChanges(run, then, now)
  return { ...base, limits: { ...base.limits, ...limits } }
}

function mergeChanges<Value extends object>(run: Value, then: Value, now: Value): Value {
  const keys = new Set([...Object.keys(run), ...Object.keys(now)]) as Set<keyof Value>
  const result = {} as Value
  for (const key of keys) {
    const [a, b, c] = [run[key], then[key], now[key]]
    if (isObject(a) && isObject(b) && isObject(c)) result[key] = mergeChanges(a, b, c) as Value[keyof Value]
    else result[key] = toCanonicalJson(b) === toCanonicalJson(c) ? a : c
  }
  return result
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** JSON with sorted keys. */
export function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isObject(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
