import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import {
  classifyResponse,
  type ModelOutput,
  type ModelResponse,
} from '../../../machines/agent/model-response.js'
import { truncate } from '../../../guards/lib/words.js'
import type { Json } from '../../../machines/agent/json.js'
import { getStepId } from '../../../machines/agent/messages.js'
import type { AgentRuntime, EffectScope } from '../live/runtime.js'
import { type AgentParts, type AskScope, toSpeaker } from '../live/agent-parts.js'
import { ModelError, type HostedCall } from '../models/provider.js'
import { findFinalTool } from '../structured/structured-output.js'
import { readOutput } from '../structured/read-output.js'
import { toPrepareOptions } from './prepare-options.js'
import type { ToolSearch } from '../tools/tool.js'
import { prepareCalls } from '../tools/prepare-calls.js'
import type { StepWork } from '../live/open-steps.js'
import { toPlainJson } from '../models/plain-json.js'
import { askModel } from './ask-model.js'
import {
  createCallNamer,
  createCallStream,
  clearReasoning,
  createClearedStream,
  type DeltaSink,
} from './call-stream.js'
import { applyPlan } from './apply-plan.js'
import { buildRequest, type Summary } from './build-request.js'
import { warnOfChangedSkills, takeChangedTools, warnOfChangedTools } from './check-run-start.js'
import { extendObject } from '../../../guards/lib/json.js'
import type { ModelStepResponse } from '../../../machines/agent/announcements.js'

/** One attempt at one response. Rejects with a failure as plain data. */
export function requestModel(
  agent: AgentParts,
  { input: { conclude }, abort, self, runtime, context }: { input: { conclude: boolean } } & EffectScope,
): Promise<ModelOutput> {
  const { config, features } = context
  const stream = runtime.openStream(getStepId(context), context.attempt)
  // The concluding request is not a step, so it has no plan.
  const parts = applyPlan(toSpeaker(agent, context.speaker), conclude ? null : context)
  warnOfChangedSkills(runtime, context.skills, parts.skills)
  warnOfChangedTools(runtime, context.speaker, parts.tools.specs)
  const request = buildRequest(parts, context, conclude)
  const finalTool = parts.output && findFinalTool(parts.output, request)
  const scope = { parts, runtime, context, abort }
  const shown: DeltaSink = features.outputShields ? createClearedStream(scope, stream) : stream
  // Shields that may withhold a call have to see the complete call.
  const isScreened = features.outputShields || features.callShields
  const streamsCalls = request.stream && !isScreened && runtime.hasListener('tool_call_delta')
  const calls = streamsCalls
    ? createCallStream(
        stream,
        [finalTool, parts.tools.search?.dispatcher?.name],
        createCallNamer(runtime, context),
      )
    : null
  const isFirst = context.steps === 0
  const begin = (): void => {
    runtime.steps.start(self, createInferenceStep(context))
  }
  return askModel(scope, {
    request,
    purpose: conclude ? 'conclusion' : 'answer',
    needsPrice: isFirst || context.speaker != null || (!conclude && context.plan?.model !== undefined),
    onSend: () => {
      const ready = isFirst ? parts.output?.ready?.() : undefined
      if (ready) return ready.then(begin)
      begin()
      return undefined
    },
    onDelta: (text, reasoning) => shown.write(text, reasoning),
    onToolCallDelta: calls === null ? undefined : (delta) => calls.write(delta),
    onHostedCall: createHostedSteps(runtime, self, context),
    onFallback: () => {
      shown.restart()
      calls?.restart()
    },
    // Uncleared text must not be stored either.
    getKnownText: (partialText) => (features.outputShields ? stream.text : partialText || stream.text),
    toOutput: async (response, price) => {
      const final = unwrapCalls(readFinalAnswer(response, finalTool), parts.tools.search)
      if (!request.stream) shown.write(final.text, final.reasoning)
      // If the answer is the arguments of a call, it is not streamed but emitted in one piece.
      else if (final !== response && response.text === '') shown.write(final.text, '')
      if (shown.finish) await shown.finish()
      if (!response.complete && config.completion.onMissingEnd === 'retry') throw incompleteError(response)
      const dropped = describeDroppedCalls(response, finalTool)
      if (dropped !== null) runtime.emit({ type: 'warning', code: 'calls_dropped', message: dropped })
      const usage = await price()
      const changedTools = takeChangedTools(runtime)
      const changes = changedTools && { changedTools }
      if (!features.outputShields) {
        const output = toModelOutput(scope, { ...final, usage })
        return changes ? { ...(await output), ...changes } : output
      }
      const cleared = await clearReasoning(scope, final)
      const output = await toModelOutput(scope, { ...cleared, usage })
      return { ...output, ...changes, reasoningCleared: true }
    },
  })
}

function unwrapCalls(response: ModelResponse, search: ToolSearch | undefined): ModelResponse {
  if (search?.dispatcher === undefined || response.toolCalls.length === 0) return response
  return { ...response, toolCalls: response.toolCalls.map(search.unwrap) }
}

/** Converts a response to the output of the actor. Synchronous unless a check is asynchronous. */
function toModelOutput(
  { parts, runtime, context, abort }: AskScope,
  response: ModelOutput['response'],
): ModelOutput | Promise<ModelOutput> {
  const { output, tools } = parts
  const hasCalls = response.toolCalls.length > 0
  const calls = hasCalls
    ? prepareCalls(response.toolCalls, tools, toPrepareOptions(parts, context, runtime.binding, abort))
    : []
  const kind = classifyResponse(response)
  const isOutput = output !== undefined && (kind === 'answer' || kind === 'empty')
  if (!isOutput && !(calls instanceof Promise)) return { response, calls }
  return (async () => {
    const prepared = { response, calls: await calls }
    if (!isOutput) return prepared
    const reading = await readOutput(response.text, output)
    return { ...prepared, outputProblem: reading.ok ? null : reading.problem }
  })()
}

