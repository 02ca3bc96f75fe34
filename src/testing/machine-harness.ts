import {
  initialTransition,
  transition,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
} from 'xstate'
import { assertMachine } from './assert-machine.js'
import { UsageError } from '../core/base/errors.js'
import type { ReplayHarness } from './replay-path.js'

/**
 * Replays on the machine alone: pure transitions, no actors. Generated tests that use it tell when a change of the
 * chart changes what happens.
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
    start: (input) => {
      take(initialTransition(machine, input))
    },
    perform: (event) => {
      take(transition(machine, snapshot(), event))
    },
    settled: () => undefined,
    snapshot,
    emitted: () => emitted,
    stop: () => undefined,
  }
}

/** The events among the actions of a step that it emits. */
export function listEmitted(actions: readonly { type: string; params?: unknown }[]): AnyEventObject[] {
  return actions
    .filter(({ type }) => type === 'xstate.emit')
    .map(({ params }) => (params as { event: AnyEventObject }).event)
}
