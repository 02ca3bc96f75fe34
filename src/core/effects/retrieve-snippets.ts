import { getLastUserText, type RetrievedSnippet } from '../../../machines/agent/messages.js'
import { getStepId } from '../../../machines/agent/step-id.js'
import { BudgetError } from '../budgets/budget-error.js'
import { parseSnippets } from '../memory/retriever.js'
import type { EffectScope } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { toRefusedSearch } from './over-budget-error.js'

/** Searches memory for the last user message. */
export async function retrieveSnippets(
  parts: AgentParts,
  { signal, self, runtime, context }: EffectScope,
): Promise<RetrievedSnippet[]> {
  await runtime.waitUntilDurable()
  signal.throwIfAborted()
  const query = getLastUserText(context.messages)
  if (!parts.memory || query === '') return []
  runtime.steps.start(self, {
    step: { stepType: 'memory_retrieval', stepId: `${getStepId(context)}.memory` },
    toEnding: (retrievedContext: RetrievedSnippet[] | null) => ({ payload: { retrievedContext } }),
  })
  signal.throwIfAborted()
  const { memory } = parts
  const { telemetry } = runtime
  try {
    const found = telemetry
      ? telemetry.around({ type: 'memory_retrieval' }, () => memory.retrieve(query, { signal }))
      : memory.retrieve(query, { signal })
    return parseSnippets(await found)
  } catch (error) {
    throw error instanceof BudgetError ? toRefusedSearch(error) : error
  }
}
