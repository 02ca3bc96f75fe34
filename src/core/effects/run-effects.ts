/** The effects of most runs, in one bundle: loaded when the first of them starts. */
export { consultGuards } from './consult-guards.js'
export { requestModel } from './request-model.js'
export { retrieveSnippets } from './build-request.js'
export { runTools } from './run-tools.js'
