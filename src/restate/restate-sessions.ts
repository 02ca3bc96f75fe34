import { expectArgument, objectRule } from '../core/base/values.js'
import { StatewrightError, UsageError } from '../core/base/errors.js'
import { createId } from '../core/base/platform.js'
import type { Agents } from '../core/drive/define-agents.js'
import type { SessionRunnerOptions } from '../core/drive/driver.js'
import type { SessionAnswer } from '../core/drive/drive-answers.js'
import type { RunSessionOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'
import {
  addHostValues,
  type HostFunctions,
  type HostOptionsFor,
  openHost,
  sendToSession,
} from '../core/drive/host-functions.js'
import type { Receipt, SessionMessage } from '../core/sessions/inbox/session-message.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { isRestState } from '../../machines/agent/run-result.js'

/** Options for `restateSessions`. */
export interface RestateSessionsOptions<Context = unknown>
  extends SessionRunnerOptions,
    HostFunctions<Context> {
  /** The name of the virtual object. Defaults to `session`. */
  name?: string
  /** The maximum time in milliseconds that a session waits for people before it is cancelled. Unlimited by default. */
  answerTimeoutMs?: number
}

/** The argument of `run`. The key of the virtual object is the session id. */
export interface RestateTurn {
  /** The input, at most 800 bytes because Restate stores it. Defaults to `loadInput`, which may be longer. */
  input?: string
  /** The turn to run, as in `runSession`. Defaults to the latest turn, or to the first if there is none. */
  turn?: number
  agent?: string
}

/** The object to serve, and its shutdown. */
export interface RestateSessions {
  /** For `restate.serve({ services: [object] })`. Handlers: `run`, and `send`, possible at any time. */
  object: object
  /** Stops starting sessions; see `SessionRunner`. */
  drain: () => Promise<void>
}

const known = ['name', 'answerTimeoutMs'] satisfies (keyof RestateSessionsOptions)[]
const maxRetryWaitMs = 10_000
const maxTurnBytes = 800
const turnKeys: ReadonlySet<string> = new Set(['input', 'turn', 'agent'] satisfies (keyof RestateTurn)[])
const patienceAnswer: SessionAnswer = { type: 'cancel', why: 'No answer arrived in time.' }
/** Restate retries with increasing delays until it receives a terminal error. */
const retryOptions = { initialRetryInterval: 200, retryIntervalFactor: 2, maxRetryInterval: 5000 }

/**
 * Runs each session as a Restate virtual object. `run` settles when the session's run has ended, even across process
 * failures. While a session waits for people or a provider, it is suspended. `send` also reaches active sessions.
 *
 * @example
 * const host = (restate: RestateLike) =>
 *   restateSessions(restate, defineAgents({ support: createAgent({ model, store: memoryStore() }) }))
 * @throws {ConfigError} `invalid_config`
 */
export function restateSessions<Context = unknown>(
  restate: RestateLike,
  agents: Agents<Context>,
  ...options: HostOptionsFor<RestateSessionsOptions<NoInfer<Context>>, NoInfer<Context>>
): RestateSessions
export function restateSessions(
  restate: RestateLike,
  agents: Agents,
  options: RestateSessionsOptions = {},
): RestateSessions {
  expectArgument(
    'restateSessions(restate)',
    restate,
    objectRule(['object', 'handlers'], "the SDK: import * as restate from '@restatedev/restate-sdk'"),
  )
  const { runner, store } = openHost(['restateSessions', 'restate'], agents, options, known)
  const { name = 'session', answerTimeoutMs } = options

  /** Errors that retries cannot fix end the invocation. */
  const terminal = (error: unknown): unknown => {
    if (!(error instanceof StatewrightError) || error.retryable) return error
    return new restate.TerminalError(`${error.code}: ${error.message}`, { errorCode: 422 })
  }

  const driven = async (driveOptions: RunSessionOptions, begins: boolean): Promise<SessionResult> => {
    try {
      const rest = await runner.runSession(
        await addHostValues(options, { maxRetryWaitMs, ...driveOptions }, begins),
      )
      // Another process continues the session.
      if (rest.stopped && rest.waitMs === undefined)
        throw new UsageError(
          'draining',
          'This process is shutting down. Run the session in another process.',
          'runSession',
        )
      return rest
    } catch (error) {
      throw terminal(error)
    }
  }

  const run = async (context: RestateContext, request: RestateTurn | undefined): Promise<SessionResult> => {
    const { input, turn, agent } = checkTurn(request, restate)
    const session = context.key
    const begin: RunSessionOptions = { session, ...omitUndefined({ input, turn, agent }) }
    const step = (label: string, driveOptions: RunSessionOptions, begins = false): Promise<SessionResult> =>
      context.run(label, () => driven(driveOptions, begins), retryOptions)
    let rest = await step('drive', begin, true)
    /** The deadline of the current rest, identified by its head, so that an early wake-up does not extend it. */
    let patience: { head: number; until: number } | undefined
    for (;;) {
      if (rest.waitMs !== undefined) {
        await context.sleep(rest.waitMs)
        rest = await step('drive', { session })
        continue
      }
      if (!isRestState(rest.state)) return rest
      const { head } = rest
      if (answerTimeoutMs !== undefined && rest.wakeMs === undefined && patience?.head !== head)
        patience = {
          head,
          until: await context.run('patience', () => Promise.resolve(Date.now() + answerTimeoutMs)),
        }
      const { id, promise } = context.awakeable<null>()
      context.set('waiting', id)
      // A message sent just before this did not see the awakeable.
      rest = await step('look', { session })
      if (rest.head === head) {
        const { wakeMs } = rest
        const isAnswered = await settlesWithin(
          promise,
          wakeMs ?? (patience && (await readTimeLeft(context, patience.until, answerTimeoutMs))),
        )
        // A message that was sent at the same moment comes first.
        rest = await step(
          'drive',
          isAnswered || wakeMs !== undefined ? { session } : { session, answers: [patienceAnswer], at: head },
        )
      }
      context.clear('waiting')
    }
  }

  /** A step that was killed before Restate stored it is repeated. The key makes the message count once. */
  const sendOrFail = async (session: string, message: SessionMessage, key: string): Promise<Receipt> => {
    try {
      return await sendToSession(agents, store, session, message, { key })
    } catch (error) {
      throw terminal(error)
    }
  }

  const sendHandler = async (context: RestateContext, message: SessionMessage): Promise<Receipt> => {
    const key = await context.run('key', () => Promise.resolve(createId()))
    try {
      const receipt = await context.run('send', () => sendOrFail(context.key, message, key), retryOptions)
      // No active run can read the message. A run that waits for people comes first.
      if (message.type === 'message' && receipt.status === 'waiting')
        context.genericSend({ service: name, method: 'run', key: context.key, parameter: new Uint8Array() })
      return receipt
    } finally {
      // Runs even after a refusal, because a dead process may have applied a cancel.
      const waiting = await context.get<string>('waiting')
      if (waiting !== null) context.resolveAwakeable(waiting, null)
    }
  }

  return {
    object: restate.object({
      name,
      handlers: {
        run: restate.handlers.object.exclusive({}, run as never),
        // `run` may have changed the state after this call started, so it is loaded when needed.
        send: restate.handlers.object.shared({ enableLazyState: true }, sendHandler as never),
      },
      // Calls may take a long time, and no other process can continue the session. Processes restart within seconds, so
      // the delays between retries stay short.
      options: {
        abortTimeout: { hours: 1 },
        retryPolicy: { initialInterval: 100, exponentiationFactor: 2, maxInterval: 5000 },
      },
    }),
    drain: () => runner.drain(),
  }
}

function checkTurn(request: unknown, { TerminalError }: RestateLike): RestateTurn {
  const turn = request ?? {}
  const isObject = typeof turn === 'object' && !Array.isArray(turn)
  const strange = isObject ? Object.keys(turn).find((key) => !turnKeys.has(key)) : undefined
  if (!isObject || strange !== undefined) {
    const what = strange === undefined ? 'is not an object' : `contains '${strange}'`
    throw new TerminalError(`invalid_option: a turn must be { input, turn, agent }, but this one ${what}.`, {
      errorCode: 422,
    })
  }
  const size = new TextEncoder().encode(JSON.stringify(turn)).length
  if (size <= maxTurnBytes) return turn
  throw new TerminalError(
    `payload_too_large: a turn may have at most ${maxTurnBytes} bytes, because Restate stores it. This one has ${size}. ` +
      'Omit the input, and return it from the option loadInput.',
    { errorCode: 413 },
  )
}

/** The remaining time, capped at the total, because a different clock may have set the deadline. */
function readTimeLeft(context: RestateContext, at: number, most = Infinity): Promise<number> {
  return context.run('left', () => Promise.resolve(Math.min(most, Math.max(0, at - Date.now()))))
}

/** Whether the promise settles within a time. Without a time, waits for the promise. */
async function settlesWithin(promise: DurablePromise<unknown>, ms: number | undefined): Promise<boolean> {
  try {
    await (ms === undefined ? promise : promise.orTimeout(ms))
    return true
  } catch (error) {
    if ((error as { name?: unknown }).name !== 'TimeoutError') throw error
    return false
  }
}

/** The part of `@restatedev/restate-sdk` that is used. The module is passed in, not imported. */
export interface RestateLike {
  object(definition: { name: string; handlers: Record<string, unknown>; options?: object }): object
  handlers: {
    object: {
      exclusive(options: object, work: (context: RestateContext, input: never) => Promise<unknown>): unknown
      shared(options: object, work: (context: RestateContext, input: never) => Promise<unknown>): unknown
    }
  }
  TerminalError: new (message: string, options?: { errorCode?: number }) => Error
}

/** A Restate promise. */
export interface DurablePromise<Value> extends Promise<Value> {
  orTimeout(ms: number): DurablePromise<Value>
}

/** The handler context. */
export interface RestateContext {
  readonly key: string
  run<Value>(name: string, step: () => Promise<Value>, options?: object): DurablePromise<Value>
  sleep(ms: number): DurablePromise<void>
  awakeable<Value>(): { id: string; promise: DurablePromise<Value> }
  resolveAwakeable(id: string, value: unknown): void
  genericSend(call: { service: string; method: string; key: string; parameter: Uint8Array }): unknown
  get<Value>(name: string): Promise<Value | null>
  set(name: string, value: unknown): void
  clear(name: string): void
}
