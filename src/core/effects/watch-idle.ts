import type { AgentConfig } from '../../../machines/agent/config.js'
import { defaultConfig } from '../config/defaults.js'
import { ModelError, type ModelRequestOptions } from '../models/provider.js'
import type { Clock } from '../base/clock.js'

export interface IdleWatch {
  /** Aborts when the outer signal does, or after too long a silence. */
  readonly signal: AbortSignal
  readonly onActivity: ModelRequestOptions['onActivity']
  /** The work, given up at once when it goes silent: also by a provider that does not heed its signal. */
  readonly orSilence: <Result>(work: Promise<Result>) => Promise<Result>
  readonly stop: () => void
}

/** `contentIdleMs` is missing in sessions that were stored before there was one. */
type Limits = Pick<AgentConfig, 'streamIdleMs'> & Partial<Pick<AgentConfig, 'contentIdleMs'>>

/**
 * Ends an answer that has gone silent, or in which nothing but keep-alives comes. One timer for the whole answer: it looks
 * at the times of what came last. A whole answer says nothing until it is there, so that its silence counts from its
 * first piece.
 */
export function watchIdle(outer: AbortSignal, limits: Limits, stream: boolean, clock: Clock): IdleWatch {
  const { streamIdleMs, contentIdleMs = defaultConfig.contentIdleMs } = limits
  if (streamIdleMs <= 0 && contentIdleMs <= 0) {
    return { signal: outer, onActivity: () => undefined, orSilence: (work) => work, stop: () => undefined }
  }
  const controller = new AbortController()
  let begun = stream
  let lastBytes = clock.now()
  let lastContent = lastBytes
  let timer = startTimer()

  function deadlines(): [silence: number, content: number] {
    return [
      begun && streamIdleMs > 0 ? lastBytes + streamIdleMs : Infinity,
      contentIdleMs > 0 ? lastContent + contentIdleMs : Infinity,
    ]
  }
  function startTimer(): unknown {
    const left = Math.min(...deadlines()) - clock.now()
    return left === Infinity ? undefined : clock.setTimeout(check, left)
  }
  function check(): void {
    const [silence, content] = deadlines()
    const now = clock.now()
    if (silence <= now) controller.abort(idle(`nothing for ${streamIdleMs} ms (streamIdleMs)`))
    else if (content <= now) controller.abort(idle(whatCame(begun, contentIdleMs)))
    else timer = startTimer()
  }
  const forward = (): void => {
    controller.abort(outer.reason)
  }
  outer.addEventListener('abort', forward)
  return {
    signal: controller.signal,
    onActivity: (kind = 'content') => {
      lastBytes = clock.now()
      if (kind !== 'content') return
      lastContent = lastBytes
      if (begun) return
      begun = true
      clock.clearTimeout(timer)
      timer = startTimer()
    },
    orSilence: (work) =>
      new Promise((resolve, reject) => {
        controller.signal.addEventListener('abort', () => {
          reject(controller.signal.reason as Error)
        })
        work.then(resolve, reject)
      }),
    stop: () => {
      clock.clearTimeout(timer)
      outer.removeEventListener('abort', forward)
    },
  }
}

function whatCame(begun: boolean, limitMs: number): string {
  const what = begun ? 'nothing but comments or empty pieces' : 'nothing of its answer'
  return `${what} for ${limitMs} ms (contentIdleMs)`
}

function idle(sent: string): ModelError {
  return new ModelError({
    kind: 'transient',
    code: 'idle_timeout',
    message: `The provider sent ${sent}.`,
  })
}
