import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError } from '../../../machines/agent/model-response.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { Json } from '../../../machines/agent/json.js'
import type { StepPlan } from '../../../machines/agent/step-plan.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { createActorError, describeError, rememberThrown } from '../base/errors.js'
import { freezeOnce } from '../base/values.js'
import { describeFound, findNearestName } from '../base/text.js'
import { parseJsonOr } from '../base/json.js'
import { hintFor } from '../config/other-names.js'
import { resolveRequestOptions } from '../config/request-options.js'
import type { AgentParts, StepQuestion, StepResult } from '../live/agent-parts.js'
import type { EffectScope } from '../live/runtime.js'
import { readConversation } from '../sessions/input-history.js'

/** Rejects with a plain failure that names the invalid option and key. */
export async function prepareStep(parts: AgentParts, { runtime, context }: EffectScope): Promise<StepPlan> {
  const app = runtime.binding.context
  const step = context.steps + 1
  const { writeInstructions } = parts
  const written = writeInstructions && (await ask('instructions', () => writeInstructions(app)))
  if (writeInstructions && typeof written !== 'string')
    throw createFailure('instructions', 'must return a string.')
  const question: StepQuestion = {
    step,
    messages: Object.freeze(context.messages.map(freezeOnce)),
    usage: freezeOnce({ ...context.usage.run }),
    context: app,
    lastResults: freezeOnce(listLastResults(context)),
  }
  const settings = parts.prepareStep && (await ask('prepareStep', () => parts.prepareStep?.(question)))
  return {
    step,
    ...(typeof written === 'string' && { instructions: written }),
    ...readStepSettings(settings ?? {}, parts, question, runtime.time.now()),
  }
}

async function ask(option: 'instructions' | 'prepareStep', question: () => unknown): Promise<unknown> {
  try {
    return await question()
  } catch (error) {
    throw rememberThrown(createFailure(option, `threw: ${describeError(error)}.`), error)
  }
}

const keys = ['model', 'tools', 'toolChoice', 'instructions', 'sampling', 'messages'] as const

function readStepSettings(
  returned: unknown,
  parts: AgentParts,
  { messages: transcript }: StepQuestion,
  now: number,
): Omit<StepPlan, 'step'> {
  if (typeof returned !== 'object' || returned === null || Array.isArray(returned))
    return refuse(`must return an object, such as { model, tools }, or nothing.`)
  const unknown = Object.keys(returned).find((key) => !(keys as readonly string[]).includes(key))
  if (unknown !== undefined) refuse(`returned the unknown key '${unknown}'. ${hintFor(unknown, keys)}`)
  const { model, tools, messages, ...options } = returned as Record<(typeof keys)[number], unknown>
  return {
    ...(model !== undefined && { model: readModel(model, parts) }),
    ...(tools !== undefined && { tools: readTools(tools, parts) }),
    ...readOptions(options, (tools as string[] | undefined) ?? parts.tools.names),
    ...(messages !== undefined && { messages: readMessages(messages, transcript, now) }),
  }
}

function refuse(problem: string): never {
  throw createFailure('prepareStep', problem)
}

function readModel(model: unknown, { models = {} }: AgentParts): string {
  if (typeof model === 'string' && Object.hasOwn(models, model)) return model
  const names = Object.keys(models)
  const known = names.length === 0 ? 'createAgent has no models' : `the models are ${names.join(', ')}`
  return refuse(`returned the model ${describeFound(model)}, but ${known}.${hint(model, names)}`)
}

function readTools(tools: unknown, { tools: set }: AgentParts): string[] {
  if (!Array.isArray(tools)) return refuse('returned tools that are not a list of names.')
  const unknown = (tools as unknown[]).find((name) => typeof name !== 'string' || set.get(name) === undefined)
  if (unknown === undefined) return [...new Set(tools as string[])]
  return refuse(
    `returned the tool ${describeFound(unknown)}, which this agent does not have.${hint(unknown, set.names)}`,
  )
}

function readOptions(options: object, tools: readonly string[]) {
  try {
    const { toolChoice, instructions, sampling } = resolveRequestOptions(omitUndefined(options))
    if (typeof toolChoice === 'object' && !tools.includes(toolChoice.name))
      refuse(`returned the toolChoice '${toolChoice.name}', which is not one of this step's tools.`)
    if (toolChoice === 'required' && tools.length === 0)
      refuse("returned the toolChoice 'required' without tools.")
    return omitUndefined({ toolChoice, instructions, sampling: sampling && { ...sampling } })
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return refuse(`returned an invalid request option: ${error.message}`)
  }
}

/** Reads a list of messages. Messages from the transcript are stored by id, other messages in full. */
function readMessages(messages: unknown, transcript: readonly Message[], now: number): (string | Message)[] {
  if (!Array.isArray(messages) || messages.length === 0)
    return refuse('returned messages that are not a non-empty list.')
  const items = messages as unknown[]
  const known = new Set<unknown>(transcript)
  const whole = readWhole(items, now)
  const isInOrder = whole.every((message, i) => getCallId(message) === getCallId(items[i]))
  if (whole.length !== items.length || !isInOrder) return whole
  return whole.map((message, i) =>
    known.has(items[i]) ? (items[i] as Message).id : { ...message, id: `planned-${i + 1}` },
  )
}

/** Validates a list of messages. Each call must have its result, and the last message must not be from the model. */
function readWhole(items: readonly unknown[], now: number): Message[] {
  const last = items.at(-1) as { role?: unknown } | null | undefined
  try {
    // The input of a run ends with a user message. A request may also end with tool results.
    const isAfterCalls = last?.role === 'tool' || (last as { internal?: unknown } | null)?.internal === true
    const { history, newMessages } = readConversation(isAfterCalls ? [...items, closing] : items, now)
    const own = isAfterCalls ? newMessages.slice(0, -1) : newMessages
    const planned = own.map((message, i): Message => {
      return { role: 'user', id: `m${history.length + i + 1}`, createdAt: now, ...message }
    })
    return [...history, ...planned]
  } catch (error) {
    return refuse(`returned messages that are not valid in a request: ${describeError(error)}`)
  }
}

function getCallId(message: unknown): unknown {
  return (message as { tool_call_id?: unknown }).tool_call_id
}

const closing = { role: 'user', content: '…' }

function listLastResults({ messages, steps }: AgentContext): StepResult[] {
  const at = messages.findLastIndex(({ role }) => role === 'assistant')
  const asking = messages[at]
  if (steps === 0 || asking?.role !== 'assistant') return []
  return messages.slice(at + 1).flatMap((message): StepResult[] => {
    if (message.role !== 'tool') return []
    const call = asking.tool_calls?.find(({ id }) => id === message.tool_call_id)
    if (call === undefined) return []
    const { id, function: called } = call
    const status = (message.data?.['status'] ?? 'ok') as StepResult['status']
    const input = parseJsonOr(called.arguments, null) as Json
    return [{ id, name: called.name, arguments: input, status, content: message.content }]
  })
}

function hint(value: unknown, names: readonly string[]): string {
  const near = typeof value === 'string' ? findNearestName(value, names) : undefined
  return near === undefined ? '' : ` Did you mean ${near}?`
}

function createFailure(option: 'instructions' | 'prepareStep', problem: string): ModelActorError {
  const code = option === 'instructions' ? 'instructions_failed' : 'prepare_step_failed'
  return createActorError(code, `${option} ${problem}`)
}
