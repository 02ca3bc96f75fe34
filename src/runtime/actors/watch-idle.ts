import type { Clock } from '../clock.js'
import { ModelError } from '../../providers/provider.js'

export interface IdleWatch {
  /** Aborts when the outer signal does, or after too long a silence. */
  readonly signal: AbortSignal
  onActivity(): void
  stop(): void
}

/** Ends a stream that has gone silent. One timer for the whole stream: it looks at the time of the last bytes. */
export function watchIdle(outer: AbortSignal, idleMs: number, clock: Clock): IdleWatch {
  if (idleMs <= 0) return { signal: outer, onActivity: () => undefined, stop: () => undefined }
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
