/** What most runs work with, in one piece: loaded when the first actor of them starts. */
export { consultGuards } from './consult-guards.js'
export { requestModel } from './request-model.js'
export { retrieveSnippets } from './retrieve-snippets.js'
export { runTools } from './run-tools.js'
