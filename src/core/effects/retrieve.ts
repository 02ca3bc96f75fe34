import { lastWords, type RetrievedSnippet } from '../../../machines/agent/messages.js'
import { stepIdOf } from '../../../machines/agent/step-id.js'
import { parseSnippets } from '../memory/retriever.js'
import type { EffectScope } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'

/** Asks memory about what the user said. */
export async function retrieve(
  parts: AgentParts,
  { signal, self, live, context }: EffectScope,
): Promise<RetrievedSnippet[]> {
  await live.flushed()
  signal.throwIfAborted()
  const query = lastWords(context.messages)
  if (!parts.memory || query === '') return []
  live.steps.start(self, {
    step: { stepType: 'memory_retrieval', stepId: `${stepIdOf(context)}.memory` },
    ending: (retrievedContext: RetrievedSnippet[] | null) => ({ payload: { retrievedContext } }),
  })
  signal.throwIfAborted()
  const { memory } = parts
  const { telemetry } = live
  const found = telemetry
    ? telemetry.around({ type: 'memory_retrieval' }, () => memory.retrieve(query, { signal }))
    : memory.retrieve(query, { signal })
  return parseSnippets(await found)
}
