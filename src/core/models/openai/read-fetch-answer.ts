import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { AnswerReader, type ReadAnswerOptions } from './answer-reader.js'
import { closeTimeoutMs, trailingTimeoutMs } from './response-limits.js'

/**
 * Reads the answer that fetch has brought.
 * @throws ModelError with the partial text; the signal's reason when it aborts.
 */
export async function readFetchAnswer(
  response: Response,
  options: ReadAnswerOptions & { signal: AbortSignal },
): Promise<ModelResponse> {
  const { signal } = options
  const answer = new AnswerReader(response.url, options)
  if (response.body === null) return answer.finish()
  const reader = response.body.getReader()
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined)
  signal.addEventListener('abort', cancel, { once: true })
  let trailing: ReturnType<typeof setTimeout> | undefined
  /** Whether an error is the connection's: one of the answer's own stays an error. */
  let isBroken = false
  try {
    const decoder = new TextDecoder()
    while (!answer.ended) {
      // Some servers fall silent before they say that they have done.
      if (answer.finished) trailing ??= setTimeout(cancel, trailingTimeoutMs)
      isBroken = true
      const { done, value } = await reader.read()
      isBroken = false
      // A cancelled reader ends like a finished one.
      signal.throwIfAborted()
      if (done) break
      answer.push(decoder.decode(value, { stream: true }))
    }
    answer.push(decoder.decode())
    const response = answer.finish()
    if (answer.ended) void drainBody(reader)
    return response
  } catch (error) {
    const whole = isBroken ? answer.finishBroken() : null
    if (whole !== null) return whole
    if (!signal.aborted) cancel()
    throw answer.toFailure(error)
  } finally {
    clearTimeout(trailing)
    signal.removeEventListener('abort', cancel)
  }
}

/** Reads on to the end of the body, so that the connection can be used again. The caller does not wait for it. */
async function drainBody(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const giveUp = setTimeout(() => void reader.cancel().catch(() => undefined), closeTimeoutMs)
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is whole; what happens to its connection is of no interest.
  } finally {
    clearTimeout(giveUp)
  }
}
