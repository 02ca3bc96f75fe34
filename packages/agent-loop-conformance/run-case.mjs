import { certify, certifySo, check, claims, Failure, NotCertified, NotClaimed, settles } from './verdict.mjs'

/** A tool that records the input of each execution. */
function createTool(name, fields, execute) {
  const runs = []
  return {
    name,
    description: `The tool ${name}.`,
    fields,
    runs,
    execute(input, options = {}) {
      runs.push(input)
      return execute(input, options)
    },
  }
}

async function runOnce(one, { adapter, variant, lacks, open, server, mistakes }) {
  const mistake = mistakes ? one.mistake : undefined
  const world = {
    lacks,
    variant,
    check,
    claims,
    certify,
    certifySo,
    stored: { adapter, variant, mistake },
    settles,
    tool: createTool,
    serve: (script) => server.openLane(script),
    open({ lane, ...options }) {
      return open({ limits: {}, tools: [], ...options, baseURL: lane.baseURL, variant, mistake })
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

/** Runs a case. A failure counts when it happens at least twice in three runs. */
export async function runCase(one, context) {
  const { lacks, repeats } = context
  const missing = one.needs.find((feature) => lacks[feature])
  if (missing) return { result: 'not_claimed', evidence: lacks[missing] }
  const first = await runOnce(one, context)
  if (first.result === 'pass' || first.result === 'not_claimed' || !repeats)
    return { ...first, evidence: shorten(first.evidence) }
  const runs = [first, await runOnce(one, context), await runOnce(one, context)]
  const failed = runs.filter(({ result }) => result !== 'pass')
  const times = failed.length === 3 ? '' : ` [${failed.length} of 3 times]`
  if (failed.length < 2) return { result: 'pass', evidence: shorten(failed[0].evidence) + times }
  return { result: failed[0].result, evidence: shorten(failed[0].evidence) + times }
}
