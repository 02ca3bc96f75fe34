import { StatewrightError } from '../../core/base/errors.js'
import { createRandomChoices } from '../check-assertions.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { whenAborted } from '../../core/base/abort.js'
import { expectArgument, objectRule } from '../../core/base/values.js'
import { ModelError, type ModelProvider, type ModelRequestOptions } from '../../core/models/provider.js'
import { replaceRequest } from '../../core/models/leave-out.js'
import type { Tool, ToolExecution } from '../../core/tools/tool.js'
import type { Lease, SessionStore } from '../../core/sessions/store/store.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import { storeMethods } from '../../core/sessions/store/checked-store.js'

/** A fault at a fixed position. */
export interface PlannedFault<Fault extends string> {
  /** Number of the request, call or write, from 1. */
  at: number
  fault: Fault
}

/** Random faults, reproducible by seed. */
export interface RandomFaults<Fault extends string> {
  seed: number
  /** Probability of a fault per request, call or write, from 0 to 1. */
  rate: number
  /** Faults to draw from. Defaults to the faults from which a run can recover. */
  faults?: readonly Fault[]
}

/** Which faults happen, and when. */
export type FaultPlan<Fault extends string> = readonly PlannedFault<Fault>[] | RandomFaults<Fault>

/**
 * The faults planned for a `chaosModel`, `chaosTool` or `chaosStore`. A test whose fault did not occur proves nothing.
 *
 * @example
 * const faulty = chaosModel(model, [{ at: 1, fault: 'cut' }])
 * await createAgent({ model: faulty }).run('Go.').result
 * faulty.certify()
 */
export interface Chaos<Fault extends string> {
  /** The faults that have occurred so far, in order. The list grows. */
  readonly landed: readonly PlannedFault<Fault>[]
  /**
   * Throws unless all planned faults, or at least one random fault, have occurred.
   * @throws {ChaosError} `not_landed`, with the faults that have not occurred
   */
  certify(): void
}

/** `not_landed`: a fault did not occur, so the test proves nothing. `bad_option`: the plan is invalid. */
export type ChaosErrorCode = 'not_landed' | 'bad_option'

/**
 * An invalid or unfulfilled fault plan. `subject` is the function that created the faults.
 *
 * @example
 * const store = chaosStore(memoryStore(), [{ at: 9, fault: 'refused' }])
 * try {
 *   store.certify()
 * } catch (error) {
 *   if (error instanceof ChaosError) console.log(error.message) // → chaosStore: the fault 'refused' at write 9 did not land …
 * }
 */
export class ChaosError extends StatewrightError {
  override readonly name = 'ChaosError'
  declare readonly code: ChaosErrorCode
}

interface FaultKind<Fault extends string> {
  /** The name for error messages, such as `chaosModel`. */
  of: string
  /** The unit to count: `request`, `call` or `write`. */
  unit: string
  faults: readonly Fault[]
  /** Faults to draw from if the plan names none. */
  passing: readonly Fault[]
}

/** Counts the requests, calls or writes, and chooses the fault of each. */
function createFaults<Fault extends string>(kind: FaultKind<Fault>, plan: FaultPlan<Fault>) {
  checkPlan(kind, plan)
  const { of, unit } = kind
  const landed: PlannedFault<Fault>[] = []
  const choose = isPlanned(plan)
    ? (at: number) => plan.find((one) => one.at === at)?.fault
    : createDraw(kind, plan)
  let count = 0

  function certify(): void {
    const times = count === 1 ? `1 ${unit}` : `${count} ${unit}s`
    if (!isPlanned(plan)) {
      if (landed.length > 0) return
      const why = `no fault landed in ${times} (seed ${plan.seed}, rate ${plan.rate})`
      throw new ChaosError('not_landed', `${of}: ${why}. Raise the rate or use another seed.`, of)
    }
    const missing = plan.filter(
      ({ at, fault }) => !landed.some((one) => one.at === at && one.fault === fault),
    )
    if (missing.length === 0) return
    const list = missing.map(({ at, fault }) => `'${fault}' at ${unit} ${at}`).join(', ')
    const what = missing.length === 1 ? `the fault ${list} did not land` : `the faults ${list} did not land`
    const text = `${of}: ${what}; there were ${times}. The test passed without the planned faults.`
    throw new ChaosError('not_landed', text, of)
  }

  return {
    chaos: { landed, certify } satisfies Chaos<Fault>,
    next(): { fault: Fault | undefined; land: () => void } {
      const at = ++count
      const fault = choose(at)
      return { fault, land: () => void (fault && landed.push({ at, fault })) }
    },
  }
}

