import type { RunResult } from '../../machines/agent/run-result.js'
import { limitTime } from '../core/base/abort.js'
import type { Clock } from '../core/base/clock.js'
import { StatewrightError } from '../core/base/errors.js'
import { type OnError, reportError } from './error-response.js'

export interface HookContext {
  session: string
  runId: string
  /**
   * The return value of `authorize` for the request that started or continued the run, or that stopped the run while it
   * waited.
   */
  principal: { prefix: string; context: unknown }
}

/**
 * Functions that a handler calls for the runs that its requests start or continue in this process. If one throws,
 * `onError` receives the error with `where: 'hook'`, and the run is not affected.
 *
 * @example
 * const hooks: HandlerHooks = {
 *   onFinish: ({ state, usage }, { session }) => console.log(session, state, usage.totalTokens),
 * }
 */
export interface HandlerHooks {
  /** Called when a run starts, or continues after a rest or an interruption. */
  onStart?: (at: HookContext) => unknown
  /**
   * Called when a run rests or has ended. The result's `usage` is the run's total so far, so bill in `onFinish`, or
   * bill the difference. The response stays open until the returned promise settles, for at most 30 seconds. The page
   * already has the full answer, but `useChat` stays busy, so do not return a promise that the page does not need to
   * wait for.
   */
  onSettle?: (result: RunResult, at: HookContext) => unknown
  /** Called when a run has ended, after `onSettle`. The promises of both functions are awaited together. */
  onFinish?: (result: RunResult, at: HookContext) => unknown
}

export const hookNames = ['onStart', 'onSettle', 'onFinish'] as const satisfies (keyof HandlerHooks)[]

/** How long a response waits for hooks, in milliseconds. */
const hookTimeoutMs = 30_000

interface RunHooksOptions {
  principal: HookContext['principal']
  clock: Clock
  onError: OnError | undefined
}

type HookedRun = Readonly<Record<'id' | 'sessionId', string>>

/** The hooks of one request. No method throws. */
export class RunHooks {
  readonly #hooks: HandlerHooks
  readonly #options: RunHooksOptions

  constructor(hooks: HandlerHooks, options: RunHooksOptions) {
    this.#hooks = hooks
    this.#options = options
  }

  start(run: HookedRun): void {
    const { onStart } = this.#hooks
    if (onStart) void this.#call(run, (at) => onStart(at))
  }

  /** Resolves when the hooks have settled, or after 30 seconds. */
  async settle(run: HookedRun, result: RunResult): Promise<void> {
    const { onSettle, onFinish } = this.#hooks
    const last = result.resumable ? undefined : onFinish
    if (!onSettle && !last) return
    const work = (async () => {
      if (onSettle) await this.#call(run, (at) => onSettle(result, at))
      if (last) await this.#call(run, (at) => last(result, at))
    })()
    const { clock } = this.#options
    const deadline = { ms: hookTimeoutMs, clock, late: timeoutError }
    await limitTime(deadline, work).catch((error: unknown) => this.#report(run, error))
  }

  async #call(run: HookedRun, hook: (at: HookContext) => unknown): Promise<void> {
    try {
      await hook({ session: run.sessionId, runId: run.id, principal: this.#options.principal })
    } catch (error) {
      this.#report(run, error)
    }
  }

  #report({ id: runId, sessionId: session }: HookedRun, error: unknown): void {
    reportError(this.#options.onError, error, { where: 'hook', session, runId, callId: null })
  }
}

function timeoutError(): StatewrightError {
  return new StatewrightError(
    'hook_timeout',
    'onSettle and onFinish took longer than 30 seconds, so the response no longer waits for them. Move long work to a queue.',
    'onSettle',
  )
}
