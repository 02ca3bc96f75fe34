import type { Joined } from '../web/joined.js'
import type { AnyRun } from '../web/live-runs.js'
import { joinRun } from '../web/segments.js'
import { type Frames, sseFrame, sseResponse } from '../web/sse.js'
import { AnswerFold } from './answer-fold.js'
import type { Protocol, UIMessageChunk } from './chunks.js'

/**
 * @example
 * const options: UIStreamOptions = { protocol: 'v6' } // the client of ai 6
 */
export interface UIStreamOptions {
  /** Default: `'v7'`. */
  protocol?: Protocol
}

/**
 * What a run tells up to its next rest, as the chunks of one message for `useChat`. Take it right after `run()`, or after an
 * answer to a run that rests: the message is then the one that asked. The run goes on whether or not anybody reads.
 *
 * @example
 * const run = agent.run('What changed?')
 * for await (const chunk of toUIMessageStream(run)) if (chunk.type === 'text-delta') process.stdout.write(chunk.delta)
 */
export function toUIMessageStream(
  run: AnyRun,
  options: UIStreamOptions = {},
): ReadableStream<UIMessageChunk> {
  const chunks = chunksOf(joinRun(run), options)
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
 * The same as an answer to a request, in the form that `useChat` reads. A page that goes away does not stop the run.
 *
 * @example
 * const handler = async (request: Request) => {
 *   const { text } = (await request.json()) as { text: string }
 *   return uiMessageStreamResponse(agent.run(text))
 * }
 */
export function uiMessageStreamResponse(run: AnyRun, options: UIStreamOptions = {}): Response {
  return chatResponse(joinRun(run), options)
}

/** An answer that is looked at, as the answer to a request. */
export function chatResponse(answer: Joined, options: UIStreamOptions): Response {
  const chunks = chunksOf(answer, options)
  let isOver = false
  const frames: Frames = {
    next: async () => {
      if (isOver) return null
      const next = await chunks.next()
      if (next !== null) return next.map((chunk) => sseFrame(chunk)).join('')
      isOver = true
      return 'data: [DONE]\n\n'
    },
    cancel: () => answer.leave?.(),
  }
  return sseResponse(frames, { 'x-vercel-ai-ui-message-stream': 'v1' })
}

/** What there is to tell, whenever it is asked for; null once there is nothing more. */
function chunksOf(
  { turn, showsTurn, answered, reader }: Joined,
  { protocol = 'v7' }: UIStreamOptions,
): { next(): Promise<UIMessageChunk[] | null> } {
  let chunks: UIMessageChunk[] = []
  let isOver = false
  const fold = new AnswerFold({ protocol, turn, showsTurn, answered }, (chunk) => {
    chunks.push(chunk)
  })
  return {
    next: async () => {
      while (chunks.length === 0 && !isOver) {
        const events = reader.take()
        if (events === null) {
          isOver = true
          fold.end()
        } else if (events.length === 0) await reader.news()
        else for (const event of events) fold.take(event)
      }
      const told = chunks
      chunks = []
      return told.length === 0 && isOver ? null : told
    },
  }
}
