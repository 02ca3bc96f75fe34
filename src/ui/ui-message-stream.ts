import { optionsRule, expectArgument, objectRule } from '../core/base/values.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Subscription } from '../web/subscription.js'
import type { AnyRun } from '../web/live-runs.js'
import { subscribeToRun } from '../web/subscribe-to-run.js'
import type { QueuedAnswer } from '../web/message-queue.js'
import { createSseResponse, type FrameSource } from '../web/sse.js'
import { toFrames, toLaterFrames, type EncodedStream, encodeEvents } from '../web/encode-stream.js'
import { AnswerFold } from './answer-fold.js'
import type { Protocol, UIMessageChunk } from './ui-message-chunks.js'

export interface UIStreamOptions {
  /** Default: `'v7'`. */
  protocol?: Protocol
}

/**
 * Converts a run, up to its next rest, into the chunks of one message for `useChat`. Call it right after `run()`, or after an
 * answer to a run at rest: the chunks then continue the message that asked. The run goes on even if the stream is not read.
 *
 * @example
 * const run = agent.run('What changed?')
 * for await (const chunk of toUIMessageStream(run)) if (chunk.type === 'text-delta') process.stdout.write(chunk.delta)
 */
export function toUIMessageStream(
  run: AnyRun,
  options: UIStreamOptions = {},
): ReadableStream<UIMessageChunk> {
  expectArgument(
    'toUIMessageStream(run)',
    run,
    objectRule(['events$', Symbol.asyncIterator], 'a run: what agent.run(…) returned'),
  )
  expectArgument('toUIMessageStream(run, options)', options, optionsRule)
  const chunks = encodeChunks(subscribeToRun(run), options)
  return new ReadableStream<UIMessageChunk>(
    {
      pull: async (controller) => {
        const next = await chunks.next()
        if (next === null) controller.close()
        else for (const chunk of next) controller.enqueue(chunk)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * The same as an HTTP response for `useChat`. A page that disconnects does not stop the run.
 *
 * @example
 * const handler = async (request: Request) => {
 *   const { text } = (await request.json()) as { text: string }
 *   return toUIMessageStreamResponse(agent.run(text))
 * }
 */
export function toUIMessageStreamResponse(run: AnyRun, options: UIStreamOptions = {}): Response {
  expectArgument(
    'toUIMessageStreamResponse(run)',
    run,
    objectRule(['events$', Symbol.asyncIterator], 'a run: what agent.run(…) returned'),
  )
  expectArgument('toUIMessageStreamResponse(run, options)', options, optionsRule)
  return createChatResponse(subscribeToRun(run), options)
}

/** Streams a subscription as an HTTP response. */
export function createChatResponse(answer: Subscription, options: UIStreamOptions): Response {
  return createSseResponse(encodeFrames(answer, options), streamHeaders)
}

/** The same for a message that was queued: its answer streams when its turn has begun, and is empty while it waits for people. */
export function createQueuedResponse({ answer }: QueuedAnswer, options: UIStreamOptions): Response {
  const encode = (found: Subscription | null): FrameSource =>
    found
      ? encodeFrames(found, options)
      : toFrames({ next: () => Promise.resolve(null) }, { leave: ignore, last })
  return createSseResponse(toLaterFrames(answer, encode, toErrorChunk), streamHeaders)
}

const streamHeaders = { 'x-vercel-ai-ui-message-stream': 'v1' }
const last = 'data: [DONE]\n\n'
const ignore = (): void => undefined
const toErrorChunk = (errorText: string): UIMessageChunk => ({ type: 'error', errorText })

function encodeFrames(answer: Subscription, options: UIStreamOptions): FrameSource {
  const leave = (): void => answer.unsubscribe?.()
  return toFrames(encodeChunks(answer, options), { leave, last, closing: answer.closing })
}

function encodeChunks(
  { turn, showsTurn, answeredQuestions, reader, point }: Subscription,
  { protocol = 'v7' }: UIStreamOptions,
): EncodedStream<UIMessageChunk> {
  const chunks: UIMessageChunk[] = []
  const fold = new AnswerFold({ protocol, turn, showsTurn, answered: answeredQuestions, point }, (chunk) => {
    chunks.push(chunk)
  })
  const takeChunks = (): UIMessageChunk[] => chunks.splice(0)
  const encode = (event: AgentEvent): UIMessageChunk[] => {
    fold.handleEvent(event)
    return takeChunks()
  }
  const finish = (): UIMessageChunk[] => {
    fold.end()
    return takeChunks()
  }
  return encodeEvents(reader, { encode, finish }, takeChunks())
}
