import { objectRule } from '../base/values.js'
import type { SessionStore } from '../sessions/store/store.js'
import { ConfigError, configError } from '../base/errors.js'
import type { Agent } from '../agent/agent-options.js'
import type { AnyTools } from '../../../machines/agent/run-result.js'
import type { ContextCarrier } from '../tools/tool.js'
import { type AgentInternals, internalsByAgent } from '../agent/agent-internals.js'
import {
  acceptsDefinition,
  describeAgent,
  type AgentDefinition,
  type AgentLabel,
} from '../sessions/agent-definition.js'

/** Any agent, regardless of its output, tools and context. */
export type AnyAgent<Context = unknown> = Pick<
  Agent<unknown, AnyTools, Context>,
  'config' | 'machine' | '~context'
>

/**
 * An agent with a version. `accepts` lists the versions whose sessions the agent continues. By default, the agent
 * accepts only its own version.
 * @example
 * const billing: VersionedAgent = { agent: createAgent({ model, store: memoryStore() }), version: '4', accepts: ['3', '4'] }
 */
export interface VersionedAgent<Context = unknown> {
  agent: AnyAgent<Context>
  version: string
  accepts?: readonly string[]
}

/** A defined agent with its name. */
export interface DefinedAgent {
  readonly name: string
  readonly agent: AnyAgent
  /** The agent's version. Undefined if the agent has none, in which case it continues all sessions under its name. */
  readonly version: string | undefined
  readonly accepts: readonly string[] | undefined
}

/** The agents of a process, from `defineAgents`. `runSession` and the hosts continue sessions with them. */
export interface Agents<Context = unknown> extends ContextCarrier<Context> {
  readonly names: readonly string[]
  /** @throws {ConfigError} `unknown_agent` */
  get(name: string): DefinedAgent
  /** Finds the agent that continues a run of this definition. */
  findAgentFor(definition: AgentDefinition | null): DefinedAgent | undefined
}

/**
 * Names the agents of a process and determines which sessions they continue. The log of each run records the name and
 * version of its agent. A process runs only sessions of its agents, in the versions that they accept.
 *
 * - `support` without a version continues every session under its name.
 * - `billing` with `version: '4'` starts runs as version 4 and continues the versions in `accepts`, by default only its
 *   own. `billing` also accepts sessions from the time before it had a version.
 *
 * An agent has one name. Another call of `defineAgents` must give the agent the same name and version.
 * @example
 * const support = createAgent({ model, store: memoryStore() })
 * const billing = createAgent({ model, store: memoryStore(), instructions: 'You write invoices.' })
 * const agents = defineAgents({ support, billing: { agent: billing, version: '4', accepts: ['3', '4'] } })
 * @throws {ConfigError} `invalid_config`, naming the agent
 */
export function defineAgents<const Entries extends Readonly<Record<string, AnyAgent | VersionedAgent>>>(
  entries: Entries,
): Agents<ContextOfEntries<Entries>>
export function defineAgents(entries: Readonly<Record<string, AnyAgent | VersionedAgent>>): Agents {
  if (typeof entries !== 'object' || entries === null || Object.keys(entries).length === 0)
    throw configError('defineAgents needs at least one named agent: defineAgents({ support }).', 'agents')
  const all = new Map(Object.entries(entries).map(([name, entry]) => [name, checkEntry(name, entry)]))
  const seen = new Map<AgentInternals, string>()
  for (const [name, { agent, version }] of all) {
    const internals = internalsByAgent.get(agent) as AgentInternals
    const other = seen.get(internals)
    if (other !== undefined)
      throw configError(`'${name}' and '${other}' are the same agent. Give each name a separate agent.`, name)
    seen.set(internals, name)
    const { label } = internals
    if (label && (label.name !== name || label.version !== version))
      throw configError(
        `This agent is '${describeAgent(label)}' in another defineAgents, and its sessions are stored under that name and ` +
          'version. Use the same name and version in both, or create a second agent with ' +
          'createAgent.',
        name,
      )
  }
  // Registers either all agents or none.
  for (const [internals, name] of seen) {
    const label = toLabel(all.get(name) as DefinedAgent)
    const accepts = internals.label
      ? label.accepts && internals.label.accepts?.concat(label.accepts)
      : label.accepts
    internals.label = toLabel({ name, version: label.version, accepts })
  }
  const names = [...all.keys()]
  return {
    names,
    get: (name) => {
      const found = all.get(name)
      if (found) return found
      const message = `There is no agent '${name}' here. The agents are: ${names.join(', ')}.`
      throw new ConfigError('unknown_agent', message, 'agent')
    },
    findAgentFor: (definition) => {
      if (definition?.name === undefined) return all.size === 1 ? [...all.values()][0] : undefined
      const agent = all.get(definition.name)
      return agent && acceptsDefinition(toLabel(agent), definition) ? agent : undefined
    },
  }
}

type ContextOfEntries<Entries> =
  Wish<Entries[keyof Entries]> extends (context: infer Context) => void ? Context : unknown

/** Wraps the type in a parameter position, so that the requirements of all agents are intersected. */
type Wish<Entry> = Entry extends { agent: infer Versioned }
  ? Wish<Versioned>
  : Entry extends ContextCarrier<infer Context>
    ? (context: Context) => void
    : never

export function listLabels(agents: Agents): AgentLabel[] {
  return agents.names.map((name) => toLabel(agents.get(name)))
}

function toLabel({ name, version, accepts }: Omit<DefinedAgent, 'agent'>): AgentLabel {
  return { name, ...(version !== undefined && { version }), ...(accepts && { accepts }) }
}

function checkEntry(name: string, entry: AnyAgent | VersionedAgent): DefinedAgent {
  const isVersioned = typeof entry === 'object' && entry !== null && 'agent' in entry
  const { agent, version, accepts } = isVersioned ? entry : { agent: entry }
  if (!internalsByAgent.has(agent))
    throw configError(`'${name}' must be an agent created by createAgent, or { agent, version }.`, name)
  const isText = (value: unknown) => typeof value === 'string' && value !== '' && value.length <= 100
  if (!/^[\w.-]{1,100}$/.test(name))
    throw configError(
      `'${name}' cannot be an agent's name. Use 1 to 100 characters from A-Z a-z 0-9 _ . -`,
      name,
    )
  if (isVersioned && !isText(version))
    throw configError(
      `The version of '${name}' must be a string of 1 to 100 characters, such as '4'.`,
      `${name}.version`,
    )
  if (accepts !== undefined && !(Array.isArray(accepts) && accepts.every(isText)))
    throw configError(
      `accepts for '${name}' must be a list of versions, such as ['3', '4'].`,
      `${name}.accepts`,
    )
  if (version !== undefined && accepts !== undefined && !accepts.includes(version))
    throw configError(
      `accepts for '${name}' omits its own version '${version}', so it could not continue its own sessions.`,
      `${name}.accepts`,
    )
  return { name, agent, version, accepts: accepts ?? (version === undefined ? undefined : [version]) }
}

export const agentsRule = objectRule(['findAgentFor', 'names'], 'the return value of defineAgents({ … })')

/** @throws {ConfigError} `invalid_config` if the agents have no store or different stores */
export function getCommonStore(agents: Agents): SessionStore {
  const stores = new Set(agents.names.map((name) => internalsByAgent.get(agents.get(name).agent)?.store))
  const [store] = stores
  if (stores.size === 1 && store !== undefined) return store
  const message =
    'Agents whose sessions an engine runs must share one store. Pass the same store to each createAgent({ store }).'
  throw configError(message, 'store')
}
