import type { AgentContext } from './context.js'

/**
 * Why the output of a run that has ended is no object, though its agent has an output schema; null when it is one, and
 * for an agent without a schema.
 */
export function outputProblemOf({ features, response, reason, outputProblem }: AgentContext): string | null {
  if (!features.structuredOutput) return null
  // What a shield has blocked is spoken of no more.
  if (reason === 'shield') return unanswered
  return outputProblem ?? (response === 'answer' ? null : unanswered)
}

const unanswered =
  'The run ended without an answer that could be held against the output schema; the output is the raw text.'
