import type { SessionStore } from '../core/sessions/store/store.js'
import type { AnyAgent } from '../studio/actions.js'
import { CliError } from './cli-error.js'
import { loadModule } from './load-module.js'

const expected =
  'Its default export must be an agent, or a function that makes one: export default ({ store }) => createAgent({ store, … }).'

/**
 * The agent of a module: its default export, or what that makes of the store. Throws a CliError that says what is wrong
 * with the file, or what it exports instead.
 */
export async function loadAgent(path: string, cwd: string, store: SessionStore): Promise<AnyAgent> {
  const { default: exported } = await loadModule(path, cwd, refuse)
  const made: unknown =
    typeof exported === 'function' ? await makeAgent(exported as Make, path, store) : exported
  if (isAgent(made)) return made
  const what = exported === undefined ? 'has no default export' : 'has no agent as its default export'
  throw refuse(`'${path}' ${what}. ${expected}`)
}

type Make = (given: { store: SessionStore }) => unknown

async function makeAgent(make: Make, path: string, store: SessionStore): Promise<unknown> {
  try {
    return await make({ store })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw refuse(`'${path}' could not make an agent: ${why}`, error)
  }
}

function isAgent(value: unknown): value is AnyAgent {
  const { resume, fork, config } = (value ?? {}) as Partial<AnyAgent>
  return typeof resume === 'function' && typeof fork === 'function' && typeof config === 'object'
}

function refuse(message: string, cause?: unknown): CliError {
  return new CliError('bad_agent', `--agent: ${message}`, '--agent', { cause })
}
