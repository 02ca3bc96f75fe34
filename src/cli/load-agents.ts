import type { Agents } from '../core/drive/define-agents.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { CliError } from './cli-error.js'
import { loadModule } from './load-module.js'

const expected =
  'Its default export must be what defineAgents gives, or a function that makes it: export default ({ store }) => ' +
  'defineAgents({ support: createAgent({ store, … }) }).'

/** The agents of a module. Throws a CliError that says what is wrong with the file, or what it exports instead. */
export async function loadAgents(path: string, cwd: string, store: SessionStore): Promise<Agents> {
  const { default: exported } = await loadModule(path, cwd, refuse)
  const made: unknown = typeof exported === 'function' ? await make(exported as Make, path, store) : exported
  if (typeof (made as Agents | undefined)?.acceptorOf === 'function') return made as Agents
  throw refuse(`'${path}' has no agents as its default export. ${expected}`)
}

type Make = (given: { store: SessionStore }) => unknown

async function make(exported: Make, path: string, store: SessionStore): Promise<unknown> {
  try {
    return await exported({ store })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw refuse(`'${path}' could not make agents: ${why}`, error)
  }
}

function refuse(message: string, cause?: unknown): CliError {
  return new CliError('bad_agents', `--agents: ${message}`, '--agents', { cause })
}
