import { lastWords } from '../../../machines/agent/last-words.js'
import { stepIdOf } from '../../../machines/agent/step-id.js'
import type { RetrievedSnippet } from '../../../machines/agent/retrieved.js'
import { plainSnippets } from '../memory/snippets.js'
import type { ActorScope } from './lazy.js'
import type { AgentParts } from '../live/parts.js'

/** Asks memory about what the user said. */
export async function retrieve(
  parts: AgentParts,
  { signal, self, live, context }: ActorScope,
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
  return plainSnippets(await parts.memory.retrieve(query, { signal }))
}
