import type { Json } from '../../../machines/agent/json.js'
import type { ResultStatus, ToolErrorKind } from '../../../machines/agent/batch-calls.js'

/** A call that the model asks for. */
export interface GuardedCall {
  /** As the model's call has it. */
  readonly id: string
  /** The tool that the model names; it need not exist. */
  readonly name: string
  /** The arguments as the tool will read them, not yet checked against its schema; null when they are not JSON. */
  readonly arguments: Json
  /** The same as the model (or the person who approved the call) wrote them. */
  readonly argumentsText: string
  /** What its tool says of itself; false when there is none. */
  readonly readOnly: boolean
  /** As `readOnly`. */
  readonly polling: boolean
}

/** How a call ended. */
export interface GuardedResult extends GuardedCall {
  /** `ok` is the only success. */
  readonly status: ResultStatus
  /** What the model gets to read. */
  readonly content: string
  /** Why its tool failed; null when it did not, or never ran. */
  readonly errorKind: ToolErrorKind | null
}

/** What a guard is told: plain JSON, deep-frozen. */
export type GuardFact =
  /** The model asks for these calls; none of them has run. Those that another guard has refused are left out. */
  | { readonly type: 'calls'; readonly calls: readonly GuardedCall[] }
  /** The batch has ended: a result a call, in call order. */
  | { readonly type: 'results'; readonly results: readonly GuardedResult[] }

/** What a guard says about a fact. Messages are cut to 2,000 characters, evidence to 600. */
export type GuardVerdict =
  | undefined
  | true
  | { readonly action: 'ok' }
  /** `message` is guidance for the model. It rides on the next request, and is never part of the transcript. */
  | { readonly action: 'nudge'; readonly message: string }
  /**
   * Only about calls: these (default: all of them; an empty list: none) do not run, and the model reads `message` as
   * their result.
   */
  | { readonly action: 'block'; readonly message: string; readonly callIds?: readonly string[] }
  /** The run stops. `message` tells people what happened and what to do; `evidence`, what was seen. */
  | { readonly action: 'halt'; readonly message: string; readonly evidence?: string }

/**
 * What a guard is asked about.
 *
 * @example
 * defineGuard({
 *   name: 'paid-only',
 *   verdict: (_state, { context }: GuardContext) =>
 *     (context as { isPaid: boolean }).isPaid ? undefined : { action: 'halt', message: 'The trial is over.' },
 * })
 */
export interface GuardContext {
  /** What has just happened. */
  readonly fact: GuardFact
  /** Aborts when the verdict is not needed any more: the run was stopped, or `timeoutMs` has passed. */
  readonly signal: AbortSignal
  /** The app's own object, as it was handed to the run. */
  readonly context: unknown
}

/**
 * A guard as its author writes it.
 *
 * @example
 * const definition: GuardDefinition<{ calls: number }> = {
 *   name: 'at-most-20-calls',
 *   initial: { calls: 0 },
 *   observe: ({ calls }, fact) => ({ calls: calls + (fact.type === 'calls' ? fact.calls.length : 0) }),
 *   verdict: ({ calls }) => (calls <= 20 ? undefined : { action: 'halt', message: 'Enough calls.' }),
 *   onHalt: 'pause', // default 'error'
 * }
 * createAgent({ model, guards: [defineGuard(definition)] })
 */
export interface GuardDefinition<State> {
  /** Unique in its agent: 1 to 64 letters, digits, `_`, `-` and `.`. Its state is stored under it. */
  readonly name: string
  /** What it remembers when a turn begins: plain JSON. Default null. */
  readonly initial?: State
  /**
   * Told every fact in order; returns what to remember from now on: plain JSON, at most 2 KB of it. The state that it
   * is given is frozen. Without it, the guard remembers nothing.
   */
  readonly observe?: (state: State, fact: GuardFact) => State
  /** Asked after each fact, and may take its time. */
  readonly verdict: (state: State, question: GuardContext) => GuardVerdict | Promise<GuardVerdict>
  /** What its halt does: ends the run in ERROR (the default), or keeps it in PAUSED, from where it can be resumed. */
  readonly onHalt?: 'error' | 'pause'
  /** Milliseconds that a verdict may take: 1 to 2,147,483,647. Default 5000. */
  readonly timeoutMs?: number
  /**
   * When it throws, takes too long, or returns what is no verdict or no state: `halt` (the default) stops the run,
   * because a guard that fails may have missed something; `ignore` goes on with a `warning`.
   */
  readonly onError?: 'halt' | 'ignore'
}

/** A guard that an agent can use, made by `defineGuard`. */
export interface UserGuard
  extends Required<Omit<GuardDefinition<Json>, 'observe'>>,
    Pick<GuardDefinition<Json>, 'observe'> {}
