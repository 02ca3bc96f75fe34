// The crash test. Sessions whose processes are killed at every point must end like an uninterrupted session.
// Usage: npm run suite -- crash [--seed NUMBER] [--only NAME], where NAME is a session name or a prefix such
// as torn
import { parseArgs } from 'node:util'
import { playBatch } from './batch.mjs'
import { casesOf } from './cases.mjs'
import { playClaims } from './claim.mjs'
import { playExpiry } from './expiry.mjs'
import { playGrants } from './grants.mjs'
import { startModelServer } from './model-server.mjs'
import { inParallel } from './pool.mjs'
import { referenceProblems } from './reference.mjs'
import { playReference, playSession } from './session.mjs'
import { playSleep } from './sleep.mjs'
import { playStorage } from './storage.mjs'
import { killTable } from './table.mjs'
import { playTold } from './told.mjs'
import { playVotes } from './votes.mjs'

const { values } = parseArgs({
  options: { seed: { type: 'string', default: `${Date.now() % 1_000_000}` }, only: { type: 'string' } },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number.')

const model = await startModelServer()
const reference = await playReference(model)
const broken = referenceProblems(reference)
if (broken.length > 0) {
  console.error(`The run without a kill is not as it should be. It does not hold that: ${broken.join('; ')}.`)
  process.exit(1)
}

const { ms, result, end } = reference
const { only } = values
const isAsked = ({ name }) => only === undefined || name === only || name.startsWith(`${only} `)
const cases = casesOf(seed, { head: end.records.length, ms }).filter(isAsked)
console.error(
  `Seed ${seed}: ${cases.length} sessions of ${end.records.length} records in ${Math.round(ms)} ms.`,
)
const sleepers = { name: 'sleep in processes that are killed around what they ask, with clocks that jump' }
// They mostly wait, so they run alongside the others.
const sleeping = isAsked(sleepers) ? playSleep({ sessions: 24, kills: 12, seed }) : null
let done = 0
const sessions = await inParallel(cases, 2, async (each) => {
  const session = await playSession(each, model, result)
  if (++done % 25 === 0) console.error(`${done} of ${cases.length} sessions`)
  for (const problem of session.problems) console.error(`${session.name}: ${problem}`)
  return session
})
const storage = [
  ...(await playStorage(model, reference, isAsked)),
  ...(await playTold(model, reference, isAsked)),
  ...(await playVotes(isAsked)),
  ...(await playExpiry(isAsked)),
  ...(await playGrants(isAsked)),
  ...(await playClaims({ only: isAsked })),
]
model.close()
const batch = { name: 'batch that is killed three times' }
if (isAsked(batch)) {
  const { problems, folder } = await playBatch({ lines: 200, kills: 3 })
  storage.push({ ...batch, problems, dir: folder })
}
if (sleeping) {
  const { problems, folder } = await sleeping
  storage.push({ ...sleepers, problems, dir: folder })
}

const { text, total } = killTable(sessions)
console.log(text)
console.log()
for (const { name, problems } of storage)
  console.log(`${problems.length > 0 ? 'WRONG' : 'as it should be'}: ${name}`)

const wrong = [...sessions, ...storage].filter(({ problems }) => problems.length > 0)
for (const { name, problems, dir } of wrong) {
  console.log(`\n${name}${dir ? ` (left in ${dir})` : ''}:`)
  for (const problem of problems) console.log(`  ${problem}`)
  console.log(`  Again: npm run suite -- crash --seed ${seed} --only '${name}'`)
}
const often = sessions.filter(({ kills }) => kills.length > 1).length
const missed = sessions.reduce((sum, session) => sum + session.missed, 0)
const isEnough = only !== undefined || (total.kills >= 200 && often >= 30)
console.log(
  `\n${total.kills} kills in ${sessions.length} sessions, ${often} of them killed more than once ` +
    `(${missed} kills came too late, seed ${seed}): ${total.equal} equal, ${total.interrupted} equal but for ` +
    `interrupted calls, ${total.wrong} wrong. ${isEnough ? '' : 'Too few kills to tell.'}`,
)
process.exitCode = wrong.length === 0 && isEnough ? 0 : 1
