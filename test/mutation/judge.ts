import type { AnyStateMachine } from 'xstate'
import { judgeLog } from '../../src/testing/reference-model/judge-log.js'
import { writePathLog } from '../spec/path-log.js'
import { paths, space } from './catch.js'
import { nearestFirst } from './nearness.js'

/**
 * The first generated path whose log, written by this machine, the rules of spec/ refuse; null when they take all. They
 * know nothing of the machine: so what they refuse is caught without any expectation that came of the machine. What the
 * rules leave open (src/testing/reference-model/details.ts) takes no part.
 * @param last the path that was refused in the last whole run, and null where none was. Left out: all are tried
 */
export function findUnlawfulPath(machine: AnyStateMachine, last?: number | null): number | null {
  if (last === null) return null
  if (last !== undefined && isUnlawful(machine, last)) return last
  const order = nearestFirst(machine, paths).map((path) => paths.indexOf(path))
  return order.find((path) => isUnlawful(machine, path)) ?? null
}

function isUnlawful(machine: AnyStateMachine, number: number): boolean {
  const path = paths[number]
  const input = path && space.inputs[path.input as string]
  if (!path || !input) return false
  try {
    return judgeLog(writePathLog(path, input, { machine, isSnappedOften: true })) !== null
  } catch {
    // The machine broke on the way: there is no log to be judged.
    return false
  }
}
