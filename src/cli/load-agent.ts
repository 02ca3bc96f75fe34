import type { SessionStore } from '../core/sessions/store/store.js'
import type { StudioAgent } from '../studio/session-actions.js'
import { CliError } from './cli-error.js'
import { loadModule } from './load-module.js'

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

type ExportFactory = (given: { store: SessionStore }) => unknown

/** Loads the default export of a module, or what that function returns; `refuse` creates the error for a wrong value. */
export async function loadDefaultExport(
  path: string,
  { cwd, store }: { cwd: string; store: SessionStore },
  { what, option, code }: { what: string; option: string; code: string },
): Promise<{ exported: unknown; made: unknown; refuse: (message: string, cause?: unknown) => CliError }> {
  const refuse = (message: string, cause?: unknown): CliError =>
    new CliError(code, `${option}: ${message}`, option, { cause })
  const { default: exported } = await loadModule(path, cwd, refuse)
  if (typeof exported !== 'function') return { exported, made: exported, refuse }
  try {
    return { exported, made: await (exported as ExportFactory)({ store }), refuse }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw refuse(`'${path}' could not make ${what}: ${why}`, error)
  }
}
