/** What is sent now and then while there is nothing to say, in milliseconds: whatever stands in between closes what is silent. */
const heartbeatMs = 15_000

/** Between two frames, in milliseconds: what comes faster than anybody reads is sent together. */
const minFrameIntervalMs = 5

/** Frames as they come: null at the end. A source that is cancelled is not asked again. */
export interface FrameSource {
  /** What there is to send, at once or once there is something; null: there is nothing more. */
  next(): string | null | Promise<string | null>
  cancel?(): void
}

/** Headers of every answer that is an event stream: nobody keeps it, and nobody gathers it before passing it on. */
const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/**
 * An answer that is an event stream. It asks for frames when they can be sent: a page that does not read is sent nothing,
 * and its frames are not made. A page that goes away is no end of the run.
 */
export function createSseResponse(frames: FrameSource, headers: Record<string, string> = {}): Response {
  return new Response(createSseBody(frames), { headers: { ...eventStreamHeaders, ...headers } })
}

/** The body of such an answer. */
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
          // Who does not read need not be told that there is nothing to read.
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': \n\n'))
        }, heartbeatMs)
        // An open page is no reason for a process to stay.
        ;(timer as { unref?: () => void }).unref?.()
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