function isPlanned<Fault extends string>(plan: FaultPlan<Fault>): plan is readonly PlannedFault<Fault>[] {
  return Array.isArray(plan)
}

function createDraw<Fault extends string>(
  { passing }: FaultKind<Fault>,
  { seed, rate, faults = passing }: RandomFaults<Fault>,
): () => Fault | undefined {
  const { whole } = createRandomChoices(seed)
  return () => {
    const isHit = whole(999_999) < rate * 1_000_000
    const fault = faults[whole(faults.length - 1)]
    return isHit ? fault : undefined
  }
}

function checkPlan<Fault extends string>({ of, unit, faults }: FaultKind<Fault>, plan: unknown): void {
  const refuse = (what: string): never => {
    throw new ChaosError('bad_option', `${of}: ${what}`, of)
  }
  const checkFault = (fault: unknown): void => {
    if (!(faults as readonly unknown[]).includes(fault))
      refuse(`unknown fault '${String(fault)}'. Available: ${faults.join(', ')}.`)
  }
  if (typeof plan !== 'object' || plan === null)
    refuse('faults must be a list of { at, fault }, or { seed, rate } for random faults.')
  if (Array.isArray(plan)) {
    if (plan.length === 0)
      refuse(`the list of faults is empty: name at least one, { at: 1, fault: '${faults[0]}' }.`)
    for (const planned of plan as readonly unknown[]) {
      const { at, fault } = (planned ?? {}) as Partial<PlannedFault<string>>
      if (!Number.isSafeInteger(at) || Number(at) < 1)
        refuse(`at must be a ${unit} number, a positive integer (got ${String(at)}).`)
      checkFault(fault)
    }
    return
  }
  const { seed, rate, faults: drawn } = plan as Partial<RandomFaults<string>>
  if (!Number.isSafeInteger(seed)) refuse(`seed must be an integer (got ${String(seed)}).`)
  if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1))
    refuse(`rate must be a number from 0 to 1 (got ${String(rate)}).`)
  if (drawn === undefined) return
  if (!Array.isArray(drawn) || drawn.length === 0) refuse('faults must be a list of at least one fault.')
  for (const fault of drawn as readonly unknown[]) checkFault(fault)
}

/**
 * Faults in a model request:
 *
 * - `overloaded`: status 503, and no request is sent
 * - `rate_limited`: status 429, to be retried after one second
 * - `refused`: status 400, which is not retried
 * - `cut`: the connection breaks after half of the text
 * - `stalled`: after half of the text, nothing arrives until the run gives up
 * - `truncated`: half of the text, truncated arguments of the last call, and the finish reason `length`
 * - `unfinished`: the whole text, but the stream closes without an end marker
 * - `empty`: an answer without content
 */
export type ModelFault =
  | 'overloaded'
  | 'rate_limited'
  | 'refused'
  | 'cut'
  | 'stalled'
  | 'truncated'
  | 'unfinished'
  | 'empty'

const modelFaults: FaultKind<ModelFault> = {
  of: 'chaosModel',
  unit: 'request',
  faults: ['overloaded', 'rate_limited', 'refused', 'cut', 'stalled', 'truncated', 'unfinished', 'empty'],
  passing: ['overloaded', 'rate_limited', 'cut', 'unfinished'],
}

/**
 * Wraps a model so that it fails as planned, and records the faults that occurred. Other requests are passed to the
 * wrapped model.
 *
 * @example
 * const faulty = chaosModel(model, [{ at: 1, fault: 'overloaded' }])
 * const { state } = await createAgent({ model: faulty }).run('Go.').result
 * faulty.certify() // throws where the fault did not happen
 *
 * @throws {ChaosError} `bad_option` for an invalid plan
 */
export function chaosModel(
  model: ModelProvider,
  plan: FaultPlan<ModelFault>,
): ModelProvider & Chaos<ModelFault> {
  expectArgument('chaosModel(model)', model, objectRule(['request', 'provider', 'model'], 'a model'))
  const faults = createFaults(modelFaults, plan)
  const request: ModelProvider['request'] = async (modelRequest, options) => {
    const { fault, land } = faults.next()
    if (fault === undefined) return model.request(modelRequest, options)
    const refusal = refusals[fault]
    if (refusal) {
      options.onSent?.()
      land()
      throw new ModelError(refusal)
    }
    // Fetches the answer first, then alters it.
    const answer = await model.request(modelRequest, { ...options, onDelta: ignore, onToolCallDelta: ignore })
    options.signal.throwIfAborted()
    return bend(fault, answer, options, land)
  }
  return { ...replaceRequest(model, request), ...faults.chaos }
}