function incompleteError(response: ModelResponse): ModelError {
  return new ModelError({
    kind: 'incomplete',
    code: 'incomplete_response',
    message: 'The stream closed with neither a finish reason nor [DONE], so the answer is not complete.',
    partialText: response.text,
    usage: response.usage,
  })
}

/** Ends an open step with the request. Input and output are omitted if shields screen model content. */
function createHostedSteps(runtime: AgentRuntime, self: AnyActorRef, context: AgentContext) {
  /** Open steps by call id. Created lazily, because most answers have no hosted calls. */
  let open: Map<string, StepWork<'hosted', unknown>> | undefined
  const { outputShields, callShields } = context.features
  let begun = 0
  return ({ id, name, item }: Readonly<Record<keyof HostedCall, unknown>>): void => {
    if (typeof id !== 'string' || typeof name !== 'string') return
    open ??= new Map()
    const known = open.get(id)
    if (item === null && known === undefined) {
      begun += 1
      const stepId = `${getStepId(context)}.hosted.${begun}`
      const step = { stepType: 'hosted', stepId, name: truncate(name, 100) } as const
      const work: StepWork<'hosted', unknown> = { step, toEnding: () => ({ payload: { item: null } }) }
      open.set(id, work)
      runtime.steps.start(self, work)
    } else if (item !== null && known !== undefined) {
      open.delete(id)
      const payloadItem: Json | null = outputShields || callShields ? null : (toPlainJson(item) ?? null)
      runtime.steps.end(known, { payload: { item: payloadItem } })
    }
  }
}

/** Makes the arguments of the final tool's call the text, and the text reasoning. Drops other calls. */
function readFinalAnswer(response: ModelResponse, finalTool: string | undefined): ModelResponse {
  const call = response.toolCalls.find(({ function: { name } }) => name === finalTool)
  if (call === undefined) return response
  const { text, reasoning } = response
  return {
    ...response,
    text: call.function.arguments,
    reasoning: [reasoning, text].filter(Boolean).join('\n\n'),
    toolCalls: [],
  }
}

function describeDroppedCalls(response: ModelResponse, finalTool: string | undefined): string | null {
  const names = response.toolCalls.map(({ function: { name } }) => name)
  const answer = names.findIndex((name) => name === finalTool)
  const others = names.filter((_, index) => index !== answer)
  if (answer < 0 || others.length === 0) return null
  return `The model gave its final answer together with other calls, which are not executed: ${others.join(', ')}.`
}

/** Creates the step of one attempt at an answer. If shields screen answers or calls, uncleared content is omitted. */
function createInferenceStep(context: AgentContext): StepWork<'inference', ModelOutput> {
  const { attempt, features } = context
  const stepId = getStepId(context)
  return {
    step: { stepType: 'inference', stepId, attempt },
    isUncleared: ({ pendingAnswer }) => pendingAnswer?.stepId === stepId,
    toEnding: (output, now) => {
      if (output === null) return { payload: { modelResponse: null } }
      const { response } = output
      const words = features.outputShields ? getClearedWords(response, now) : getWords(response)
      const isWithheld = words.text === null || features.callShields
      const calls = response.toolCalls.length > 0 && isWithheld ? null : response.toolCalls
      const { finishReason, model, usage } = response
      const modelResponse = extendObject(words, { toolCalls: calls, finishReason, model, usage })
      return { payload: { modelResponse } }
    },
  }
}

type AnswerWords = Pick<ModelStepResponse, 'text' | 'refusal'>

function getWords({ text, refusal }: Pick<ModelOutput['response'], 'text' | 'refusal'>): AnswerWords {
  return { text, ...(refusal !== null && refusal !== '' && { refusal }) }
}

/** The text of an answer, if output shields have cleared it into the transcript. */
function getClearedWords(
  response: ModelOutput['response'],
  { pendingAnswer, messages, batchAt }: AgentContext,
): AnswerWords {
  const { text, refusal } = getWords(response)
  if (text === '' && refusal === undefined) return { text }
  const message = messages[batchAt]
  // If an answer is uncleared, the message in its place is marked in `data`.
  if (pendingAnswer !== null || message?.role !== 'assistant' || message.data !== undefined)
    return { text: null }
  return getWords({ text: message.content ?? '', refusal: message.refusal ?? null })
}

export function createSummaryStep(
  context: AgentContext,
  written: () => Summary | null,
): StepWork<'inference', unknown> {
  return {
    step: { stepType: 'inference', stepId: `${getStepId(context)}.summary`, attempt: 1, summary: true },
    toEnding: (output) => {
      const summary = output === null ? null : written()
      if (summary === null) return { payload: { modelResponse: null } }
      const { text, problem, usage } = summary
      if (text === null) {
        const error = { code: 'no_summary', message: problem }
        return { outcome: 'error', error, payload: { modelResponse: null } }
      }
      const shown = context.features.outputShields ? null : text
      const modelResponse = { text: shown, toolCalls: [], finishReason: null, model: null, usage }
      return { payload: { modelResponse } }
    },
  }
}
