import type { RunResult } from '../../../machines/agent/run-result.js'
import { whenAborted } from '../../core/base/abort.js'
import { releaseRun } from '../../core/live/release-run.js'
import type { Run } from '../../core/run/run.js'

/**
 * A run to its next rest, and its session free for others. Null: the signal stopped it, and `agent.resume` goes on with
 * it.
 */
export async function followRun(run: Run, signal: AbortSignal): Promise<RunResult | null> {
  let unfollow = (): void => undefined
  const stopped = new Promise<null>((resolve, reject) => {
    unfollow = whenAborted(signal, () => {
      run.started.then(() => releaseRun(run)).then(() => resolve(null), reject)
    })
  })
  stopped.catch(() => undefined)
  try {
    const result = await Promise.race([run.result, stopped])
    if (result?.resumable === true) await releaseRun(run)
    return result
  } finally {
    unfollow()
    run.result.catch(() => undefined)
  }
}
