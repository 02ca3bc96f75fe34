import { toAction } from '../update-action.js'
import { getLastUserText } from '../messages.js'

/** What memory found stays with the turn: it rides on its requests, and never enters the transcript. */
export const noteRetrieved = toAction((context, event, emit) => {
  if (event.type !== 'xstate.done.actor.retrieval') return undefined
  const snippets = event.output
  emit({ type: 'memory', query: getLastUserText(context.messages), snippets })
  return { retrieved: snippets }
})
