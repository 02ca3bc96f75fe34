import type { Agents } from '../core/drive/define-agents.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { loadDefaultExport } from './load-agent.js'

const expected =
  'Its default export must be what defineAgents returns, or a function that returns it: export default ({ store }) => ' +
  'defineAgents({ support: createAgent({ store, … }) }).'

/** Loads the agents of a module. Throws a CliError with the problem of the file or its exports. */
export async function loadAgents(path: string, cwd: string, store: SessionStore): Promise<Agents> {
  const target = { what: 'agents', option: '--agents', code: 'bad_agents' } as const
  const { made, refuse } = await loadDefaultExport(path, { cwd, store }, target)
  if (typeof (made as Agents | undefined)?.findAgentFor === 'function') return made as Agents
  throw refuse(`'${path}' has no agents as its default export. ${expected}`)
}
