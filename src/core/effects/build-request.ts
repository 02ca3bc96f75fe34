import type { AgentContext } from '../../../machines/agent/context.js'
import { findPlannedMessages } from './apply-plan.js'
import { attachSkills } from '../context/attach-skills.js'
import { fitMessages } from '../context/fit-messages.js'
import type { AgentParts } from '../live/agent-parts.js'
import { leaveOutMessages } from '../models/leave-out.js'
import { formatSnippets } from '../memory/retrieved-text.js'
import type { ModelRequest, ToolSpec } from '../models/provider.js'
import { demandOutput, canTakeFormat } from '../structured/demand-output.js'
import type { Tool, ToolSearch } from '../tools/tool.js'
import type { ToolSet } from '../tools/tool-set.js'

/** The next request. `conclude` asks for a last answer, in which no tool can be called. */
export function buildRequest(parts: AgentParts, context: AgentContext, conclude: boolean): ModelRequest {
  const forbids = conclude && context.fit === null && canForbidCalls(parts)
  const toolChoice = conclude ? (forbids ? 'none' : undefined) : parts.toolChoice
  const { search } = parts.tools
  const transcript = leaveOutMessages(context.messages, context.refused)
  const planned = conclude ? null : findPlannedMessages(context, transcript)
  const messages = planned ?? fitMessages(transcript, attachSkills(context, context.fit))
  const request: ModelRequest = {
    instructions:
      search && parts.tools.deferred.length > 0 ? addToolIndex(parts, search) : parts.instructions,
    messages: search ? search.wrap(messages) : messages,
    nudges: [...formatRetrieved(context), ...context.nudges, ...(conclude ? [lastAnswer] : [])],
    tools: conclude && !forbids ? [] : parts.tools.offered,
    ...(toolChoice !== undefined && { toolChoice }),
    sampling: parts.sampling,
    extraBody: parts.extraBody,
    stream: context.config.stream,
  }
  const whole = parts.output
    ? demandOutput(parts.output, request, parts.model, conclude, parts.tools.deferred)
    : request
  const offersAll = search?.loading !== 'append' || context.loaded.length === 0 || (conclude && !forbids)
  return offersAll ? whole : { ...whole, tools: appendLoadedTools(parts.tools, whole.tools, context.loaded) }
}

/** The list of deferred tools comes last in the instructions; it is written once for the same tools. */
function addToolIndex({ instructions, tools: { deferred } }: AgentParts, search: ToolSearch): string | null {
  let index = indexes.get(deferred)
  if (index === undefined) {
    index = search.writeIndex(deferred)
    indexes.set(deferred, index)
  }
  return [instructions, index].filter(Boolean).join('\n\n') || null
}

const indexes = new WeakMap<readonly Tool[], string>()

/** Loaded tools come last, in the order in which they were loaded: providers keep what comes before in their caches. */
function appendLoadedTools(
  { deferred }: ToolSet,
  offered: readonly ToolSpec[],
  loaded: readonly string[],
): readonly ToolSpec[] {
  const known = appended.get(loaded)
  if (known?.deferred === deferred && known.offered === offered) return known.tools
  const added = loaded.flatMap((wanted) => {
    const tool = deferred.find(({ name }) => name === wanted)
    return tool ? [{ name: tool.name, description: tool.description, parameters: tool.parameters }] : []
  })
  const tools = [...offered, ...added]
  appended.set(loaded, { deferred, offered, tools })
  return tools
}

/** Providers and token counters know lists of tools by identity. */
const appended = new WeakMap<
  readonly string[],
  { deferred: readonly Tool[]; offered: readonly ToolSpec[]; tools: readonly ToolSpec[] }
>()

/**
 * Tools come first in what providers keep in their caches: a request without them would be paid for in full. They stay where
 * the model is known to heed that none may be called, and where the answer itself is no call; not where the transcript had to
 * be fitted, whose room is scarce.
 */
function canForbidCalls({ model, tools: { offered: tools }, output, extraBody }: AgentParts): boolean {
  if (model.canForbidCalls !== true || tools.length === 0) return false
  if (Object.hasOwn(extraBody, 'tools') || Object.hasOwn(extraBody, 'tool_choice')) return false
  return output === undefined || canTakeFormat(output, { tools }, model)
}

/** The retrieved snippets go with the request as data; the transcript does not keep them. */
function formatRetrieved({ retrieved }: AgentContext): string[] {
  return retrieved && retrieved.length > 0 ? [formatSnippets(retrieved)] : []
}

const lastAnswer = 'This is your last answer: no more tools can be called. Answer now with what you know.'
