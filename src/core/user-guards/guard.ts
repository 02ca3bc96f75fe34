import type { Json } from '../../../machines/agent/json.js'
import type { ResultStatus, ToolErrorKind } from '../../../machines/agent/batch-calls.js'
import { toUserState } from '../../../guards/user-state.js'
import { deepFreeze } from '../base/values.js'
import { isTimeout, readDefinition, timeoutRule } from '../config/definition.js'

/** A call requested by the model. */
export interface GuardedCall {
  /** The id of the model's call. */
  readonly id: string
  /** The tool name that the model wrote. The tool may not exist. */
  readonly name: string
  /** The parsed arguments, before validation against the tool's schema. Null if they are not JSON. */
  readonly arguments: Json
  /** The original text of the arguments, from the model or from the person who approved the call. */
  readonly argumentsText: string
  /** Whether the tool declares that it has no side effects. */
  readonly readOnly: boolean
  /** Whether the tool declares that it is meant to be called repeatedly. */
  readonly polling: boolean
}

/** How a call ended. */
export interface GuardedResult extends GuardedCall {
  /** The status of the call. `ok` is the only value that means success. */
  readonly status: ResultStatus
  /** The content that the model reads. */
  readonly content: string
  /** Why the tool failed. Null if the tool did not fail or the call never ran. */
  readonly errorKind: ToolErrorKind | null
}

/** The input of a guard, as deep-frozen plain JSON. */
export type GuardFact =
  /** The model requests these calls, and none of them has run. Calls refused by another guard are omitted. */
  | { readonly type: 'calls'; readonly calls: readonly GuardedCall[] }
  /** The batch has ended with one result per call, in call order. */
  | { readonly type: 'results'; readonly results: readonly GuardedResult[] }

/** The verdict that a guard returns. Messages are truncated to 2,000 characters, evidence to 600 characters. */
export type GuardVerdict =
  | undefined
  | true
  | { readonly action: 'ok' }
  /** `message` is guidance for the model. The message is added to the next request and never to the transcript. */
  | { readonly action: 'nudge'; readonly message: string }
  /**
   * Only for a `calls` fact. The calls do not run, and the model reads `message` as their result. `callIds` defaults to
   * all calls. An empty list blocks nothing.
   */
  | { readonly action: 'block'; readonly message: string; readonly callIds?: readonly string[] }
  /** Stops the run. `message` suggests a remedy to people, and `evidence` is the observation. */
  | { readonly action: 'halt'; readonly message: string; readonly evidence?: string }

/** The context of a verdict. */
export interface GuardContext {
  readonly fact: GuardFact
  /** Aborts if the verdict is no longer needed, because the run was stopped or `timeoutMs` has passed. */
  readonly signal: AbortSignal
  /** The app's object passed to the run. */
  readonly context: unknown
}

/** The definition of a custom guard, for `defineGuard`. */
export interface GuardDefinition<State> {
  /**
   * The name of the guard, unique in its agent. 1 to 64 letters, digits, `_`, `-` and `.`. The guard's state is stored
   * under this name.
   */
  readonly name: string
  /** The state at the start of a turn, as plain JSON. Defaults to null. */
  readonly initial?: State
  /**
   * Called for every fact in order. Returns the next state, which must be plain JSON of at most 2 KB. The state that
   * `observe` receives is frozen. Without `observe`, the guard has no state.
   */
  readonly observe?: (state: State, fact: GuardFact) => State
  /** Called after each fact. Can be asynchronous. */
  readonly verdict: (state: State, question: GuardContext) => GuardVerdict | Promise<GuardVerdict>
  /** How to halt. `error` (the default) ends the run in ERROR. `pause` pauses the run, which can then be resumed. */
  readonly onHalt?: 'error' | 'pause'
  /** Timeout for a verdict in milliseconds, from 1 to 2,147,483,647. Defaults to 5000. */
  readonly timeoutMs?: number
  /**
   * How to handle a guard that throws, times out, or returns an invalid verdict or state. `halt` (the default) stops
   * the run, because the guard may have missed a problem. `ignore` continues with a `warning`.
   */
  readonly onError?: 'halt' | 'ignore'
}

/** A guard for an agent, created by `defineGuard`. */
export interface UserGuard
  extends Required<Omit<GuardDefinition<Json>, 'observe'>>,
    Pick<GuardDefinition<Json>, 'observe'> {}

/**
 * Defines a custom guard. The guard checks the calls in every response before they run, and their results.
 *
 * ```ts
 * const atMostTenMails = defineGuard({
 *   name: 'at-most-ten-mails',
 *   initial: 0,
 *   observe: (sent, fact) =>
 *     fact.type === 'results' ? sent + fact.results.filter(({ name }) => name === 'send_mail').length : sent,
 *   verdict: (sent) => (sent > 10 ? { action: 'halt', message: 'More than ten mails in one turn.' } : undefined),
 * })
 * ```
 *
 * Throws a ConfigError `invalid_guard` for an invalid definition. The error names the guard and the remedy.
 */
export function defineGuard<State = null>(definition: GuardDefinition<State>): UserGuard {
  const { name, initial, observe, verdict, onHalt, timeoutMs, onError } = checkDefinition(definition)
  return Object.freeze({
    name,
    initial,
    ...(observe && { observe }),
    verdict,
    onHalt: onHalt ?? 'error',
    timeoutMs: timeoutMs ?? 5000,
    onError: onError ?? 'halt',
  })
}

const keys = ['name', 'initial', 'observe', 'verdict', 'onHalt', 'timeoutMs', 'onError']

function checkDefinition(definition: unknown): GuardDefinition<Json> & { initial: Json } {
  const { fields, refuse } = readDefinition('guard', definition, 'name, verdict, …')
  const { initial = null, observe, verdict, onHalt, timeoutMs = 1, onError } = fields
  const other = Object.keys(fields).find((key) => !keys.includes(key))
  if (other !== undefined) refuse(other, `there is no option '${other}'. The options are ${keys.join(', ')}.`)
  if (typeof verdict !== 'function') refuse('verdict', 'verdict must be a function.')
  if (!['undefined', 'function'].includes(typeof observe)) refuse('observe', 'observe must be a function.')
  if (![undefined, 'error', 'pause'].includes(onHalt as undefined))
    refuse('onHalt', "onHalt must be 'error' or 'pause'.")
  if (![undefined, 'halt', 'ignore'].includes(onError as undefined))
    refuse('onError', "onError must be 'halt' or 'ignore'.")
  if (!isTimeout(timeoutMs)) refuse('timeoutMs', `timeoutMs ${timeoutRule}`)
  const start = toUserState(initial)
  if ('problem' in start) return refuse('initial', `initial ${start.problem}.`)
  return { ...(definition as GuardDefinition<Json>), initial: deepFreeze(start.state) }
}

/** The argument of `stopWhen`. */
export interface StopQuestion {
  /** The results of the last batch in call order, without calls that only loaded a tool. */
  readonly results: readonly GuardedResult[]
  /** The steps of the run so far. 1 after the first response. */
  readonly step: number
  /** The app's object passed to the run. */
  readonly context: unknown
}

/**
 * Decides whether the run ends with the results of the last batch. Called once per batch. If it returns true, the last
 * successful result becomes the output.
 * @example
 * const stopWhen: StopWhen = ({ results }) => results.some(({ name, status }) => name === 'book' && status === 'ok')
 * createAgent({ model, tools, stopWhen })
 */
export type StopWhen = (question: StopQuestion) => boolean | Promise<boolean>
