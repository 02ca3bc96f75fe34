export interface CallCounts {
  /** Calls that ran, or that were passed to a person, a client or a guard. */
  calls: number
  isOver: boolean
  byTool: Readonly<Record<string, number>>
}

/** null means no cap. */
export interface CallCaps {
  run: number | null
  response: number | null
  tool: (name: string) => number | null
}

export type CallCap = 'run' | 'response' | 'tool'

export const noCallCounts: CallCounts = { calls: 0, isOver: false, byTool: {} }

/** For each call, `met` is the cap that refuses it, or null. Refused calls do not count. */
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

export function formatCapMessage(cap: CallCap, name: string, most: number): string {
  const words = {
    run: `all ${most} tool calls of this run are used.`,
    response: `only the first ${most} tool calls of a response run. Make this call in your next response if you still need it.`,
    tool: `${name} may be called only ${most === 1 ? 'once' : `${most} times`} in a run. Continue without it.`,
  }
  return `Not executed: ${words[cap]}`
}

/** The end of the messages about caps. The studio omits it where a higher cap would not help. */
export const capAdvice = {
  maxSteps: ' Raise limits.maxSteps to allow more.',
  maxToolCalls: ' Raise limits.maxToolCalls to allow more.',
}

export function formatCallCapEnd(maxToolCalls: number): string {
  return `The model requested more than the ${maxToolCalls} tool calls of this run.${capAdvice.maxToolCalls}`
}

export function isAtStepCap(steps: number, maxSteps: number | null): boolean {
  return maxSteps !== null && steps >= maxSteps
}

export function formatStepCapMessage(maxSteps: number): string {
  const used = maxSteps === 1 ? 'The one step of this run is' : `All ${maxSteps} steps of this run are`
  return `${used} used.${capAdvice.maxSteps}`
}
