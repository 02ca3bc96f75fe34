import { pathToStateValue, type AnyMachineSnapshot, type AnyStateMachine } from 'xstate'
import { getStateName, listStateNodes } from '../core/chart/transitions.js'
import { PathError } from './errors.js'

/**
 * Whether a snapshot is in the state of this dotted path.
 * @throws {PathError} `unknown_state`, with what was meant
 */
export function createStateTest(
  machine: AnyStateMachine,
  path: string,
): (snapshot: AnyMachineSnapshot) => boolean {
  const names = listStateNodes(machine).map(getStateName)
  if (!names.includes(path)) {
    const last = path.split('.').at(-1) ?? ''
    const close = names.filter((name) => name.split('.').at(-1)?.toLowerCase() === last.toLowerCase())
    const hint =
      close.length > 0 ? ` Did you mean ${close.join(' or ')}?` : ` It has ${names.slice(1).join(', ')}.`
    throw new PathError('unknown_state', `The machine has no state '${path}'.${hint}`, path)
  }
  if (path === '(root)') return () => true
  const value = pathToStateValue(path.split('.'))
  return (snapshot) => snapshot.matches(value)
}
