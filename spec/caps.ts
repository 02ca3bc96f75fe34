import type { Call, Run } from './run.js'

/**
 * The calls of an answer, in their order: what is more than an answer, a tool, or the run may have is refused, and counts for
 * nothing. A call that the run has none left for ends it once the others have their results.
 */
export function capCalls(run: Run): Run {
  const { tools, config } = run.setup
  const { maxToolCalls: ofRun, maxToolCallsPerResponse: ofAnswer } = config.limits
  const ofTool = (name: string): number => tools[name]?.maxCalls ?? Infinity
  const isCapped = [
    ofRun ?? Infinity,
    ofAnswer ?? Infinity,
    ...run.calls.map(({ name }) => ofTool(name)),
  ].some(Number.isFinite)
  if (!isCapped) return run
  const counts = structuredClone(run.callCounts) ?? { calls: 0, isOver: false, byTool: {} }
  let admitted = 0
  const judge = (call: Call): Call => {
    if (call.unloaded) return call
    const used = counts.byTool[call.name] ?? 0
    const isLate = admitted >= (ofAnswer ?? Infinity) || used >= ofTool(call.name)
    if (isLate || counts.calls >= (ofRun ?? Infinity)) {
      if (!isLate) counts.isOver = true
      return { ...call, done: true, failed: true, perhaps: false }
    }
    admitted += 1
    counts.calls += 1
    if (ofTool(call.name) < Infinity) counts.byTool[call.name] = used + 1
    return call
  }
  return { ...run, calls: run.calls.map(judge), callCounts: counts }
}
