import { getOrCreate, memoize } from '../base/values.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { createActorError } from '../base/errors.js'
import type { Message } from '../../../machines/agent/messages.js'
import { type StepPlan, findNextPlan } from '../../../machines/agent/step-plan.js'
import type { AgentParts } from '../live/agent-parts.js'
import { getMarkedModel } from '../models/leave-out.js'
import type { ModelProvider, ToolSpec } from '../models/provider.js'
import type { ToolSet } from '../tools/tool-set.js'

/** Applies a step's plan to the agent's configuration. Throws a plain failure if the planned model does not exist. */
export function applyPlan(base: AgentParts, context: AgentContext | null): AgentParts {
  const plan = context && findNextPlan(context)
  const parts = base.models ? { ...base, model: getMarkedModel(base.model) } : base
  const forked = context?.terms?.instructions
  if (plan === null && forked === undefined) return parts
  const { model, tools, toolChoice, instructions, sampling } = {
    ...plan,
    ...(forked !== undefined && { instructions: forked }),
  } as Partial<StepPlan>
  return {
    ...parts,
    ...(model !== undefined && { model: getModel(parts, model) }),
    ...(tools && { tools: narrowTools(parts.tools, tools) }),
    toolChoice: toolChoice ?? (tools ? keepChoice(parts, tools) : parts.toolChoice),
    ...(instructions !== undefined && {
      instructions: [instructions, parts.skillIndex].filter(Boolean).join('\n\n') || null,
    }),
    ...(sampling && { sampling: { ...parts.sampling, ...sampling } }),
  }
}

function keepChoice({ toolChoice }: AgentParts, tools: readonly string[]): AgentParts['toolChoice'] {
  const isLeft = typeof toolChoice === 'object' ? tools.includes(toolChoice.name) : tools.length > 0
  return isLeft ? toolChoice : undefined
}

/** Returns the planned model. The plan may come from another process with other models. */
function getModel({ models = {} }: AgentParts, name: string): ModelProvider {
  const model = Object.hasOwn(models, name) ? models[name] : undefined
  if (model !== undefined) return getMarkedModel(model)
  throw createActorError(
    'unknown_model',
    `This step was planned for the model '${name}', which this agent does not have. Add it to models in createAgent.`,
  )
}

/** The tools of the request. The search and call tools are offered only if there are deferred tools. */
function narrowTools(set: ToolSet, names: readonly string[]): ToolSet {
  const dispatcher = set.search?.dispatcher?.name
  const deferred = set.deferred.filter(({ name }) => names.includes(name))
  const isAllowed = ({ name }: { name: string }): boolean =>
    names.includes(name) || (name === dispatcher && deferred.length > 0)
  return {
    ...set,
    get: (name) => set.get(name),
    // Cached, because providers and token counters cache lists of tools by identity.
    offered: getOrCreate(listNarrowed(set.offered), names.join(), () => set.offered.filter(isAllowed)),
    deferred,
  }
}

const listNarrowed = memoize((_offered: readonly ToolSpec[]) => new Map<string, readonly ToolSpec[]>())

export function findPlannedMessages(
  context: AgentContext,
  transcript: readonly Message[] = context.messages,
): readonly Message[] | null {
  const messages = findNextPlan(context)?.messages
  if (messages === undefined) return null
  const known = new Map(transcript.map((message) => [message.id, message]))
  return messages.flatMap((one) => (typeof one === 'string' ? (known.get(one) ?? []) : [one]))
}