const ignore = (): void => undefined

const refusals: Partial<Record<ModelFault, ConstructorParameters<typeof ModelError>[0]>> = {
  overloaded: { kind: 'transient', code: 'http_503', message: 'The model is overloaded.', status: 503 },
  rate_limited: {
    kind: 'rate_limit',
    code: 'http_429',
    message: 'Too many requests.',
    status: 429,
    retryAfterMs: 1000,
  },
  refused: { kind: 'fatal', code: 'http_400', message: 'The request is refused.', status: 400 },
}

const half = (text: string): string => text.slice(0, Math.ceil(text.length / 2))

async function bend(
  fault: ModelFault,
  answer: ModelResponse,
  { onDelta, onActivity, signal }: ModelRequestOptions,
  land: () => void,
): Promise<ModelResponse> {
  const send = (text: string): void => {
    onActivity('content')
    if (text !== '') onDelta(text, '')
  }
  if (fault === 'empty') {
    land()
    return { ...answer, text: '', toolCalls: [], finishReason: 'stop' }
  }
  if (fault === 'unfinished') {
    send(answer.text)
    land()
    return { ...answer, finishReason: null, complete: false }
  }
  const text = half(answer.text)
  send(text)
  land()
  if (fault === 'truncated')
    return { ...answer, text, toolCalls: cutLastCall(answer.toolCalls), finishReason: 'length' }
  if (fault === 'stalled') return untilAborted(signal)
  throw new ModelError({
    kind: 'transient',
    code: 'connection',
    message: 'The connection broke.',
    partialText: text,
  })
}

function cutLastCall(calls: ModelResponse['toolCalls']): ModelResponse['toolCalls'] {
  return calls.map((call, index) =>
    index < calls.length - 1
      ? call
      : { ...call, function: { ...call.function, arguments: call.function.arguments.slice(0, -1) } },
  )
}

export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    whenAborted(signal, () => reject(signal.reason as Error))
  })
}

/**
 * Faults in a tool call:
 *
 * - `throws`: throws before doing anything
 * - `lost_reply`: does its work, then throws
 * - `hangs`: waits until its signal aborts
 * - `deaf`: never ends and ignores its signal
 * - `undefined`: does its work and returns undefined
 * - `circular`: does its work and returns an object that cannot be serialized
 */
export type ToolFault = 'throws' | 'lost_reply' | 'hangs' | 'deaf' | 'undefined' | 'circular'

const toolFaults: FaultKind<ToolFault> = {
  of: 'chaosTool',
  unit: 'call',
  faults: ['throws', 'lost_reply', 'hangs', 'deaf', 'undefined', 'circular'],
  passing: ['throws', 'lost_reply', 'undefined', 'circular'],
}

/**
 * Wraps a tool so that it fails as planned, and records the faults that occurred. Other calls are passed to the wrapped
 * tool.
 *
 * @example
 * const search = chaosTool(add, [{ at: 1, fault: 'lost_reply' }])
 * await createAgent({ model, tools: [search] }).run('Go.').result
 * search.certify()
 *
 * @throws {ChaosError} `bad_option` for an invalid plan, or a tool that the run does not execute
 */
export function chaosTool<Given extends Tool>(
  tool: Given,
  plan: FaultPlan<ToolFault>,
): Given & Chaos<ToolFault> {
  expectArgument(
    'chaosTool(tool)',
    tool,
    objectRule(['name', 'parameters', 'validate'], 'a tool created by defineTool'),
  )
  const inner = tool.execute as Execute | undefined
  if (typeof inner !== 'function') {
    const why = `'${tool.name}' is executed by its client or by a sub-agent, so it cannot have faults`
    throw new ChaosError('bad_option', `chaosTool: ${why}. Use a tool with an execute function.`, 'chaosTool')
  }
  const faults = createFaults(toolFaults, plan)
  const execute: Execute = async (input, execution) => {
    const { fault, land } = faults.next()
    if (fault === undefined) return inner(input, execution)
    const doesWork = fault === 'lost_reply' || fault === 'undefined' || fault === 'circular'
    if (doesWork) await inner(input, execution)
    land()
    switch (fault) {
      case 'hangs':
        return untilAborted(execution.signal)
      case 'deaf':
        return new Promise<never>(() => undefined)
      case 'undefined':
        return undefined
      case 'circular':
        return createRing()
      default:
        throw new Error(fault === 'throws' ? 'The tool failed.' : 'The reply was lost.')
    }
  }
  return { ...tool, execute, ...faults.chaos }
}

