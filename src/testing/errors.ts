import { StatewrightError } from '../core/base/errors.js'
import { describeArgument } from '../core/base/values.js'
import type { AnyStateMachine } from 'xstate'

/**
 * Why a machine cannot be explored:
 *
 * - `not_a_machine`, `xstate_v4`: the value is not an XState v5 machine
 * - `bad_option`: an input list, alphabet, limit or callback is invalid
 * - `state_limit`: there are more states than the limit; the message names the context keys that keep growing
 * - `guard_threw`, `guard_missing`, `action_threw`, `endless_loop`: the machine fails on the named path
 * - `coarse_states`: `serializeState` omits values that guards read
 * - `property_threw`: the named property threw
 * - `unknown_state`: the machine has no such state
 * - `unserializable_state`, `not_json`: a value cannot be compared or serialized
 */
export type PathErrorCode =
  | 'not_a_machine'
  | 'xstate_v4'
  | 'bad_option'
  | 'state_limit'
  | 'guard_threw'
  | 'guard_missing'
  | 'action_threw'
  | 'endless_loop'
  | 'coarse_states'
  | 'property_threw'
  | 'unknown_state'
  | 'unserializable_state'
  | 'not_json'

/**
 * A machine that cannot be explored. `subject` is the option, guard or state at fault.
 *
 * @example
 * try {
 *   generatePaths(machine, { alphabet, limit: 1 })
 * } catch (error) {
 *   if (error instanceof PathError) console.log(error.code, error.message) // → state_limit …
 * }
 */
export class PathError extends StatewrightError {
  override readonly name = 'PathError'
  declare readonly code: PathErrorCode
}

export function getErrorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** @throws {PathError} `not_a_machine`, `xstate_v4` */
export function assertMachine(value: unknown): asserts value is AnyStateMachine {
  const machine = toRecord(value)
  if (machine === undefined) throw notAMachineError(describeArgument(value))
  if (typeof machine.withContext === 'function' || typeof machine.withConfig === 'function') {
    throw new PathError(
      'xstate_v4',
      'This machine was created with XState v4. Create it with createMachine from xstate 5.',
    )
  }
  if (typeof machine.getSnapshot === 'function')
    throw notAMachineError('an actor; pass the machine that it runs')
  if (typeof machine.createMachine === 'function') {
    throw notAMachineError('the result of setup(); call its createMachine()')
  }
  const { __xstatenode: isNode } = machine
  if (isNode !== true || toRecord(machine.root) === undefined) {
    throw notAMachineError(
      'states' in machine
        ? 'a plain configuration; pass it to createMachine()'
        : 'a different kind of object',
    )
  }
  checkV4Config(machine.config, '')
}

function notAMachineError(found: string): PathError {
  return new PathError('not_a_machine', `Expected an XState v5 state machine, but found ${found}.`)
}

/** Rejects a v4 machine. XState v5 ignores renamed keys, so it would run without its guards and activities. */
function checkV4Config(config: unknown, path: string): void {
  const node = toRecord(config)
  if (node === undefined) return
  const transitions = [node.on, node.after].flatMap((handlers) => Object.entries(toRecord(handlers) ?? {}))
  for (const [event, branches] of [
    ...transitions,
    ['always', node.always],
    ['onDone', node.onDone],
  ] as const) {
    for (const branch of [branches].flat()) {
      if (toRecord(branch)?.cond !== undefined) throw v4KeyError('cond', 'guard', `${path}.${event}`)
    }
  }
  if (node.activities !== undefined) throw v4KeyError('activities', 'invoke', path)
  for (const [key, child] of Object.entries(toRecord(node.states) ?? {}))
    checkV4Config(child, `${path}.${key}`)
}

function v4KeyError(key: string, replacement: string, path: string): PathError {
  const where = path.replace(/^\./, '') || 'the root state'
  return new PathError(
    'xstate_v4',
    `The config uses '${key}' at ${where}, a key of XState v4 that v5 ignores. Use '${replacement}' instead.`,
    where,
  )
}

function toRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
