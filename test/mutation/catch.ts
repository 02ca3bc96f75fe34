import { createHash } from 'node:crypto'
import type { AnyStateMachine } from 'xstate'
import {
  agentInvariants,
  agentSpace,
  checkInvariants,
  type Invariant,
  createMachineHarness,
  PathError,
  type MachinePath,
  replay,
} from '../../src/testing/index.js'
import { agentPaths } from '../support/agent-paths.js'
import { nearestFirst } from './nearness.js'

export const space = agentSpace()
export const paths = agentPaths()

/** By a hash of the input and the events, because the number of a path changes with each new path before it. */
export const pathsByKey = new Map(paths.map((path) => [getKey(path), path]))

export function getKey({ input, steps }: MachinePath): string {
  const labels = JSON.stringify([input, ...steps.map(({ label }) => label)])
  return createHash('sha256').update(labels).digest('hex').slice(0, 8)
}

/** The catcher of a mutant. It is a generated path by its key, or the runs from one input (null: all runs). */
export type Killer = { path: string } | { input: string | null }

export interface Catch {
  caughtBy: string
  killer: Killer
}

interface SearchOptions {
  last?: Killer | undefined
  isExcused?: boolean
  isWhole?: boolean
}

/**
 * The part of the generated suite that detects a mutant. Null when none does. `last` caught the mutant in the last full run, so it
 * is tried first. A mutant with a known equivalence (`isExcused`) must pass every path, and the runs from the nearest input.
 * `isWhole` searches all runs for it, which takes a minute each.
 */
export async function findCatch(
  machine: AnyStateMachine,
  { last, isExcused = false, isWhole = false }: SearchOptions = {},
): Promise<Catch | null> {
  const again = last && (await tryKiller(machine, last))
  if (again) return again
  for (const path of nearestFirst(machine, paths)) {
    const found = await tryKiller(machine, { path: getKey(path) })
    if (found) return found
  }
  const inputs = listInputs(machine)
  const searched = !isExcused ? inputs : isWhole ? [null] : inputs.slice(0, 1)
  for (const input of searched) {
    const found = tryInvariants(machine, input)
    if (found) return found
  }
  return null
}

async function tryKiller(machine: AnyStateMachine, killer: Killer): Promise<Catch | null> {
  if ('input' in killer) return tryInvariants(machine, killer.input)
  const path = pathsByKey.get(killer.path)
  if (!path) return null
  const result = await replay(path, createMachineHarness(machine))
  if (result.ok) return null
  return {
    caughtBy: `path ${paths.indexOf(path) + 1}, step ${result.step} (${nameOf(path, result.step)})`,
    killer,
  }
}

/** One invariant that checks all others, so that the search stops at the first violation. */
const all: Invariant = {
  name: 'all',
  holds: (snapshot, arrival) => {
    for (const { name, holds } of agentInvariants) {
      const verdict = holds(snapshot as never, arrival as never)
      if (verdict === false || typeof verdict === 'string') return `${name}: ${String(verdict)}`
    }
    return true
  },
}

/** One-step runs first, input by input. They catch nearly all mutants in a tenth of the full time. */
function listInputs(machine: AnyStateMachine): (string | null)[] {
  return [...new Set(nearestFirst(machine, paths).map(({ input }) => input)), null]
}

function tryInvariants(machine: AnyStateMachine, input: string | null): Catch | null {
  const searched = input === null ? space : agentSpace({ only: [input], maxSteps: 1 })
  try {
    const { violations } = checkInvariants(machine, [all], searched as never)
    return violations[0] ? { caughtBy: `invariant: ${violations[0].reason}`, killer: { input } } : null
  } catch (error) {
    if (error instanceof PathError) return { caughtBy: `exploration: ${error.code}`, killer: { input } }
    throw error
  }
}

function nameOf(path: MachinePath, step: number): string {
  return `${path.input}: ${path.steps[step]?.label ?? ''}`
}