type Execute = (input: unknown, execution: ToolExecution) => unknown

function createRing(): object {
  const ring: Record<string, unknown> = { big: 10n }
  ring['self'] = ring
  return ring
}

/**
 * Faults in a write (`append`):
 *
 * - `refused`: writes nothing and throws `store_unavailable`
 * - `lost_reply`: writes, then throws `store_unavailable`
 * - `disk_full`, `lease_lost`: writes nothing and throws that error
 * - `hangs`: writes nothing and never settles
 * - `dies`: writes nothing, and no later call settles, as if the process had died before the write
 * - `dies_after`: the same, but after the write
 */
export type StoreFault =
  | 'refused'
  | 'lost_reply'
  | 'disk_full'
  | 'lease_lost'
  | 'hangs'
  | 'dies'
  | 'dies_after'

const storeFaults: FaultKind<StoreFault> = {
  of: 'chaosStore',
  unit: 'write',
  faults: ['refused', 'lost_reply', 'disk_full', 'lease_lost', 'hangs', 'dies', 'dies_after'],
  passing: ['refused', 'lost_reply', 'disk_full'],
}

/**
 * Wraps a store so that writes fail as planned, and records the faults that occurred. Other calls are passed to the
 * wrapped store. To see what a dead process left behind, open the wrapped store again.
 *
 * @example
 * const store = chaosStore(memoryStore(), [{ at: 2, fault: 'lost_reply' }])
 * const { reason } = await createAgent({ model, store }).run('Go.', { session: 'ann' }).result
 * store.certify()
 *
 * @throws {ChaosError} `bad_option` for an invalid plan
 */
export function chaosStore(
  store: SessionStore,
  plan: FaultPlan<StoreFault>,
): SessionStore & Chaos<StoreFault> {
  expectArgument('chaosStore(store)', store, objectRule(['append', 'acquire', 'read'], 'a session store'))
  const faults = createFaults(storeFaults, plan)
  const state = { isDead: false }
  const append: SessionStore['append'] = async (lease, ...rest) => {
    const { fault, land } = faults.next()
    if (fault === undefined) return store.append(lease, ...rest)
    const isWritten = fault === 'lost_reply' || fault === 'dies_after'
    if (fault === 'dies') state.isDead = true
    if (isWritten) await store.append(lease, ...rest)
    if (fault === 'dies_after') state.isDead = true
    land()
    if (fault === 'hangs' || state.isDead) return silence()
    throw refuseWrite(fault, lease)
  }
  return { ...guardAll(store, append, state), ...faults.chaos }
}

const silence = (): Promise<never> => new Promise(() => undefined)

function refuseWrite(fault: StoreFault, { sessionId }: Lease): StoreError {
  if (fault === 'disk_full') return new StoreError('disk_full', 'The disk is full.', sessionId)
  if (fault === 'lease_lost')
    return new StoreError('lease_lost', `Another process has taken over '${sessionId}'.`, sessionId)
  const what = fault === 'lost_reply' ? "The store's reply was lost." : 'The store is away.'
  return new StoreError('store_unavailable', what, sessionId)
}

/** Wraps every method of a store, including a store that is a class instance. After a death, no call settles. */
function guardAll(
  store: SessionStore,
  append: SessionStore['append'],
  state: { isDead: boolean },
): SessionStore {
  const guard = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value === 'object' && value !== null) return guard(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) =>
          state.isDead ? silence() : (value as (...args: unknown[]) => unknown).apply(target, args)
      },
    })
  const guarded = guard(store)
  const { inbox, timers } = guarded
  const methods = storeMethods.flatMap((name) => (guarded[name] ? [[name, guarded[name]] as const] : []))
  return {
    ...(Object.fromEntries(methods) as unknown as SessionStore),
    append: (...args) => (state.isDead ? silence() : append(...args)),
    close: () => store.close(),
    ...(inbox && { inbox }),
    ...(timers && { timers }),
  }
}
