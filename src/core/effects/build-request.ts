import { getOrCreate } from '../base/values.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { findPlannedMessages } from './apply-plan.js'
import { fitMessages, attachSkills } from '../context/fit-messages.js'
import type { AgentParts, AskScope } from '../live/agent-parts.js'
import { leaveOutMessages } from '../models/leave-out.js'
import { formatSnippets } from '../memory/retrieved-text.js'
import type { ModelRequest, ToolSpec } from '../models/provider.js'
import { demandOutput, canTakeFormat } from '../structured/structured-output.js'
import type { Tool, ToolSearch } from '../tools/tool.js'
import type { ToolSet } from '../tools/tool-set.js'
import { type RetrievedSnippet, getLastUserText, getStepId } from '../../../machines/agent/messages.js'
import { BudgetError } from '../budgets/shared-budget.js'
import { parseSnippets } from '../memory/retriever.js'
import type { EffectScope } from '../live/runtime.js'
import { toRefusedSearch } from './bill.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import {
  classifyResponse,
  type ModelActorError,
  type ModelResponse,
} from '../../../machines/agent/model-response.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { askModel } from './ask-model.js'

export function buildRequest(parts: AgentParts, context: AgentContext, conclude: boolean): ModelRequest {
  const forbids = conclude && context.fit === null && canForbidCalls(parts)
  const toolChoice = conclude ? (forbids ? 'none' : undefined) : parts.toolChoice
  const { search } = parts.tools
  const transcript = leaveOutMessages(context.messages, context.refusals)
  const planned = conclude ? null : findPlannedMessages(context, transcript)
  const messages = planned ?? fitMessages(transcript, attachSkills(context, context.fit))
  const request: ModelRequest = {
    instructions:
      search && parts.tools.deferred.length > 0 ? addToolIndex(parts, search) : parts.instructions,
    messages: search ? search.wrap(messages) : messages,
    nudges: [
      ...(context.retrieved?.length ? [formatSnippets(context.retrieved)] : []),
      ...context.nudges,
      ...(conclude ? [finalAnswer] : []),
    ],
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

function addToolIndex({ instructions, tools: { deferred } }: AgentParts, search: ToolSearch): string | null {
  const index = getOrCreate(indexes, deferred, () => search.writeIndex(deferred))
  return [instructions, index].filter(Boolean).join('\n\n') || null
}

const indexes = new WeakMap<readonly Tool[], string>()

/** Appends loaded tools in loading order, to keep the cached prefix stable. */
function appendLoadedTools({ deferred }: ToolSet, offered: readonly ToolSpec[], loaded: readonly string[]) {
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

const appended = new WeakMap<
  readonly string[],
  { deferred: readonly Tool[]; offered: readonly ToolSpec[]; tools: readonly ToolSpec[] }
>()

/**
 * Tools are part of the cached prefix, so a request without them would be charged in full. A compacted transcript
 * needs the space. An answer that is itself a call must not be forbidden.
 */
function canForbidCalls({ model, tools: { offered: tools }, output, extraBody }: AgentParts): boolean {
  if (model.canForbidCalls !== true || tools.length === 0) return false
  if (Object.hasOwn(extraBody, 'tools') || Object.hasOwn(extraBody, 'tool_choice')) return false
  return output === undefined || canTakeFormat(output, { tools }, model)
}

const finalAnswer =
  'This is your final answer. You cannot call any more tools. Answer now with what you know.'

export async function retrieveSnippets(
  parts: AgentParts,
  { abort, self, runtime, context }: EffectScope,
): Promise<RetrievedSnippet[]> {
  const query = getLastUserText(context.messages)
  if (!parts.memory || query === '') return []
  runtime.steps.start(self, {
    step: { stepType: 'memory_retrieval', stepId: `${getStepId(context)}.memory` },
    toEnding: (retrievedContext: RetrievedSnippet[] | null) => ({ payload: { retrievedContext } }),
  })
  abort.throwIfAborted()
  const { memory } = parts
  const { telemetry } = runtime
  const retrieve = () => memory.retrieve(query, { signal: abort.signal })
  try {
    const found = telemetry ? telemetry.around({ type: 'memory_retrieval' }, retrieve) : retrieve()
    return parseSnippets(await found)
  } catch (error) {
    throw error instanceof BudgetError ? toRefusedSearch(error) : error
  }
}

export interface Summary {
  text: string | null
  problem: string
  usage: Usage | null
}

/** Emits no `stream_chunk`, only a step marked as a summary. Rejects only if it is stopped. */
export async function requestSummary(scope: AskScope, request: ModelRequest): Promise<Summary> {
  const { context, abort } = scope
  let written = ''
  try {
    return await askModel(scope, {
      request,
      purpose: 'summary',
      needsPrice: true,
      onDelta: (text) => {
        written += text
      },
      getKnownText: (partialText) => partialText || written,
      toOutput: async (response, price) => {
        const problem = findSummaryProblem(response, context.config)
        const text = problem === null ? response.text.trim() : null
        return { text, problem: problem ?? '', usage: await price() }
      },
    })
  } catch (error) {
    abort.throwIfAborted()
    const { message, usage } = error as ModelActorError
    return { text: null, problem: message, usage }
  }
}

function findSummaryProblem(response: ModelResponse, { completion }: AgentConfig): string | null {
  const kind = classifyResponse(response)
  if (kind === 'refusal' || kind === 'filtered') return 'the model refused'
  if (!response.complete && completion.onMissingEnd === 'retry') return 'the stream closed before the end'
  if (kind === 'truncated' || kind === 'truncatedCalls') return 'the answer was cut off at the output limit'
  if (response.toolCalls.length > 0) return 'the model called a tool'
  return response.text.trim() === '' ? 'the answer was empty' : null
}
