/**
 * Fails the body at a longer event or, without events, a longer body. `onEnd` is called once, when the body has ended,
 * failed or been cancelled.
 */
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
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (size(chunk) <= limit) return controller.enqueue(chunk)
      onExceeded?.()
      controller.error(new Error(`More than ${limit} bytes in one message.`))
    },
  })
  // The reader of the capped body receives a failure.
  body.pipeTo(writable).then(onEnd, onEnd ?? (() => undefined))
  return new Response(readable, { status, statusText, headers })
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
