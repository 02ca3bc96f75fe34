// One process that drives sessions on request, without an engine. It answers baseline requests immediately.
import { runSession } from '../../dist/src/index.js'
import { agentsOf } from './cast.mjs'

const agents = agentsOf(JSON.parse(process.argv[2]))
process.on('message', async ({ kind, session, input }) => {
  if (kind === 'ours') await runSession(agents, { session, input, agent: 'looker' })
  process.send({ session })
})
process.send('ready')
