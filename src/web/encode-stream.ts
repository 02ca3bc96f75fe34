import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { EventReader } from './replay-buffer.js'
import { type FrameSource, formatSseFrame } from './sse.js'

/** Encodes the events of an answer for one protocol. */
export interface EventEncoder<Told> {
  encode(event: AgentEvent): readonly Told[]
  finish(): readonly Told[] | Promise<readonly Told[]>
}

/** Encoded events, pulled by the consumer; null at the end. */
export interface EncodedStream<Told> {
  next(): Promise<Told[] | null>
}

/** Encodes the events of a reader; `first` comes before them. */
export function encodeEvents<Told>(
  reader: EventReader,
  encoder: EventEncoder<Told>,
  first: readonly Told[] = [],
): EncodedStream<Told> {
  let encoded: Told[] = [...first]
  let isOver = false
  return {
    next: async () => {
      while (encoded.length === 0 && !isOver) {
        const events = reader.takeEvents()
        if (events === null) {
          isOver = true
          encoded.push(...(await encoder.finish()))
        } else if (events.length === 0) await reader.waitForEvents()
        else for (const event of events) encoded.push(...encoder.encode(event))
      }
      const taken = encoded
      encoded = []
      return taken.length === 0 && isOver ? null : taken
    },
  }
}

/** Turns encoded events into frames of an event stream; `last` is sent at the end, and the stream ends after `closing`. */
export function toFrames(
  stream: EncodedStream<object>,
  {
    leave,
    last = null,
    closing,
  }: { leave: () => void; last?: string | null; closing?: Promise<void> | undefined },
): FrameSource {
  let isOver = false
  return {
    next: async () => {
      if (isOver) {
        await closing
        return null
      }
      const next = await stream.next()
      if (next !== null) return next.map((each) => formatSseFrame(each)).join('')
      isOver = true
      if (last === null) await closing
      return last
    },
    cancel: leave,
  }
}

/** The frames of an answer that has not begun; `failure`: what a page is sent when it cannot begin. */
export function toLaterFrames<Answer>(
  answer: Promise<Answer>,
  encode: (answer: Answer) => FrameSource,
  failure: (message: string) => object,
): FrameSource {
  const source = answer.then(encode).catch((): FrameSource => {
    const frames = [
      formatSseFrame(failure('The message could not be answered. Read the chat again, and retry.')),
    ]
    return { next: () => frames.shift() ?? null }
  })
  return {
    next: async () => (await source).next(),
    cancel: () => void source.then((frames) => frames.cancel?.()),
  }
}
