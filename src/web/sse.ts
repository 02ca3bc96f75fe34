import type { AgentEvent } from '../../machines/agent/announcements.js'
import { unrefTimer } from '../core/base/clock.js'
import type { QueuedAnswer } from './message-queue.js'
import type { Subscription } from './subscription.js'

/** Heartbeat interval in milliseconds, because proxies close silent connections. */
const heartbeatMs = 15_000

/** Minimum time between two frames in milliseconds. Events that arrive faster are sent together. */
const minFrameIntervalMs = 5

/** Prevents proxies from caching or buffering the stream. */
const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

export interface AnswerEncoder<Chunk> {
  begin(): readonly Chunk[]
  handleEvent(event: AgentEvent): readonly Chunk[]
  end(): readonly Chunk[] | Promise<readonly Chunk[]>
}

export interface AnswerProtocol<Chunk extends object> {
  createEncoder: (answer: Subscription) => AnswerEncoder<Chunk>
  toErrorChunk: (message: string) => Chunk
  headers?: Record<string, string>
  last?: string
}

/** Streams an answer as server-sent events. A queued answer is streamed once its turn starts. */
export function createAnswerResponse<Chunk extends object>(
  sent: Subscription | QueuedAnswer,
  { createEncoder, toErrorChunk, headers, last }: AnswerProtocol<Chunk>,
): Response {
  const answer = Promise.resolve('answer' in sent ? sent.answer : sent)
  async function* writeFrames(): AsyncGenerator<string, void> {
    let found: Subscription | null
    try {
      found = await answer
    } catch {
      yield formatSseFrame(toErrorChunk('The message could not be answered. Reload the chat and try again.'))
      return
    }
    if (found) {
      for await (const chunks of toChunkBatches(found, createEncoder(found)))
        yield chunks.map((chunk) => formatSseFrame(chunk)).join('')
    }
    if (last !== undefined) yield last
    await found?.closing
  }
  const onCancel = (): void => void answer.then((found) => found?.unsubscribe?.()).catch(() => undefined)
  return createSseResponse(writeFrames(), { headers, onCancel })
}

/** Ends at the run's next rest. */
export async function* toChunkBatches<Chunk>(
  { reader, maskEvent }: Subscription,
  encoder: AnswerEncoder<Chunk>,
): AsyncGenerator<readonly Chunk[], void> {
  const first = encoder.begin()
  if (first.length > 0) yield first
  for await (const events of reader) {
    const shown = maskEvent ? events.flatMap((event) => maskEvent(event) ?? []) : events
    const chunks = shown.flatMap((event) => encoder.handleEvent(event))
    if (chunks.length > 0) yield chunks
  }
  const rest = await encoder.end()
  if (rest.length > 0) yield rest
}

/** Frames are pulled only when they can be sent. If a page disconnects, the run continues. */
export function createSseResponse(
  frames: AsyncIterator<string, void>,
  { headers = {}, onCancel }: { headers?: Record<string, string> | undefined; onCancel?: () => void } = {},
): Response {
  const encoder = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  let sentAt = Number.NEGATIVE_INFINITY
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        timer = setInterval(() => {
          // A page that does not read needs no heartbeat.
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': \n\n'))
        }, heartbeatMs)
        // An open page must not keep the process alive.
        unrefTimer(timer)
      },
      pull: async (controller) => {
        try {
          const early = sentAt + minFrameIntervalMs - performance.now()
          if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
          const { done, value } = await frames.next()
          if (!done) {
            sentAt = performance.now()
            controller.enqueue(encoder.encode(value))
            return
          }
          clearInterval(timer)
          controller.close()
        } catch (error) {
          clearInterval(timer)
          controller.error(error)
        }
      },
      cancel: () => {
        clearInterval(timer)
        onCancel?.()
        void frames.return?.()?.catch(() => undefined)
      },
    },
    { highWaterMark: 1 },
  )
  return new Response(body, { headers: { ...eventStreamHeaders, ...headers } })
}

export function formatSseFrame(value: object, id?: string): string {
  const data = `data: ${JSON.stringify(value)}\n\n`
  return id === undefined ? data : `id: ${id}\n${data}`
}
