import type { Clock } from '../../core/base/clock.js'
import type { UIMessageChunk } from '../ui-message-chunks.js'
import { createLostError } from './chat-error.js'

/** The server sends something every 15 seconds: after three times that, the connection counts as lost. */
const maxSilenceMs = 45_000

/** After these chunks an answer has ended. */
const lastChunks: ReadonlySet<string> = new Set(['finish', 'abort', 'error'])

/**
 * Reads the chunks of an answer from a response.
 *
 * @throws {ChatError} `connection_lost` when the response breaks off before the answer has ended
 */
export async function* readChunks(
  body: ReadableStream<Uint8Array> | null,
  clock: Clock,
): AsyncGenerator<UIMessageChunk, void> {
  if (body === null) throw createLostError()
  const reader = body.getReader()
  const decoder = new TextDecoder()
  // Pieces of a frame that has not ended. They are joined once: a picture comes in hundreds.
  let pieces: string[] = []
  /** The last characters: the end of a frame may be cut, too. */
  let end = ''
  let hasEnded = false
  try {
    for (;;) {
      const read = await readInTime(reader, clock)
      if (read === null) break
      const piece = decoder.decode(read, { stream: true })
      const seen = end + piece
      end = seen.slice(-2)
      pieces.push(piece)
      if (!/\n\r?\n/.test(seen)) continue
      const frames = pieces.join('').split(/\r?\n\r?\n/)
      pieces = frames.splice(-1)
      for (const frame of frames) {
        if (!frame.startsWith('data:')) continue
        const data = frame.slice('data:'.length).trim()
        if (data === '[DONE]') {
          hasEnded = true
          continue
        }
        const chunk = JSON.parse(data) as UIMessageChunk
        hasEnded ||= lastChunks.has(chunk.type)
        yield chunk
      }
    }
  } catch (cause) {
    // The server keeps the response open for its hooks: what breaks then is no loss.
    if (!hasEnded) throw isAbort(cause) ? cause : createLostError(cause)
  } finally {
    void reader.cancel().catch(() => undefined)
  }
  if (!hasEnded) throw createLostError()
}

const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError'

/** The next bytes; null at the end. */
async function readInTime(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  clock: Clock,
): Promise<Uint8Array | null> {
  let timer: unknown
  const silence = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new Error('The server has been silent.')), maxSilenceMs)
  })
  try {
    const { done, value } = await Promise.race([reader.read(), silence])
    return done ? null : value
  } finally {
    clock.clearTimeout(timer)
  }
}
