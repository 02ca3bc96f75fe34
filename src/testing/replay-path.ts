import {
  type AnyEventObject,
  type StateValue,
  initialTransition,
  transition,
  type AnyMachineSnapshot,
  type AnyStateMachine,
} from 'xstate'
import { optionsRule, expectArgument, objectRule } from '../core/base/values.js'
import { assertMachine } from './errors.js'
import { createWriter } from './explore-options.js'
import { describeEvent, describeState } from '../core/chart/state-labels.js'
import { systemClock } from '../core/base/clock.js'
import { describeError, UsageError } from '../core/base/errors.js'
import { type MachineRecord, openMachineRecord } from '../core/sessions/log/machine-record.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { unknownSessionError } from '../core/sessions/store/store-error.js'

/** The parts of a snapshot that are compared. */
export interface RestingState {
  value: StateValue
  status: 'active' | 'done' | 'error' | 'stopped'
}

/** A path from `generatePaths`, `@xstate/graph` or a generated test. */
export interface ReplayPath {
  /** The first step's event is `{ type: 'xstate.init', input }`. */
  steps: readonly ReplayStep[]
}

/** An event and its expected effect. */
export interface ReplayStep {
  event: AnyEventObject
  state: RestingState
  /** Expected events. Not compared if absent or if the harness has no `emitted`. */
  emitted?: readonly AnyEventObject[]
  /** Expected output. Not compared if absent. */
  output?: unknown
}

/** Connects a path to the live machine and its real actors. */
export interface ReplayHarness {
  start: (input: unknown) => unknown
  /**
   * Causes the event (for example, the model answers, a tool fails, or a person presses a button). `index` counts from
   * 1.
   */
  perform: (event: AnyEventObject, index: number) => unknown
  /** Resolves when the machine has settled. `expected` is the state in the path. */
  settled: (expected: RestingState) => unknown
  snapshot: () => RestingState & { output?: unknown }
  /** Events emitted by the last step. */
  emitted?: () => readonly AnyEventObject[]
  /** Ends the replay. Always called at the end. */
  stop: () => unknown
}

/** Options for `replay`. */
export interface ReplayOptions {
  /** The time limit per harness call in milliseconds. Defaults to 10,000. */
  timeoutMs?: number
  /** Clock for time limits. Defaults to the system clock. */
  clock?: ReplayClock
}

/** Compatible with XState's `SimulatedClock`. */
export interface ReplayClock {
  setTimeout(fn: () => void, ms: number): unknown
  clearTimeout(id: unknown): void
}

/** Step 0 is the start. */
export type ReplayResult =
  | { ok: true; steps: number }
  | {
      ok: false
      /** The first differing step. */
      step: number
      event: AnyEventObject
      expected: RestingState
      actual: RestingState | undefined
      message: string
    }

/**
 * Replays a path on the live machine and compares states up to the first difference. Never rejects or hangs, because
 * errors and timeouts in the harness count as failures of the step.
 *
 * ```ts
 * for (const path of paths) expect(await replay(path, createHarness())).toMatchObject({ ok: true })
 * ```
 */
