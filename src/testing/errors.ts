import { StatewrightError } from '../core/base/errors.js'
import { readProperty } from '../core/base/json.js'
import { describeArgument, isObject } from '../core/base/values.js'
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

/** @throws {PathError} `not_a_machine`, `xstate_v4` */
export function assertMachine(value: unknown): asserts value is AnyStateMachine {
  if (!isObject(value)) throw notAMachineError(describeArgument(value))
  const { withContext, withConfig, getSnapshot, createMachine, __xstatenode: isNode, root, config } = value
  if (typeof withContext === 'function' || typeof withConfig === 'function') {
    throw new PathError(
      'xstate_v4',
      'This machine was created with XState v4. Create it with createMachine from xstate 5.',
    )
  }
  if (typeof getSnapshot === 'function') throw notAMachineError('an actor; pass the machine that it runs')
  if (typeof createMachine === 'function')
    throw notAMachineError('the result of setup(); call its createMachine()')
  if (isNode !== true || !isObject(root)) {
    const isConfig = 'states' in value
    throw notAMachineError(
      isConfig ? 'a plain configuration; pass it to createMachine()' : 'a different kind of object',
    )
  }
  checkV4Config(config, '')
}

function notAMachineError(found: string): PathError {
  return new PathError('not_a_machine', `Expected an XState v5 state machine, but found ${found}.`)
}

/** Rejects a v4 machine. XState v5 ignores renamed keys, so it would run without its guards and activities. */
function checkV4Config(config: unknown, path: string): void {
  const { on, after, always, onDone, activities, states } = (config ?? {}) as Record<string, unknown>
  const handlers = [...Object.entries(on ?? {}), ...Object.entries(after ?? {})]
  for (const [event, branches] of [...handlers, ['always', always], ['onDone', onDone]] as const) {
    for (const branch of [branches].flat()) {
      if (readProperty(branch, 'cond') !== undefined) throw v4KeyError('cond', 'guard', `${path}.${event}`)
    }
  }
  if (activities !== undefined) throw v4KeyError('activities', 'invoke', path)
  for (const [key, child] of Object.entries(states ?? {})) checkV4Config(child, `${path}.${key}`)
}

function v4KeyError(key: string, replacement: string, path: string): PathError {
  const where = path.replace(/^\./, '') || 'the root state'
  return new PathError(
    'xstate_v4',
    `The config uses '${key}' at ${where}, a key of XState v4 that v5 ignores. Use '${replacement}' instead.`,
    where,
  )
}
