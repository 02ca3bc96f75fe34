// One process that serves sessions to Restate until it is killed or shut down.
import { beOn } from './machine.mjs'
import * as restate from '@restatedev/restate-sdk'
import { restateSessions } from '../../dist/src/restate/index.js'
import { agentsOf } from './cast.mjs'
import { strikesOf } from './points.mjs'

const settings = JSON.parse(process.argv[2])
beOn(settings.machine)
const { drainMs, answerTimeoutMs, marks, ports, slot } = settings
const { agents } = agentsOf({ ...settings, strikes: marks && strikesOf(settings) })
const { object, drain } = restateSessions(restate, agents, { drainMs, answerTimeoutMs })
await restate.serve({ services: [object], port: ports[slot], logger: () => undefined })
process.once('SIGTERM', () => {
  process.once('SIGTERM', () => process.exit(143))
  void drain().then(() => process.exit(0))
})
process.send?.('ready')
