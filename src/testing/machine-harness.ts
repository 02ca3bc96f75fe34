import { initialTransition, transition, type AnyMachineSnapshot, type AnyStateMachine } from 'xstate'
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
  const snapshot = (): AnyMachineSnapshot => {
    if (!current) throw new UsageError('not_started', 'The harness has no snapshot yet. Call start() first.')
    return current
  }
  return {
    start: (input) => {
      current = initialTransition(machine, input)[0] as AnyMachineSnapshot
    },
    perform: (event) => {
      current = transition(machine, snapshot(), event)[0] as AnyMachineSnapshot
    },
    settled: () => undefined,
    snapshot,
    stop: () => undefined,
  }
}
