import type { SessionStore } from '../sessions/store/store.js'
import type { AgentLabel, AgentDefinition } from '../sessions/agent-definition.js'
import { noStoreError } from '../sessions/session-errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { Agent } from './agent-options.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentInput, Features } from '../../../machines/agent/context.js'
import type { Binding } from '../live/runtime.js'
import type { StoredAgent, StoredRuns } from './stored-runs.js'
import { canonicalForms } from '../../../guards/lib/canonical-json.js'
import { sha256 } from '../../../guards/lib/sha256.js'

export interface AgentInternals extends StoredAgent {
  store: SessionStore | undefined
  /** The same store, with the time limit from the configuration. */
  limitedStore: SessionStore | undefined
  /** @throws {UsageError} `no_store` */
  openStored: () => Promise<StoredRuns>
  parts: AgentParts
  openInput: (input: unknown) => { input: AgentInput; binding: Binding }
}

/** Only agents from `createAgent` have internals. Other implementations of the interface have none. */
export const internalsByAgent = new WeakMap<Pick<Agent, 'config'>, AgentInternals>()

/** The same internals, keyed by the agent's machine, for other machines that invoke the agent's machine. */
export const internalsByMachine = new WeakMap<object, AgentInternals>()

/** @throws {UsageError} `no_store` */
export function getStore({ limitedStore }: Pick<AgentInternals, 'limitedStore'>): SessionStore {
  if (limitedStore) return limitedStore
  throw noStoreError()
}

export function getFeatures(
  { guards, shields, memory, output, stopWhen, tools, ...own }: AgentParts,
  config: AgentConfig,
): Features {
  // Each agent that may receive the session can have a `prepareStep`.
  const members = (tools.team?.list() ?? []).map(([, agent]) => agent as Partial<AgentParts>)
  const preparesSteps = [own, ...members].some((each) => each.prepareStep ?? each.writeInstructions)
  return {
    inputShields: shields.input.length > 0,
    outputShields: shields.output.length > 0,
    callShields: shields.toolInput.length > 0,
    resultShields: shields.toolOutput.length > 0,
    retrieval: memory !== undefined,
    fitting: config.context.window > 0,
    userGuards: guards.length > 0,
    structuredOutput: output !== undefined,
    ...(preparesSteps && { prepareStep: true as const }),
    ...(stopWhen && { stopWhen: true as const }),
  }
}

/** The hash of what an agent's model sees, so that processes can compare agents. Cached until the tools change. */
export function createDefinitionFactory(
  parts: AgentParts,
): (label: AgentLabel | undefined) => AgentDefinition {
  let hashed: readonly unknown[] = []
  let hash = ''
  return (label) => {
    const team = (parts.tools.team?.list() ?? []) as readonly [string, AgentParts][]
    const specs = [parts, ...team.map(([, member]) => member)].map(({ tools }) => tools.specs)
    if (specs.length !== hashed.length || specs.some((list, i) => list !== hashed[i])) {
      hashed = specs
      const members = team.map(([name, member]) => [name, describeParts(member)] as const)
      const text = JSON.stringify({
        ...describeParts(parts),
        ...(members.length > 0 && { team: Object.fromEntries(members) }),
      })
      hash = sha256(canonicalForms(text)?.exact ?? text).slice(0, 16)
    }
    const { name, version } = label ?? {}
    return { ...(name !== undefined && { name }), ...(version !== undefined && { version }), hash }
  }
}

function describeParts({ instructions, tools, skills, model, models }: AgentParts): object {
  const shown = tools.specs.map(({ name, parameters }) => ({ name, parameters }))
  return {
    instructions,
    tools: shown,
    model: [model.provider, model.model],
    ...(models && { models: Object.entries(models).map(([name, one]) => [name, one.provider, one.model]) }),
    ...(skills && { skills: skills.map(({ name, hash }) => [name, hash]) }),
  }
}
