import type { AnyStateMachine } from 'xstate'
import { PathError } from './errors.js'

/**
 * Refuses what is not an XState v5 machine, with the reason.
 * @throws {PathError} `not_a_machine`, `xstate_v4`
 */
export function assertMachine(value: unknown): asserts value is AnyStateMachine {
  const machine = asRecord(value)
  if (machine === undefined) throw notAMachine(value === null ? 'null' : `a ${typeof value}`)
  if (typeof machine.withContext === 'function' || typeof machine.withConfig === 'function') {
    throw new PathError(
      'xstate_v4',
      'This is a machine of XState v4. Create it with createMachine of xstate 5.',
    )
  }
  if (typeof machine.getSnapshot === 'function') throw notAMachine('an actor; pass the machine that it runs')
  if (typeof machine.createMachine === 'function') {
    throw notAMachine('the result of setup(); call its createMachine()')
  }
  const { __xstatenode: isNode } = machine
  if (isNode !== true || asRecord(machine.root) === undefined) {
    throw notAMachine(
      'states' in machine ? 'a plain config; wrap it in createMachine()' : 'some other object',
    )
  }
  refuseV4Config(machine.config, '')
}

function notAMachine(found: string): PathError {
  return new PathError('not_a_machine', `Expected an XState v5 state machine, but found ${found}.`)
}

/** v5 ignores the keys that it has renamed: such a machine runs, with its guards and activities silently gone. */
function refuseV4Config(config: unknown, path: string): void {
  const node = asRecord(config)
  if (node === undefined) return
  const transitions = [node.on, node.after].flatMap((handlers) => Object.entries(asRecord(handlers) ?? {}))
  for (const [event, branches] of [
    ...transitions,
    ['always', node.always],
    ['onDone', node.onDone],
  ] as const) {
    for (const branch of [branches].flat()) {
      if (asRecord(branch)?.cond !== undefined) throw v4Key('cond', 'guard', `${path}.${event}`)
    }
  }
  if (node.activities !== undefined) throw v4Key('activities', 'invoke', path)
  for (const [key, child] of Object.entries(asRecord(node.states) ?? {}))
    refuseV4Config(child, `${path}.${key}`)
}

function v4Key(key: string, replacement: string, path: string): PathError {
  const where = path.replace(/^\./, '') || 'the root state'
  return new PathError(
    'xstate_v4',
    `The config uses '${key}' at ${where}, a key of XState v4 that v5 ignores. Use '${replacement}' instead.`,
    where,
  )
}

function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
