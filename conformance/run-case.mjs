// One case against one library.
import { certify, certifySo, check, claims, Failure, NotCertified, NotClaimed, settles } from './verdict.mjs'

/** A tool that keeps the inputs of its executions. */
function createTool(name, fields, execute) {
  const runs = []
  return {
    name,
    description: `The tool ${name}.`,
    fields,
    runs,
    execute(input, given = {}) {
      runs.push(input)
      return execute(input, given)
    },
  }
}

async function runOnce(one, { name, lacks, open, column, server }) {
  const world = {
    lacks,
    column,
    check,
    claims,
    certify,
    certifySo,
    stored: { name, column, ...(name === 'wrong' && { mistake: one.mistake }) },
    settles,
    tool: createTool,
    serve: (script) => server.openLane(script),
    open({ lane, ...options }) {
      const { mistake } = one
      return open({ limits: {}, tools: [], ...options, baseURL: lane.baseURL, column, mistake })
    },
  }
  try {
    return { result: 'pass', evidence: (await settles(one.run(world), one.withinMs ?? 40_000)) ?? '' }
  } catch (error) {
    if (error instanceof NotCertified) return { result: 'not_certified', evidence: error.message }
    if (error instanceof NotClaimed) return { result: 'not_claimed', evidence: error.message }
    if (error instanceof Failure) return { result: 'fail', evidence: error.message }
    return { result: 'broken', evidence: `the case or its adapter broke: ${error?.stack ?? error}` }
  }
}

const shorten = (text) =>
  String(text)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1')
    .slice(0, 300)

/** A failure is repeated before it is told: it counts when it is there at least twice in three times. */
export async function runCase(one, given) {
  const { lacks, repeats } = given
  const missing = one.needs.find((feature) => lacks[feature])
  if (missing) return { result: 'not_claimed', evidence: lacks[missing] }
  const first = await runOnce(one, given)
  if (first.result === 'pass' || first.result === 'not_claimed' || !repeats)
    return { ...first, evidence: shorten(first.evidence) }
  const runs = [first, await runOnce(one, given), await runOnce(one, given)]
  const failed = runs.filter(({ result }) => result !== 'pass')
  const times = failed.length === 3 ? '' : ` [${failed.length} of 3 times]`
  if (failed.length < 2) return { result: 'pass', evidence: shorten(failed[0].evidence) + times }
  return { result: failed[0].result, evidence: shorten(failed[0].evidence) + times }
}
