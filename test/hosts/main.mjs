// Drives sessions with DBOS and Restate on their real servers, and interferes (see the parts). Usage: npm run
// suite -- hosts [--host dbos|restate --part random|aimed|waits|deploys|contrary|schedules --sessions NUMBER
// --times NUMBER]
import { parseArgs } from 'node:util'
import { ownPostgres } from '../../scripts/own-postgres.mjs'
import { playAimed } from './aimed.mjs'
import { playContrary } from './contrary.mjs'
import { playDeploys } from './deploys.mjs'
import { playRandom } from './random.mjs'
import { playSchedules } from './schedules.mjs'
import { hostNames } from './stage.mjs'
import { playWaits } from './waits.mjs'

const { values } = parseArgs({
  options: {
    host: { type: 'string' },
    part: { type: 'string' },
    sessions: { type: 'string', default: '300' },
    times: { type: 'string', default: '1' },
  },
})
/** Each returns the rows of its table and its problems. */
const parts = {
  random: (name, server) => playRandom(name, server, Number(values.sessions)),
  aimed: (name, server) => playAimed(name, server, Number(values.times)),
  waits: playWaits,
  deploys: (name, server) => playDeploys(name, server, 60),
  contrary: playContrary,
  schedules: playSchedules,
}
/** Both hosts run concurrently, because they mostly wait. */
const together = new Set(['waits'])
const isAsked = (part) => values.part === undefined || values.part === part

const server = await ownPostgres()
if (server === null) {
  console.log('Host tests skipped: there is no Postgres here, and it cannot be installed.')
  process.exit(0)
}
const wrong = []
try {
  for (const [part, play] of Object.entries(parts).filter(([name]) => isAsked(name))) {
    const rows = []
    const playOne = async (name) => {
      const startedAt = Date.now()
      const played = await play(name, server)
      rows.push(...played.rows)
      for (const problem of played.wrong) wrong.push(`${part}, ${name}: ${problem}`)
      console.log(`${part}, ${name}: ${Math.round((Date.now() - startedAt) / 1000)} s`)
    }
    const names = values.host ? [values.host] : hostNames
    if (together.has(part)) await Promise.all(names.map(playOne))
    else for (const name of names) await playOne(name)
    console.table(rows)
  }
} finally {
  await server.stop()
}
for (const problem of wrong.slice(0, 60)) console.log(problem)
process.exit(wrong.length === 0 ? 0 : 1)
