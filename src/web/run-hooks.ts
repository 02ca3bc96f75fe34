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

type HookedRun = Readonly<Record<'id' | 'sessionId', string>>

export type RunHooks = ReturnType<typeof createRunHooks>

/** The hooks of one request. No function throws. */
export function createRunHooks(
  { onStart, onSettle, onFinish }: HandlerHooks,
  { prefix, context }: HookContext['principal'],
  { clock, onError }: { clock: Clock; onError: OnError | undefined },
) {
  const report = ({ id: runId, sessionId: session }: HookedRun, error: unknown): void =>
    reportError(onError, error, { where: 'hook', session, runId, callId: null })

  async function call(run: HookedRun, hook: (at: HookContext) => unknown): Promise<void> {
    try {
      await hook({ session: run.sessionId, runId: run.id, principal: { prefix, context } })
    } catch (error) {
      report(run, error)
    }
  }

  return {
    start(run: HookedRun): void {
      if (onStart) void call(run, onStart)
    },
    /** Resolves when the hooks have settled, or after 30 seconds. */
    async settle(run: HookedRun, result: RunResult): Promise<void> {
      const hooks = [onSettle, result.resumable ? undefined : onFinish].filter((hook) => hook !== undefined)
      if (hooks.length === 0) return
      const work = (async () => {
        for (const hook of hooks) await call(run, (at) => hook(result, at))
      })()
      const late = (): StatewrightError =>
        new StatewrightError(
          'hook_timeout',
          'onSettle and onFinish took longer than 30 seconds, so the response no longer waits for them. Move long work to a queue.',
          'onSettle',
        )
      const deadline = { ms: hookTimeoutMs, clock, late }
      await limitTime(deadline, work).catch((error: unknown) => report(run, error))
    },
  }
}
