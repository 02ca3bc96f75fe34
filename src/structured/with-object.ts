import type { RunResult } from '../../machines/agent/outcome.js'
import { readOutput } from './read-output.js'
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
  const reading = readOutput(result.output, output.validate, output.schema)
  const complete = (read: Awaited<typeof reading>): RunResult =>
    read.ok ? { ...result, object: read.value } : { ...result, outputProblem: read.problem }
  return reading instanceof Promise ? reading.then(complete) : complete(reading)
}
