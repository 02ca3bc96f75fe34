import type { OutputScreening, Screening } from '../../../machines/agent/screening.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { readOutput } from '../structured/read-output.js'
import type { EffectScope } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { createShieldStep } from './shield-step.js'
import { screenText } from './screen-text.js'

/**
 * Shows the shields an answer as a whole, with the pieces that it continues; what of it was held back is shown when they
 * have cleared it.
 */
export async function screenOutput(
  parts: AgentParts,
  { signal, self, runtime, context }: EffectScope,
): Promise<OutputScreening> {
  await runtime.waitUntilDurable()
  signal.throwIfAborted()
  const stepId = `${context.held?.stepId ?? context.runId}.output`
  runtime.steps.start(
    self,
    createShieldStep({ stepId, point: 'output' }, (screening: Screening) => [screening]),
  )
  signal.throwIfAborted()
  const { held, spoken, pieces } = context
  const answer = (spoken?.text ?? '') + (held?.text ?? '')
  const screening = toLastPiece(
    pieces,
    await screenText(parts, { runtime, context, signal }, 'output', answer),
  )
  signal.throwIfAborted()
  runtime.streamCleared(screening.action === 'block' ? '' : screening.content)
  return screening.action === 'redact'
    ? { ...screening, ...(await findRedactedProblem(screening, parts, context)) }
    : screening
}

/** The schema problem of the redacted answer. Redacting alone does not make an answer invalid. */
async function findRedactedProblem(
  { content }: Screening,
  { output }: AgentParts,
  { held, outputProblem }: AgentContext,
): Promise<Pick<OutputScreening, 'outputProblem'>> {
  if (output === undefined || (held?.outputProblem ?? outputProblem) === null) return {}
  const reading = await readOutput(content, output.validate, output.schema)
  return { outputProblem: reading.ok ? null : reading.problem }
}

/** The screening of the whole answer, for its last part. The earlier parts were shown, so they stay as they are. */
function toLastPiece(pieces: string, screening: Screening): Screening {
  const { action, content, message } = screening
  if (action === 'block') return screening
  if (content.startsWith(pieces)) return { ...screening, content: content.slice(pieces.length) }
  const why = message ?? 'A shield refused the answer.'
  return {
    ...screening,
    action: 'block',
    content: '',
    message: `${why} It begins in a piece that was shown before, so it cannot be redacted.`,
  }
}
