import type { AgentConfig } from '../../../machines/agent/config.js'
import { defaultConfig } from '../config/defaults.js'
import { ModelError } from '../models/provider.js'
import { CallAbort } from '../base/abort.js'
import { type Clock, readElapsed } from '../base/clock.js'

/** `contentIdleMs` is missing in logs from early versions. */
type Limits = Pick<AgentConfig, 'streamIdleMs'> & Partial<Pick<AgentConfig, 'contentIdleMs'>>

/**
 * Ends an answer that is silent or consists only of keep-alives. Uses one timer per answer. If the answer is not
 * streamed, silence is measured from its first piece.
 */
export function watchIdle(outer: CallAbort, limits: Limits, stream: boolean, clock: Clock) {
  const { streamIdleMs, contentIdleMs = defaultConfig.contentIdleMs } = limits
  const abort = new CallAbort()
  let begun = stream
  let lastBytes = readElapsed(clock)
  let lastContent = lastBytes
  let timer = startTimer()

  function deadlines(): [silence: number, content: number] {
    return [
      begun && streamIdleMs > 0 ? lastBytes + streamIdleMs : Infinity,
      contentIdleMs > 0 ? lastContent + contentIdleMs : Infinity,
    ]
  }
  function startTimer(): unknown {
    const left = Math.min(...deadlines()) - readElapsed(clock)
    return left === Infinity ? undefined : clock.setTimeout(check, left)
  }
  function check(): void {
    const [silence, content] = deadlines()
    const now = readElapsed(clock)
    const what = begun ? 'nothing but comments or empty chunks' : 'no content'
    if (silence <= now) abort.abort(idleError(`nothing for ${streamIdleMs} ms (streamIdleMs)`))
    else if (content <= now) abort.abort(idleError(`${what} for ${contentIdleMs} ms (contentIdleMs)`))
    else timer = startTimer()
  }
  outer.firstListener = () => abort.abort(outer.reason)
  return {
    abort,
    onActivity(kind: 'content' | 'keep_alive' = 'content'): void {
      lastBytes = readElapsed(clock)
      if (kind !== 'content') return
      lastContent = lastBytes
      if (begun) return
      begun = true
      clock.clearTimeout(timer)
      timer = startTimer()
    },
    /** Rejects immediately when the silence exceeds the limit, even if the provider ignores its signal. */
    rejectOnSilence: <Result>(work: Promise<Result>): Promise<Result> =>
      new Promise((resolve, reject) => {
        abort.firstListener = () => reject(abort.reason as Error)
        work.then(resolve, reject)
      }),
    /** Time in a queue does not count as silence, and the timer restarts afterwards. */
    hold(isHeld: boolean): void {
      clock.clearTimeout(timer)
      lastBytes = readElapsed(clock)
      lastContent = lastBytes
      timer = isHeld ? undefined : startTimer()
    },
    stop(): void {
      clock.clearTimeout(timer)
      outer.firstListener = undefined
    },
  }
}

function idleError(sent: string): ModelError {
  return new ModelError({ kind: 'transient', code: 'idle_timeout', message: `The provider sent ${sent}.` })
}
