import type { JsonObject } from '../../../../machines/agent/json.js'
import type { TokenUsage } from '../../../../machines/agent/usage.js'
import { saysError } from '../error-body.js'
import { bodyFailure } from '../failures.js'
import { ModelError } from '../provider.js'
import type { AnswerFormat, Fold } from './answer-format.js'
import { readContent, readReasoning } from './content.js'
import { type Delta, noDelta } from './delta.js'
import { refuseTooLarge } from './limits.js'
import { asList, asObject, asText } from '../as-json.js'
import { createReasoningDetails, type ReasoningDetails } from './reasoning-details.js'
import { createThinkSplitter } from './think-tags.js'
import { createToolCalls, type ToolCalls } from './tool-calls.js'
import { readUsage } from './usage.js'

/** Answers of the Chat Completions API. */
export const chatFormat: AnswerFormat = {
  called: 'chat completion',
  isWhole: (value) => Array.isArray(asObject(value)?.choices),
  createFold,
}

/** Chat Completions chunks (`chat.completion.chunk`, or one `chat.completion`), folded into one answer. */
export function createFold(): Fold {
  let text = ''
  let reasoning = ''
  let refusal = ''
  let finishReason: string | null = null
  let usage: TokenUsage | null = null
  let model: string | null = null
  let id = ''
  let lost = false
  let progress = 0
  let size = 0
  // Most answers have neither calls nor details.
  let calls: ToolCalls | null = null
  /** `function_call`, as the API was before it had tools. It may repeat what `tool_calls` say. */
  let oldCall: ToolCalls | null = null
  let details: ReasoningDetails | null = null
  const think = createThinkSplitter()

  function add(delta: Delta): Delta {
    text += delta.text
    reasoning += delta.reasoning
    return delta
  }

  function refuseErrors(chunk: JsonObject, choice: JsonObject | null): void {
    const body = isError(chunk) ? chunk : choice
    if (body === null || !isError(body)) return
    const said =
      body.finish_reason === 'error' && !saysError(body.error)
        ? { message: 'its finish reason is "error"' }
        : body
    throw new ModelError({ ...bodyFailure(said), partialText: text, usage })
  }

  function pushDelta(delta: JsonObject): Delta {
    const content = delta.content == null ? noDelta : readContent(delta.content)
    const shown = think.push(content.text)
    const thoughts = readReasoning(delta) + content.reasoning + shown.reasoning
    if (delta.refusal != null) refusal += asText(delta.refusal)
    if (delta.reasoning_details != null) (details ??= createReasoningDetails()).push(delta.reasoning_details)
    size += content.text.length + thoughts.length
    if (delta.tool_calls != null) size += (calls ??= createToolCalls()).push(delta.tool_calls)
    if (delta.function_call != null) {
      oldCall ??= createToolCalls()
      size += oldCall.push([{ index: 0, function: delta.function_call }])
    }
    refuseTooLarge(size)
    progress = size + refusal.length + (calls?.length ?? 0) + (oldCall?.length ?? 0) + (details?.length ?? 0)
    return add({ text: shown.text, reasoning: thoughts })
  }

  /** Some have a message beside the delta: the whole answer so far, or all of it where nothing else says it. */
  function pushChoice(choice: JsonObject, whole: boolean): Delta {
    const delta = asObject(choice.delta)
    const message = wholeMessage(choice.message)
    const [first, second] = whole ? [message, delta] : [delta, message]
    const added = first === null ? noDelta : pushDelta(first)
    const isLast = whole || first === null || Boolean(choice.finish_reason)
    return progress > 0 || second === null || !isLast ? added : pushDelta(second)
  }

  return {
    get progress() {
      return progress + (finishReason === null ? 0 : 1)
    },

    push(value, whole = false) {
      const chunk = asObject(value)
      if (chunk === null) return noDelta
      const choice = firstChoice(chunk.choices)
      model ??= asText(chunk.model) || null
      id ||= asText(chunk.id)
      usage =
        readUsage(chunk.usage) ??
        readUsage(choice?.usage) ??
        readUsage(asObject(chunk.x_groq)?.usage) ??
        usage
      refuseErrors(chunk, choice)
      if (choice === null) return noDelta
      const added = pushChoice(choice, whole)
      finishReason = asText(choice.finish_reason) || finishReason
      return added
    },

    lose() {
      lost ||= finishReason === null
    },

    // It goes on until `[DONE]`: the usage may come behind the finish reason.
    ended: false,

    get finished() {
      return finishReason !== null && !lost
    },

    flush: () => add(think.flush()),

    partial: () => ({ text, usage }),

    response(ended) {
      const reasoningDetails = details?.result() ?? []
      const toolCalls = calls?.result() ?? []
      return {
        text,
        reasoning,
        refusal: refusal || null,
        toolCalls: toolCalls.length > 0 ? toolCalls : (oldCall?.result() ?? []),
        finishReason,
        complete: !lost && (ended || finishReason !== null),
        usage,
        model,
        ...(reasoningDetails.length > 0 && { reasoningDetails }),
        ...(id !== '' && { id }),
      }
    },
  }
}

/** A `message` as the one delta of its answer: its calls are told apart by their place. */
function wholeMessage(message: unknown): JsonObject | null {
  const delta = asObject(message)
  if (delta?.tool_calls == null) return delta
  return {
    ...delta,
    tool_calls: asList(delta.tool_calls).flatMap((call, index): JsonObject[] => {
      const entry = asObject(call)
      return entry === null ? [] : [{ ...entry, index }]
    }),
  }
}

/** One answer is asked for: further choices are ignored. */
function firstChoice(choices: unknown): JsonObject | null {
  for (const item of asList(choices)) {
    const choice = asObject(item)
    if (choice !== null && (choice.index == null || choice.index === 0)) return choice
  }
  return null
}

function isError(body: JsonObject): boolean {
  return (
    saysError(body.error) ||
    body.object === 'error' ||
    body.type === 'error' ||
    body.finish_reason === 'error'
  )
}
