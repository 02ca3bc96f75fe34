/** How many calls were let run since the last user message, and how many were asked for. */
export interface CallCounts {
  /** Calls that ran, or were handed to a person, a client or a guard. */
  calls: number
  /** Whether a call was refused because all calls of the run are used. */
  isOver: boolean
  /** The same by tool, for tools that have a cap of their own. */
  byTool: Readonly<Record<string, number>>
}

/** null is no cap. */
export interface CallCaps {
  /** Calls of the run. */
  run: number | null
  /** Calls of one response. */
  response: number | null
  /** Calls of one tool. */
  tool: (name: string) => number | null
}

/** The cap that a call meets. */
export type CallCap = 'run' | 'response' | 'tool'

export const noCallCounts: CallCounts = { calls: 0, isOver: false, byTool: {} }

/**
 * Counts the calls of one response, in their order. `met` says for each call which cap refuses it; null: it may run. A refused
 * call uses nothing up.
 */
export function countCalls(
  before: CallCounts,
  names: readonly string[],
  caps: CallCaps,
): { counts: CallCounts; met: (CallCap | null)[] } {
  const byTool = new Map(Object.entries(before.byTool))
  let { calls, isOver } = before
  let admitted = 0
  const met = names.map((name): CallCap | null => {
    const most = caps.tool(name)
    const used = byTool.get(name) ?? 0
    if (caps.response !== null && admitted >= caps.response) return 'response'
    if (most !== null && used >= most) return 'tool'
    if (caps.run !== null && calls >= caps.run) {
      isOver = true
      return 'run'
    }
    admitted += 1
    calls += 1
    if (most !== null) byTool.set(name, used + 1)
    return null
  })
  return { counts: { calls, isOver, byTool: Object.fromEntries(byTool) }, met }
}

/** What the model reads in place of a result. */
export function formatCapMessage(cap: CallCap, name: string, most: number): string {
  const words = {
    run: `all ${most} tool calls of this run are used.`,
    response: `only the first ${most} tool calls of a response run. Make this call in your next response if you still need it.`,
    tool: `${name} may be called ${most === 1 ? 'once' : `${most} times`} in a run, and was. Go on without it.`,
  }
  return `Not executed: ${words[cap]}`
}

/** What the user reads. */
export function formatCallCapEnd(maxToolCalls: number): string {
  return `The model asked for more than the ${maxToolCalls} tool calls of this run. Raise limits.maxToolCalls to let it make more.`
}

/** Whether all steps of a run are used. A step is one accepted model response; null is no cap. */
export function isAtStepCap(steps: number, maxSteps: number | null): boolean {
  return maxSteps !== null && steps >= maxSteps
}

/** What the user reads. */
export function formatStepCapMessage(maxSteps: number): string {
  const used = maxSteps === 1 ? 'The one step of this run is' : `All ${maxSteps} steps of this run are`
  return `${used} used. Raise limits.maxSteps to let it go on for longer.`
}
