import { toAction } from '../update-action.js'

/** Loads deferred tools for the rest of the session. What is loaded stays where it is, so that requests keep their beginning. */
export const loadTools = toAction((context, event, emit) => {
  if (event.type !== 'TOOLS_LOADED') return undefined
  const names = [...new Set(event.names)].filter((name) => !context.loaded.includes(name))
  if (names.length === 0) return undefined
  emit({ type: 'tools_loaded', callId: event.callId, names })
  return { loaded: [...context.loaded, ...names] }
})
