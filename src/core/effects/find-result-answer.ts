import { findAnsweringCall, findEndingCall } from '../../../machines/agent/answering-call.js'
import type { UserGuardsOutput } from '../../../machines/agent/consultation.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { createModelFailure, type ModelActorError } from '../../../machines/agent/model-response.js'
import { describeError, rememberThrown } from '../base/errors.js'
import type { AgentParts } from '../live/agent-parts.js'
import { readOutput } from '../structured/read-output.js'
import type { StopQuestion, StopWhen } from '../user-guards/stop-when.js'

/**
 * Whether a result of the batch is the answer of the run, and where it does not fit the output schema. Rejects with a plain
 * failure where `stopWhen` fails.
 */
export async function findResultAnswer(
  { stopWhen, output }: AgentParts,
  batch: AgentContext,
  question: StopQuestion,
): Promise<Pick<UserGuardsOutput, 'stops' | 'outputProblem'>> {
  const ends = findEndingCall(batch) !== undefined
  const stops = !ends && stopWhen !== undefined && (await askStopWhen(stopWhen, question))
  if (!ends && !stops) return {}
  const said = stops ? { stops } : {}
  if (output === undefined) return said
  const text = findAnsweringCall(batch)?.result?.content ?? batch.output
  const reading = await readOutput(text, output.validate, output.schema)
  return reading.ok ? said : { ...said, outputProblem: reading.problem }
}

async function askStopWhen(stopWhen: StopWhen, question: StopQuestion): Promise<boolean> {
  let said: unknown
  try {
    said = await stopWhen(question)
  } catch (error) {
    throw rememberThrown(createFailure(`threw: ${describeError(error)}.`), error)
  }
  if (typeof said === 'boolean') return said
  throw createFailure(`returned ${said === null ? 'null' : `a value of type ${typeof said}`}.`)
}

function createFailure(what: string): ModelActorError {
  const message = `stopWhen ${what} Repair it: it gets { results, step, context }, and returns true or false.`
  const failure = createModelFailure({ kind: 'fatal', code: 'stop_when_failed', message })
  return { ...failure, usage: null, jitter: 1 }
}
