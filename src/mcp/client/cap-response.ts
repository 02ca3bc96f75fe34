/** Fails the body at a longer event or, without events, a longer body. `onEnd` is called once, at the end. */
export function capResponse(
  response: Response,
  limit: number,
  { onExceeded, onEnd }: { onExceeded?: () => void; onEnd?: (() => void) | undefined } = {},
): Response {
  const { body, status, statusText, headers } = response
  if (body === null) return response
  let total = 0
  const size = isEventStream(response)
    ? createEventCounter()
    : (chunk: Uint8Array): number => (total += chunk.length)
  const reader = body.getReader()
  const capped = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          controller.close()
          onEnd?.()
        } else if (size(value) > limit) {
          onExceeded?.()
          controller.error(new Error(`More than ${limit} bytes in one message.`))
          reader.cancel().catch(() => undefined)
        } else {
          controller.enqueue(value)
        }
      } catch (error) {
        controller.error(error)
        onEnd?.()
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
  return new Response(capped, { status, statusText, headers })
}

function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true
}

/** Counts the bytes of the longest event in a chunk, including events that started earlier. Events end at empty lines. */
function createEventCounter(): (chunk: Uint8Array) => number {
  let size = 0
  let isLineStart = true
  let afterReturn = false
  return (chunk) => {
    let longest = 0
    for (const byte of chunk) {
      const isSecondHalf = byte === 10 && afterReturn
      afterReturn = byte === 13
      if (isSecondHalf) continue
      const isLineEnd = byte === 10 || byte === 13
      size = isLineEnd && isLineStart ? 0 : size + 1
      isLineStart = isLineEnd
      longest = Math.max(longest, size)
    }
    return longest
  }
}
