// One process that serves sessions to Restate, and an object of the same kind with a no-op step.
import { restateSessions } from '../../dist/src/restate/index.js'
import { agentsOf, fromTests } from './cast.mjs'

const restate = await fromTests('@restatedev/restate-sdk')
const { postgres, ports, slot } = JSON.parse(process.argv[2])
const { object } = restateSessions(restate, agentsOf({ postgres }))
const floor = restate.object({
  name: 'floor',
  handlers: {
    run: restate.handlers.object.exclusive({}, (context) =>
      context.run('nothing', async () => ({ session: context.key, state: 'COMPLETED' })),
    ),
  },
})
await restate.serve({ services: [object, floor], port: ports[slot], logger: () => undefined })
process.send('ready')
