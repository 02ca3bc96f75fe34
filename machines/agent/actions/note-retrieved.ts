import { toAction } from '../update-action.js'
import { getLastUserText } from '../messages.js'

/** Keeps the retrieved snippets for this turn: its requests carry them, and the transcript does not. */
export const noteRetrieved = toAction((context, event, emit) => {
  if (event.type !== 'xstate.done.actor.retrieval') return undefined
  const snippets = event.output
  emit({ type: 'memory', query: getLastUserText(context.messages), snippets })
  return { retrieved: snippets }
})
