import { canonicalForms } from '../../../guards/lib/canonical-json.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { AgentDefinition, AgentLabel } from '../sessions/agent-definition.js'

/** Whether two processes have the same agent, as far as its model can see: hashed once, and anew when its tools change. */
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
    ...(models && {
      models: Object.entries(models).map(([name, one]) => [name, one.provider, one.model]),
    }),
    ...(skills && { skills: skills.map(({ name, hash }) => [name, hash]) }),
  }
}
