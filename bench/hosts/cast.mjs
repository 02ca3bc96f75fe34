// What the sessions of the measurement do: as many answers as their input says, each but the last with a call of a tool.
// The model answers at once, in the process itself: what is left is what driving costs.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { createAgent, defineAgents } from '../../dist/src/index.js'
import { postgresStore } from '../../dist/src/stores/postgres/index.js'
import { call, look, said } from '../answers.mjs'

export const model = {
  provider: 'bench',
  model: 'bench',
  request: async ({ messages }) => {
    const steps = Number(messages.findLast(({ role }) => role === 'user')?.content ?? 1)
    const step = messages.filter(({ role }) => role === 'assistant').length + 1
    return step >= steps ? said('Done.') : said('', [call('look', step)])
  },
}

export function agentOf(store) {
  return createAgent({ model, store, tools: [look], prices: null })
}

export function agentsOf({ postgres }) {
  return defineAgents({ looker: agentOf(postgresStore({ connectionString: postgres })) })
}

/** The engines are installed where their tests are. */
const { resolve } = createRequire(new URL('../../test/hosts/package.json', import.meta.url))
export const fromTests = (name) => import(pathToFileURL(resolve(name)).href)
