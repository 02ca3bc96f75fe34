import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import {
  agentInvariants,
  agentSpace,
  checkInvariants,
  generatePaths,
  type Invariant,
  createMachineHarness,
  PathError,
  type MachinePath,
  replay,
} from '../../src/testing/index.js'

const space = agentSpace()
const { paths } = generatePaths(agentMachine, { ...space, coverage: 'transition-pairs' })

/** What of the generated suite notices that this machine is another one; null when nothing does. */
export async function whatCatches(machine: AnyStateMachine): Promise<string | null> {
  return (await pathThatCatches(machine)) ?? invariantThatCatches(machine)
}

async function pathThatCatches(machine: AnyStateMachine): Promise<string | null> {
  for (const [i, path] of paths.entries()) {
    // oxlint-disable-next-line no-await-in-loop -- the first that fails is the answer
    const result = await replay(path, createMachineHarness(machine))
    if (!result.ok) return `path ${i + 1}, step ${result.step} (${nameOf(path, result.step)})`
  }
  return null
}

/** One invariant that asks all, so that the search ends at the first that is violated. */
function invariantThatCatches(machine: AnyStateMachine): string | null {
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
  try {
    const { violations } = checkInvariants(machine, [all], space as never)
    return violations[0] ? `invariant: ${violations[0].reason}` : null
  } catch (error) {
    if (error instanceof PathError) return `exploration: ${error.code}`
    throw error
  }
}

function nameOf(path: MachinePath, step: number): string {
  return `${path.input}: ${path.steps[step]?.label ?? ''}`
}
