import type { AgentEvent } from '../../machines/agent/announcements.js'
import { expectArgument, memoize, objectRule, optionsRule } from '../core/base/values.js'
import { type AnyRun, expectRun, subscribeToRun } from '../web/subscription.js'
import { createReplayBuffer, type ReplayReader } from '../web/replay-buffer.js'
import { createAnswerResponse, createSseResponse, formatSseFrame, toChunkBatches } from '../web/sse.js'
import { createAnswerFold, createUIProtocol } from './answer-fold.js'
import type { Protocol, UIMessageChunk } from './ui-message-types.js'

export interface UIStreamOptions {
  /** Defaults to `'v7'`. */
  protocol?: Protocol
}

/**
 * Converts a run, up to its next rest, into the chunks of one message for `useChat`. Call this function right after
 * `run()`, or after answering a resting run. In the second case, the chunks continue the message with the request. The
 * run continues even if the stream is not read.
 *
 * @example
 * const run = agent.run('What changed?')
 * for await (const chunk of toUIMessageStream(run)) if (chunk.type === 'text-delta') process.stdout.write(chunk.delta)
 */
export function toUIMessageStream(
  run: AnyRun,
  options: UIStreamOptions = {},
): ReadableStream<UIMessageChunk> {
  expectRun('toUIMessageStream', run, options)
  const { protocol = 'v7' } = options
  const answer = subscribeToRun(run)
  const batches = toChunkBatches(answer, createAnswerFold({ protocol, ...answer }))
  return new ReadableStream<UIMessageChunk>(
    {
      pull: async (controller) => {
        const { done, value } = await batches.next()
        if (done) controller.close()
        else for (const chunk of value) controller.enqueue(chunk)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Like `toUIMessageStream`, as an HTTP response. A disconnecting page does not stop the run.
 *
 * @example
 * const handler = async (request: Request) => {
 *   const { text } = (await request.json()) as { text: string }
 *   return toUIMessageStreamResponse(agent.run(text))
 * }
 */
export function toUIMessageStreamResponse(run: AnyRun, options: UIStreamOptions = {}): Response {
  expectRun('toUIMessageStreamResponse', run, options)
  return createAnswerResponse(subscribeToRun(run), createUIProtocol(options.protocol ?? 'v7'))
}

export interface EventStreamOptions {
  lastEventId?: string | null
}

/**
 * Sends the events of a run as server-sent events, each as JSON with its `id`, until the run ends. A page that reconnects with
 * `Last-Event-ID` receives the events that it missed, with missed text as one chunk. If there are no such events, the
 * page receives 204 and stops reconnecting. Call this function right after `run()`, because earlier events are lost.
 *
 * `source` can also be an iterable of events, such as the return value of `agent.watch`.
 *
 * @example
 * const runs = new Map([['1', agent.run('What changed?')]])
 * const handler = (request: Request): Response => {
 *   const run = runs.get(new URL(request.url).searchParams.get('run') ?? '')
 *   if (!run) return new Response(null, { status: 404 })
 *   return toEventStreamResponse(run, { lastEventId: request.headers.get('last-event-id') })
 * }
 */
export function toEventStreamResponse(
  source: AnyRun | AsyncIterable<AgentEvent>,
  options: EventStreamOptions = {},
): Response {
  const rule = objectRule([Symbol.asyncIterator], 'a run, or the return value of agent.watch(…)')
  expectArgument('toEventStreamResponse(source)', source, rule)
  expectArgument('toEventStreamResponse(source, options)', options, optionsRule)
  if (!('events$' in source)) {
    const events = source[Symbol.asyncIterator]()
    const onCancel = (): void => void events.return?.()?.catch(() => undefined)
    return createSseResponse(toEventFrames(events), { onCancel })
  }
  const reader = followRun(source).createReader(parseLastSeq(source, options.lastEventId ?? null))
  const first = reader.takeEvents()
  if (first === null) return new Response(null, { status: 204 })
  return createSseResponse(toRunFrames(first, reader))
}

const followRun = memoize((run: AnyRun) => {
  const buffer = createReplayBuffer()
  const end = (): void => buffer.end()
  // A refused run emits one event that contains the error.
  run.events$.subscribe({ next: (event) => buffer.push(event), error: end, complete: end })
  return buffer
})

function parseLastSeq(run: AnyRun, id: string | null): number | 'beginning' {
  const seq = Number(/:(\d+)$/.exec(id ?? '')?.[1])
  return id !== null && id.startsWith(run.id) && Number.isSafeInteger(seq) ? seq : 'beginning'
}

const formatFrame = (event: AgentEvent): string => formatSseFrame(event, event.id)

async function* toRunFrames(first: AgentEvent[], reader: ReplayReader): AsyncGenerator<string, void> {
  if (first.length > 0) yield first.map(formatFrame).join('')
  for await (const events of reader) yield events.map(formatFrame).join('')
}

async function* toEventFrames(events: AsyncIterator<AgentEvent>): AsyncGenerator<string, void> {
  for (let read = await events.next(); !read.done; read = await events.next()) yield formatFrame(read.value)
}
