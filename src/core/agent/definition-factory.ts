import { canonicalForms } from '../../../guards/lib/canonical-json.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { AgentDefinition, AgentLabel } from '../sessions/agent-definition.js'

/** Whether two processes have the same agent, as far as its model can see: hashed once, and anew when its tools change. */
export function createDefinitionFactory({
  instructions,
  tools,
  skills,
  model,
  models,
}: AgentParts): (label: AgentLabel | undefined) => AgentDefinition {
  let specs: unknown
  let hash = ''
  return (label) => {
    if (specs !== tools.specs) {
      specs = tools.specs
      const shown = tools.specs.map(({ name, parameters }) => ({ name, parameters }))
      const text = JSON.stringify({
        instructions,
        tools: shown,
        model: [model.provider, model.model],
        ...(models && {
          models: Object.entries(models).map(([name, one]) => [name, one.provider, one.model]),
        }),
        ...(skills && { skills: skills.map(({ name, hash }) => [name, hash]) }),
      })
      hash = sha256(canonicalForms(text)?.exact ?? text).slice(0, 16)
    }
    const { name, version } = label ?? {}
    return { ...(name !== undefined && { name }), ...(version !== undefined && { version }), hash }
  }
}