export async function replay(
  path: ReplayPath,
  harness: ReplayHarness,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  expectArgument('replay(path)', path, objectRule(['steps'], 'a path of generatePaths(…).paths'))
  expectArgument(
    'replay(path, harness)',
    harness,
    objectRule(['start', 'perform', 'snapshot', 'stop'], 'a harness'),
  )
  expectArgument('replay(path, harness, options)', options, optionsRule)
  const { timeoutMs = 10_000, clock = systemClock } = options
  /** A call that has returned is in time, although its microtasks may move the clock past its limit. */
  const within: Within = async (call, name) => {
    const work = call()
    let timer: unknown
    const late = new Promise<never>((_, reject) => {
      const problem = new Error(`${name} of the harness took longer than ${timeoutMs} ms`)
      timer = clock.setTimeout(() => reject(problem), timeoutMs)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      clock.clearTimeout(timer)
    }
  }
  const result = await playPath(path, harness, within)
  try {
    await within(() => harness.stop(), 'stop()')
    return result
  } catch (error) {
    const last = path.steps.at(-1)
    if (!result.ok || !last) return result
    const expected = toRestingState(last.state)
    const message = `every state was reached as expected, but ${describeError(error)}`
    return { ok: false, step: result.steps - 1, event: last.event, expected, actual: expected, message }
  }
}

type Within = (call: () => unknown, name: string) => Promise<unknown>

async function playPath(path: ReplayPath, harness: ReplayHarness, within: Within): Promise<ReplayResult> {
  for (const [step, { event, state, ...more }] of path.steps.entries()) {
    const expected = toRestingState(state)
    // A harness may change its values between two steps, so their texts are not kept.
    const write = createWriter()
    let actual: RestingState | undefined
    let problem: string | null
    try {
      if (step === 0) await within(() => harness.start(event.input), 'start()')
      else await within(() => harness.perform(event, step), 'perform()')
      await within(() => harness.settled(expected), 'settled()')
      actual = toRestingState(harness.snapshot())
      problem =
        write(expected) === write(actual)
          ? findParting(more, harness, write)
          : `should lead to ${describeState(expected)}, but led to ${describeState(actual)}`
    } catch (error) {
      problem = `should lead to ${describeState(expected)}, but ${describeError(error)}`
    }
    if (problem === null) continue
    return { ok: false, step, event, expected, actual, message: `${describeEvent(event)} ${problem}` }
  }
  return { ok: true, steps: path.steps.length }
}

function findParting(
  expected: Omit<ReplayStep, 'event' | 'state'>,
  { emitted, snapshot }: ReplayHarness,
  write: (value: unknown) => string,
): string | null {
  if (expected.emitted && emitted && write(expected.emitted) !== write(emitted()))
    return `should emit ${write(expected.emitted)}, but emitted ${write(emitted())}`
  if (!('output' in expected)) return null
  const { output } = snapshot()
  return write(expected.output) === write(output)
    ? null
    : `should output ${write(expected.output)}, but output ${write(output)}`
}

function toRestingState({ value, status }: RestingState): RestingState {
  return { value, status }
}

/**
 * Creates a harness for the machine alone, with pure transitions and without actors. Generated tests with this harness
 * detect changes to the chart.
 *
 * @example
 * const { paths } = generatePaths(machine, { alphabet })
 * for (const path of paths) expect(await replay(path, createMachineHarness(machine))).toMatchObject({ ok: true })
 * @throws {PathError} `not_a_machine`, `xstate_v4`
 */
export function createMachineHarness(machine: AnyStateMachine): ReplayHarness {
  assertMachine(machine)
  let current: AnyMachineSnapshot | undefined
  let emitted: AnyEventObject[] = []
  const take = ([next, actions]: [unknown, readonly { type: string; params?: unknown }[]]): void => {
    current = next as AnyMachineSnapshot
    emitted = listEmitted(actions)
  }
  const snapshot = (): AnyMachineSnapshot => {
    if (!current) throw new UsageError('not_started', 'The harness has no snapshot yet. Call start() first.')
    return current
  }
  return {
    start: (input) => take(initialTransition(machine, input)),
    perform: (event) => take(transition(machine, snapshot(), event)),
    settled: () => undefined,
    snapshot,
    emitted: () => emitted,
    stop: () => undefined,
  }
}

export function listEmitted(actions: readonly { type: string; params?: unknown }[]): AnyEventObject[] {
  return actions
    .filter(({ type }) => type === 'xstate.emit')
    .map(({ params }) => (params as { event: AnyEventObject }).event)
}

/**
 * The path of a stored `statewright/durable` session, for `replay`. This turns a session into a test of the chart.
 * Events that had no effect are omitted. The path of a fork starts with the path of its source.
 *
 * @example
 * const path = await pathOf(store, 'claim-17')
 * const result = await replay(path, createMachineHarness(claims.machine))
 * @throws {UsageError} `other_session` for the session of an agent
 * @throws {StoreError} `unknown_session`, `corrupt_log`, `newer_log`
 */
export async function pathOf(store: SessionStore, sessionId: string): Promise<ReplayPath> {
  expectArgument('pathOf(store)', store, objectRule(['read'], 'a session store'))
  return { steps: await readSteps(store, checkSessionId(sessionId)) }
}

async function readSteps(store: SessionStore, id: string, to?: number): Promise<ReplayStep[]> {
  const records = await store.read(id, to === undefined ? {} : { to })
  const opened = records.map((record) => openMachineRecord(record, id))
  const [first] = opened
  if (first === undefined) throw unknownSessionError(id)
  if (first === null)
    throw new UsageError(
      'other_session',
      `Session '${id}' belongs to an agent. pathOf reads sessions of machines. Use recordSession for sessions of agents.`,
      id,
    )
  const steps = (opened as MachineRecord[]).filter(({ refused }) => refused === undefined).map(toStep)
  if (first.forkedFrom === undefined) return steps
  const { sessionId, seq } = first.forkedFrom
  return [...(await readSteps(store, sessionId, seq)), ...steps.slice(1)]
}

function toStep({ event, state: { value, status, output } }: MachineRecord): ReplayStep {
  return { event, state: { value: value as never, status }, ...(output !== undefined && { output }) }
}
