import type { RunResult } from '../../../machines/agent/run-result.js'
import { loadOnce } from '../base/platform.js'
import type { StructuredOutput } from './structured-output.js'

/**
 * The result of a run that has ended, with its output as an object where it is one. The machine has seen it fit; a
 * shield may have changed it since, and only here can the schema turn it into what is no JSON, a Date for example.
 */
export function withObject(
  output: StructuredOutput | undefined,
  result: RunResult,
): RunResult | Promise<RunResult> {
  if (output === undefined || result.resumable || result.outputProblem !== undefined) return result
  return addObject(output, result)
}

async function addObject(
  output: StructuredOutput,
  result: Extract<RunResult, { resumable: false }>,
): Promise<RunResult> {
  const { readOutput } = await loadReadOutput()
  const read = await readOutput(result.output, output.validate, output.schema)
  return read.ok ? { ...result, object: read.value } : { ...result, outputProblem: read.problem }
}

/** Only those who ask for an object need it; it has come with the first answer. */
const loadReadOutput = loadOnce(() => import('./read-output.js'))
