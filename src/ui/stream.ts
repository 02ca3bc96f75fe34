import { anyOptions, expectArgument, objectWith } from '../core/base/expect-argument.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Joined } from '../web/joined.js'
import type { AnyRun } from '../web/live-runs.js'
import { joinRun } from '../web/segments.js'
import { sseResponse } from '../web/sse.js'
import { framesOf, type Telling, tellingOf } from '../web/telling.js'
import { AnswerFold } from './answer-fold.js'
import type { Protocol, UIMessageChunk } from './chunks.js'

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
  expectArgument(
    'toUIMessageStream(run)',
    run,
    objectWith(['events$', Symbol.asyncIterator], 'a run: what agent.run(…) returned'),
  )
  expectArgument('toUIMessageStream(run, options)', options, anyOptions)
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
 *   return toUIMessageStreamResponse(agent.run(text))
 * }
 */
export function toUIMessageStreamResponse(run: AnyRun, options: UIStreamOptions = {}): Response {
  expectArgument(
    'toUIMessageStreamResponse(run)',
    run,
    objectWith(['events$', Symbol.asyncIterator], 'a run: what agent.run(…) returned'),
  )
  expectArgument('toUIMessageStreamResponse(run, options)', options, anyOptions)
  return chatResponse(joinRun(run), options)
}

/** An answer that is looked at, as the answer to a request. */
export function chatResponse(answer: Joined, options: UIStreamOptions): Response {
  const leave = (): void => answer.leave?.()
  const frames = framesOf(chunksOf(answer, options), { leave, last: 'data: [DONE]\n\n' })
  return sseResponse(frames, { 'x-vercel-ai-ui-message-stream': 'v1' })
}

function chunksOf(
  { turn, showsTurn, answered, reader }: Joined,
  { protocol = 'v7' }: UIStreamOptions,
): Telling<UIMessageChunk> {
  const chunks: UIMessageChunk[] = []
  const fold = new AnswerFold({ protocol, turn, showsTurn, answered }, (chunk) => {
    chunks.push(chunk)
  })
  const made = (): UIMessageChunk[] => chunks.splice(0)
  const hear = (event: AgentEvent): UIMessageChunk[] => {
    fold.take(event)
    return made()
  }
  const end = (): UIMessageChunk[] => {
    fold.end()
    return made()
  }
  return tellingOf(reader, { hear, end }, made())
}
