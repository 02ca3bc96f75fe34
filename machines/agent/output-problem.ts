import type { AgentContext } from './context.js'

/**
 * Why the output of a run that has ended is no object, though its agent has an output schema; null when it is one, and
 * for an agent without a schema.
 */
export function outputProblemOf(context: AgentContext): string | null {
  const { features, response, reason, held, outputProblem } = context
  if (!features.structuredOutput) return null
  // What a shield has blocked, or has not cleared, is not spoken of.
  if (reason === 'shield' || held !== null) return unanswered
  return outputProblem ?? (response === 'answer' ? null : unanswered)
}

const unanswered =
  'The run ended without an answer that could be held against the output schema; the output is the raw text.'
