import type { Clock } from '../clock.js'
import { ModelError } from '../../providers/provider.js'

export interface IdleWatch {
  /** Aborts when the outer signal does, or after too long a silence. */
  readonly signal: AbortSignal
  readonly onActivity: () => void
  /** The work, given up at once when it goes silent: also by a provider that does not heed its signal. */
  readonly orSilence: <Result>(work: Promise<Result>) => Promise<Result>
  readonly stop: () => void
}

/** Ends a stream that has gone silent. One timer for the whole stream: it looks at the time of the last bytes. */
export function watchIdle(outer: AbortSignal, idleMs: number, clock: Clock): IdleWatch {
  if (idleMs <= 0) {
    return { signal: outer, onActivity: () => undefined, orSilence: (work) => work, stop: () => undefined }
  }
  const controller = new AbortController()
  let last = clock.now()
  let timer = clock.setTimeout(check, idleMs)
  function check(): void {
    const left = last + idleMs - clock.now()
    if (left > 0) timer = clock.setTimeout(check, left)
    else controller.abort(silence(idleMs))
  }
  const forward = (): void => {
    controller.abort(outer.reason)
  }
  outer.addEventListener('abort', forward)
  return {
    signal: controller.signal,
    onActivity: () => {
      last = clock.now()
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

function silence(idleMs: number): ModelError {
  return new ModelError({
    kind: 'transient',
    code: 'idle_timeout',
    message: `The provider sent nothing for ${idleMs} ms (streamIdleMs).`,
    status: null,
    retryAfterMs: null,
    partialText: '',
    usage: null,
  })
}
