// The measured sessions. The input sets the number of answers, and every answer except the last has a tool call. The model answers
// immediately in the same process, so the measured time is the cost of driving.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { createAgent, defineAgents } from '../../dist/src/index.js'
import { postgresStore } from '../../dist/src/stores/postgres/index.js'
import { call, look, createAnswer } from '../answers.mjs'

export const model = {
  provider: 'bench',
  model: 'bench',
  request: async ({ messages }) => {
    const steps = Number(messages.findLast(({ role }) => role === 'user')?.content ?? 1)
    const step = messages.filter(({ role }) => role === 'assistant').length + 1
    return step >= steps ? createAnswer('Done.') : createAnswer('', [call('look', step)])
  },
}

export function agentOf(store) {
  return createAgent({ model, store, tools: [look], prices: null })
}

export function agentsOf({ postgres }) {
  return defineAgents({ looker: agentOf(postgresStore({ connectionString: postgres })) })
}

/** The engines are installed in the folder of their tests. */
const { resolve } = createRequire(new URL('../../test/hosts/package.json', import.meta.url))
export const fromTests = (name) => import(pathToFileURL(resolve(name)).href)
