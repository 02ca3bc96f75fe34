import type { AnyStateMachine } from 'xstate'
import { judgeLog } from '../../src/testing/reference-model/judge-log.js'
import { writePathLog } from '../spec/path-log.js'
import { getKey, paths, pathsByKey, space } from './catch.js'
import { nearestFirst } from './nearness.js'

/**
 * The first generated path whose log the rules of spec/ reject, when this machine writes it. Null when they accept all. The rules
 * are independent of the machine, so no expectation derives from it. The details that the rules leave open
 * (src/testing/reference-model/details.ts) are excluded.
 * @param last the path that was rejected in the last full run, or null. When omitted, all paths are tried
 */
export function findUnlawfulPath(machine: AnyStateMachine, last?: string | null): string | null {
  if (last === null) return null
  if (last !== undefined && isUnlawful(machine, last)) return last
  const order = nearestFirst(machine, paths).map(getKey)
  return order.find((path) => isUnlawful(machine, path)) ?? null
}

function isUnlawful(machine: AnyStateMachine, key: string): boolean {
  const path = pathsByKey.get(key)
  const input = path && space.inputs[path.input as string]
  if (!path || !input) return false
  try {
    return judgeLog(writePathLog(path, input, { machine, isSnappedOften: true })) !== null
  } catch {
    // The machine threw, so there is no log.
    return false
  }
}
