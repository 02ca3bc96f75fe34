import { act } from '../act.js'
import { lastWords } from '../messages.js'

/** What memory found stays with the turn: it rides on its requests, and never enters the transcript. */
export const noteRetrieved = act((context, event, tell) => {
  if (event.type !== 'xstate.done.actor.retrieval') return undefined
  const snippets = event.output
  tell({ type: 'memory', query: lastWords(context.messages), snippets })
  return { retrieved: snippets }
})
