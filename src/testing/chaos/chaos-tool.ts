import type { Tool, ToolExecution } from '../../core/tools/tool.js'
import { expectArgument, objectRule } from '../../core/base/expect-argument.js'
import { untilAborted } from './chaos-model.js'
import { type Chaos, ChaosError, type FaultKind, type FaultPlan, Faults } from './chaos.js'

/**
 * What can happen to a call:
 *
 * - `throws`: it throws before it has done anything
 * - `lost_reply`: it does its work, and then throws
 * - `hangs`: it waits until its signal aborts
 * - `deaf`: it never ends, whatever its signal says
 * - `undefined`: it does its work, and returns undefined
 * - `circular`: it does its work, and returns an object that no JSON has
 */
export type ToolFault = 'throws' | 'lost_reply' | 'hangs' | 'deaf' | 'undefined' | 'circular'

const kind: FaultKind<ToolFault> = {
  of: 'chaosTool',
  unit: 'call',
  faults: ['throws', 'lost_reply', 'hangs', 'deaf', 'undefined', 'circular'],
  passing: ['throws', 'lost_reply', 'undefined', 'circular'],
}

/**
 * A tool that fails as planned, and says which of its faults have landed. Any other call is the inner tool's.
 *
 * @example
 * const search = chaosTool(add, [{ at: 1, fault: 'lost_reply' }])
 * await createAgent({ model, tools: [search] }).run('Go.').result
 * search.certify()
 *
 * @throws {ChaosError} `bad_option` for a plan that makes no sense, and for a tool that the run does not execute
 */
export function chaosTool<Given extends Tool>(
  tool: Given,
  plan: FaultPlan<ToolFault>,
): Given & Chaos<ToolFault> {
  expectArgument(
    'chaosTool(tool)',
    tool,
    objectRule(['name', 'parameters', 'validate'], 'a tool, as defineTool makes it'),
  )
  const inner = tool.execute as Execute | undefined
  if (typeof inner !== 'function') {
    const why = `'${tool.name}' is executed by its client or by a sub-agent, so no fault can land in it`
    throw new ChaosError('bad_option', `chaosTool: ${why}. Take a tool with an execute.`, 'chaosTool')
  }
  const faults = new Faults(kind, plan)
  const execute: Execute = async (input, execution) => {
    const { at, fault } = faults.next()
    if (fault === undefined) return inner(input, execution)
    const land = (): void => faults.land(at, fault)
    const doesWork = fault === 'lost_reply' || fault === 'undefined' || fault === 'circular'
    if (doesWork) await inner(input, execution)
    land()
    switch (fault) {
      case 'hangs':
        return untilAborted(execution.signal)
      case 'deaf':
        return new Promise<never>(() => undefined)
      case 'undefined':
        return undefined
      case 'circular':
        return createRing()
      default:
        throw new Error(fault === 'throws' ? 'The tool failed.' : 'The reply was lost.')
    }
  }
  return { ...tool, execute, landed: faults.landed, certify: faults.certify }
}

type Execute = (input: unknown, execution: ToolExecution) => unknown

function createRing(): object {
  const ring: Record<string, unknown> = { big: 10n }
  ring['self'] = ring
  return ring
}
