/**
 * Does `work` with a signal of its own and gives up at once when `outer` aborts, whatever the work is waiting for.
 * The own signal aborts when `outer` does and when the work fails, which frees its connections; no listener stays on
 * `outer`, which may live for many requests.
 */
export async function abortable<Result>(
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  outer.throwIfAborted()
  const controller = new AbortController()
  return await new Promise<Result>((resolve, reject) => {
    const abort = () => {
      controller.abort(outer.reason)
      reject(outer.reason)
    }
    outer.addEventListener('abort', abort, { once: true })
    work(controller.signal)
      .finally(() => {
        outer.removeEventListener('abort', abort)
      })
      .then(resolve, (error: unknown) => {
        controller.abort(error)
        reject(error)
      })
  })
}
