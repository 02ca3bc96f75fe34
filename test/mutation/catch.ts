import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import {
  agentInvariants,
  type AgentSpace,
  agentSpace,
  checkInvariants,
  generatePaths,
  type Invariant,
  createMachineHarness,
  PathError,
  type MachinePath,
  replay,
} from '../../src/testing/index.js'
import { nearestFirst } from './nearness.js'

const space = agentSpace()
const { paths } = generatePaths(agentMachine, { ...space, coverage: 'transition-pairs' })

/**
 * What of the generated suite notices that this machine is another one; null when nothing does. Where that is expected,
 * the short runs are not tried before the whole.
 */
export async function whatCatches(machine: AnyStateMachine, isExcused = false): Promise<string | null> {
  const found = await pathThatCatches(machine)
  return found ?? invariantThatCatches(machine, isExcused ? [space] : spacesFor(machine))
}

async function pathThatCatches(machine: AnyStateMachine): Promise<string | null> {
  for (const path of nearestFirst(machine, paths)) {
    // oxlint-disable-next-line no-await-in-loop -- the first that fails is the answer
    const result = await replay(path, createMachineHarness(machine))
    if (!result.ok)
      return `path ${paths.indexOf(path) + 1}, step ${result.step} (${nameOf(path, result.step)})`
  }
  return null
}

/** One invariant that asks all, so that the search ends at the first that is violated. */
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

/** Runs of one step first, input by input: they catch nearly all, in a tenth of the time that the whole takes. */
function spacesFor(machine: AnyStateMachine): AgentSpace[] {
  const names = new Set(nearestFirst(machine, paths).map(({ input }) => input))
  return [...names].map((name) => agentSpace({ only: [name], maxSteps: 1 })).concat(space)
}

function invariantThatCatches(machine: AnyStateMachine, spaces: readonly AgentSpace[]): string | null {
  for (const each of spaces) {
    try {
      const { violations } = checkInvariants(machine, [all], each as never)
      if (violations[0]) return `invariant: ${violations[0].reason}`
    } catch (error) {
      if (error instanceof PathError) return `exploration: ${error.code}`
      throw error
    }
  }
  return null
}

function nameOf(path: MachinePath, step: number): string {
  return `${path.input}: ${path.steps[step]?.label ?? ''}`
}
