import { CallAbort } from '../../base/call-abort.js'

/**
 * Does `work` with an abort of its own and gives up at once when `outer` aborts, whatever the work is waiting for. The
 * own one aborts when `outer` does and when the work fails, which frees its connections; no listener stays on `outer`,
 * which may live for many requests.
 */
export async function abortable<Result>(
  outer: AbortSignal,
  work: (abort: CallAbort) => Promise<Result>,
): Promise<Result> {
  outer.throwIfAborted()
  const own = new CallAbort()
  return await new Promise<Result>((resolve, reject) => {
    const abort = () => {
      own.abort(outer.reason)
      reject(outer.reason)
    }
    outer.addEventListener('abort', abort, { once: true })
    work(own)
      .finally(() => outer.removeEventListener('abort', abort))
      .then(resolve, (error: unknown) => {
        own.abort(error)
        reject(error)
      })
  })
}
