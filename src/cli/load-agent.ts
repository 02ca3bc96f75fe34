import type { SessionStore } from '../core/sessions/store/store.js'
import type { StudioAgent } from '../studio/session-actions.js'
import { loadDefaultExport } from './load-default-export.js'

const expected =
  'Its default export must be an agent, or a function that returns one: export default ({ store }) => createAgent({ store, … }).'

/**
 * Loads the agent of a module: its default export, or what that function returns. Throws a CliError with the problem of the
 * file or its exports.
 */
export async function loadAgent(path: string, cwd: string, store: SessionStore): Promise<StudioAgent> {
  const target = { what: 'an agent', option: '--agent', code: 'bad_agent' } as const
  const { exported, made, refuse } = await loadDefaultExport(path, { cwd, store }, target)
  if (isAgent(made)) return made
  const what = exported === undefined ? 'has no default export' : 'has no agent as its default export'
  throw refuse(`'${path}' ${what}. ${expected}`)
}

function isAgent(value: unknown): value is StudioAgent {
  const { resume, fork, config } = (value ?? {}) as Partial<StudioAgent>
  return typeof resume === 'function' && typeof fork === 'function' && typeof config === 'object'
}
