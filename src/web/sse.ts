import { unrefTimer } from '../core/base/clock.js'

/** The heartbeat interval in milliseconds: proxies close connections that stay silent. */
const heartbeatMs = 15_000

/** The least time between two frames, in milliseconds: faster events are sent together. */
const minFrameIntervalMs = 5

/** A source of frames. It is not asked again after `cancel`. */
export interface FrameSource {
  /** The next text to send, now or later; null at the end. */
  next(): string | null | Promise<string | null>
  cancel?(): void
}

/** Headers of every event stream: proxies must neither cache nor buffer it. */
const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/**
 * Creates a response that is an event stream. Frames are made only when they can be sent, so a page that does not read
 * costs nothing. A page that disconnects does not end the run.
 */
export function createSseResponse(frames: FrameSource, headers: Record<string, string> = {}): Response {
  return new Response(createSseBody(frames), { headers: { ...eventStreamHeaders, ...headers } })
}

function createSseBody(frames: FrameSource): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  let sentAt = Number.NEGATIVE_INFINITY
  const stop = (): void => {
    clearInterval(timer)
    timer = undefined
  }
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        timer = setInterval(() => {
          // A page that does not read needs no heartbeat.
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': \n\n'))
        }, heartbeatMs)
        // An open page does not keep the process alive.
        unrefTimer(timer)
      },
      pull: async (controller) => {
        try {
          const early = sentAt + minFrameIntervalMs - performance.now()
          if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
          const frame = await frames.next()
          if (frame !== null) {
            sentAt = performance.now()
            controller.enqueue(encoder.encode(frame))
            return
          }
          stop()
          controller.close()
        } catch (error) {
          stop()
          controller.error(error)
        }
      },
      cancel: () => {
        stop()
        frames.cancel?.()
      },
    },
    { highWaterMark: 1 },
  )
}

/** One message of an event stream. */
export function formatSseFrame(value: object, id?: string): string {
  const data = `data: ${JSON.stringify(value)}\n\n`
  return id === undefined ? data : `id: ${id}\n${data}`
}
