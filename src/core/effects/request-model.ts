import type { AnyActorRef } from 'xstate'
import type { AgentContext } from '../../../machines/agent/context.js'
import { kindOf, type ModelOutput, type ModelResponse } from '../../../machines/agent/response.js'
import type { CallAbort } from '../base/abort.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { Live } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { ModelError } from '../models/provider.js'
import { finalToolOf } from '../structured/demand-output.js'
import { droppedCalls, finalAnswer } from '../structured/final-answer.js'
import { readOutput } from '../structured/read-output.js'
import { prepareCalls } from '../tools/prepare.js'
import { askModel } from './ask-model.js'
import { clearedReasoning } from './cleared-reasoning.js'
import { clearedStream, type DeltaSink } from './cleared-stream.js'
import { hostedSteps } from './hosted-steps.js'
import { inference } from './inference.js'
import { requestOf } from './request-of.js'

/** `self`: the actor that does it; `stream`: where its deltas go. */
export interface RequestScope {
  /** Whether this is the last request, in which no tool can be called. */
  conclude: boolean
  abort: CallAbort
  self: AnyActorRef
  live: Live
  context: AgentContext
  stream: AnswerStream
}

/**
 * One attempt at one response. Deltas are emitted as they come; what the machine learns is the whole answer, or a
 * failure as plain data.
 */
export function requestModel(
  parts: AgentParts,
  { conclude, abort, self, live, context, stream }: RequestScope,
): Promise<ModelOutput> {
  const { config, features } = context
  const request = requestOf(parts, context, conclude)
  // A signal is made for those alone who look at what the model says.
  const scene = features.outputShields ? { live, context, signal: abort.signal } : null
  const shown: DeltaSink = scene ? clearedStream(parts, stream, scene) : stream
  const isFirst = context.steps === 0
  const begin = (): void => {
    live.steps.start(self, inference(context))
  }
  return askModel(
    { parts, live, context, abort },
    {
      request,
      purpose: conclude ? 'conclusion' : 'answer',
      needsPrice: isFirst,
      onSend: () => {
        const ready = isFirst ? parts.output?.ready?.() : undefined
        if (ready) return ready.then(begin)
        begin()
        return undefined
      },
      onDelta: (text, reasoning) => {
        shown.write(text, reasoning)
      },
      onHosted: hostedSteps(live, self, context),
      onAnother: () => {
        shown.restart()
      },
      // What no shield has cleared is not kept either.
      heard: (partialText) => (features.outputShields ? stream.text : partialText || stream.text),
      take: async (response, price) => {
        const finalTool = parts.output && finalToolOf(parts.output, request)
        const final = finalAnswer(response, finalTool)
        if (!request.stream) shown.write(final.text, final.reasoning)
        // The arguments of a call are not streamed; where they are the answer, they come as one piece.
        else if (final !== response && response.text === '') shown.write(final.text, '')
        if (shown.finish) await shown.finish()
        if (!response.complete && config.completion.onMissingEnd === 'retry') throw incomplete(response)
        const dropped = droppedCalls(response, finalTool)
        if (dropped !== null) live.emit({ type: 'warning', code: 'calls_dropped', message: dropped })
        const usage = await price()
        if (scene === null) return outputOf(parts, { ...final, usage }, context, live.binding.context)
        const cleared = await clearedReasoning(parts, scene, final)
        const output = await outputOf(parts, { ...cleared, usage }, context, live.binding.context)
        return { ...output, reasoningCleared: true }
      },
    },
  )
}

/** At once where nothing has to be waited for. */
function outputOf(
  { output, tools, clock }: AgentParts,
  response: ModelOutput['response'],
  { config }: AgentContext,
  appContext: unknown,
): ModelOutput | Promise<ModelOutput> {
  const calls = prepareCalls(response.toolCalls, tools, {
    context: appContext,
    defaultTimeoutMs: config.toolCalls.timeoutMs,
    clock,
  })
  const kind = kindOf(response)
  const isOutput = output !== undefined && (kind === 'answer' || kind === 'empty')
  if (!isOutput && !(calls instanceof Promise)) return { response, calls }
  return (async () => {
    const prepared = { response, calls: await calls }
    if (!isOutput) return prepared
    const reading = await readOutput(response.text, output.validate, output.schema)
    return { ...prepared, outputProblem: reading.ok ? null : reading.problem }
  })()
}

function incomplete(response: ModelResponse): ModelError {
  return new ModelError({
    kind: 'incomplete',
    code: 'incomplete_response',
    message:
      'The stream closed with neither a finish reason nor [DONE]; such an answer is never counted as complete.',
    partialText: response.text,
    usage: response.usage,
  })
}
