// Sessions that sleep and sessions that wait for a shared budget, in several processes whose clocks jump and
// differ. The processes die around their store calls. Each session must wake once per sleep, not too early,
// and end. Usage: npm run build && node test/crash/sleep.mjs [SESSIONS] [KILLS] [SEED] (default: 24 sessions,
// 12 kills)
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runSession } from 'statewright'
import { fileStore } from 'statewright/stores/file'
import { checkSessionLog } from 'statewright/testing'
import { startCrew } from './crew.mjs'
import { effectsIn } from './look.mjs'
import { between, randomOf } from './random.mjs'
import { createSkewedClock } from './skewed-clock.mjs'
import { createSleepers } from './sleepers.mjs'

const program = fileURLToPath(new URL('sleep-process.mjs', import.meta.url))
const processes = 3
const minuteMs = 60_000
const skewMs = minuteMs
/** The speed of the processes' time. */
const speed = 20
const baseAt = Date.UTC(2026, 4, 4, 6)
/** Longer than the difference between two processes' clocks. */
const sleepMs = 2.5 * minuteMs
const [windowMs, budgetTokens] = [2 * minuteMs, 700]
const points = ['append', 'append', 'set', 'move', 'acquire', 'release']

/**
 * The point where the process with this number dies. Undefined if it survives because enough earlier
 * processes die.
 */
function faultOf(seed, number, kills) {
  if (number > kills) return undefined
  const random = randomOf(seed, `fault ${number}`)
  const on = points[between(random, 0, points.length - 1)]
  return { on, when: random() < 0.5 ? 'before' : 'after', nth: between(random, 1, 12) }
}

/** The problems of one session at its end, and its number of wake-ups. */
async function look(agent, store, id, effects) {
  const records = store.read(id)
  const { state, runs, wakeAt } = store.get(id)?.summary ?? {}
  const problems = []
  if (state !== 'COMPLETED' || runs !== 1) problems.push(`it has ${runs} runs, and is ${state} (${wakeAt})`)
  const violation = checkSessionLog(records, id)
  if (violation) problems.push(`record ${violation.seq} breaks '${violation.rule}': ${violation.message}`)
  const woken = records.flatMap(({ seq, data }) => {
    const { event } = JSON.parse(data)
    return event?.type === 'RESUME' && event.inbox === undefined ? [{ seq, now: event.now }] : []
  })
  for (const { seq, now } of woken) {
    const { context } = (await agent.replay(id, { to: seq - 1 })).snapshot
    if (context.state !== 'PAUSED' || context.wakeAt === null || context.wakeAt > now)
      problems.push(`record ${seq} wakes it at ${now}, and it was ${context.state} until ${context.wakeAt}`)
  }
  const sent = effects.filter(({ session }) => session === id).length
  const isUnknown = records.some(({ data }) => data.includes('"RESUMED"'))
  if (sent > 1 || (sent === 0 && !isUnknown)) problems.push(`it has sent ${sent} letters`)
  const putOff = records.filter(({ data }) => /"type":"RESUME".*"inbox"/.test(data)).length
  const paid = id.startsWith('payer') ? woken.length : 0
  return { problems: problems.map((problem) => `${id}: ${problem}`), woken: woken.length, paid, putOff }
}

/**
 * Brings each session to its first wait. The processes do the rest. Time starts when all sessions are idle,
 * so a slow machine does not matter.
 */
async function beginSessions(ids, shared) {
  const clock = {
    now: () => baseAt,
    elapsed: () => 0,
    setTimeout: (fire, ms) => setTimeout(() => fire(), ms),
    clearTimeout: (id) => clearTimeout(id),
  }
  const store = fileStore({ dir: shared.dir, now: clock.now })
  const agents = createSleepers({ ...shared, store, clock })
  await Promise.all(
    ids.map((session) => runSession(agents, { session, agent: session.split('-')[0], input: 'Go.' })),
  )
  store.close()
}

/** A round with too few kills, because the processes ended their work first, is played again with other kills. */
const mostRounds = 10

/** Plays the sessions to their end. Returns the problems and the measurements. */
export async function playSleep({ seed, ...options }) {
  for (let round = 1; ; round += 1) {
    const { isEnough, ...played } = await playRound({ ...options, seed: seed + (round - 1) * 1000 })
    if (isEnough || played.problems.length > 0) return played
    if (round < mostRounds) continue
    const { kills, woken, putOff } = played
    const tooFew = `${kills} kills, ${woken} woken, ${putOff} postponed. These are too few to judge, ${round} times.`
    return { ...played, problems: [tooFew] }
  }
}

async function playRound({ sessions, kills, seed }) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-sleep-'))
  const shared = { dir, sleepMs, budgetTokens, windowMs }
  const ids = Array.from({ length: sessions }, (_, i) => `${i % 3 === 2 ? 'payer' : 'sleeper'}-${i}`)
  await beginSessions(ids, shared)
  const startedAt = Date.now()
  const pace = { speed, startedAt, baseAt }
  const clock = createSkewedClock({ ...pace, seed, skewMs: 0 })
  const store = fileStore({ dir, now: () => clock.now() })
  const agents = createSleepers({ ...shared, store, clock })
  const errors = []
  const crew = startCrew({
    program,
    count: processes,
    createTask: (number) => ({
      ...shared,
      ...pace,
      seed: seed + number,
      skewMs,
      fault: faultOf(seed, number, kills),
    }),
    onMessage: (message) => errors.push(message),
  })
  const { agent } = agents.get('sleeper')
  // Some sleeps are extended.
  const putOff = ids.filter((id, i) => i % 6 === 0 && store.get(id)?.summary.wakeAt !== undefined)
  for (const id of putOff)
    await agent.send(id, { type: 'resume', at: store.get(id).summary.wakeAt + minuteMs })
  const readTimers = () => store.timers.list({ prefix: '', limit: 1 })
  const isOver = () =>
    readTimers().length === 0 && ids.every((id) => store.get(id)?.summary.state === 'COMPLETED')
  const until = Date.now() + 600_000
  while (!isOver() && Date.now() < until) await wait(100)
  await crew.stop()
  const passedMs = Date.now() - startedAt
  const effects = effectsIn(dir)
  const looks = []
  for (const id of ids) looks.push(await look(agent, store, id, effects))
  const sum = (key) => looks.reduce((total, each) => total + each[key], 0)
  const problems = looks.flatMap((each) => each.problems)
  for (const { id } of readTimers()) problems.push(`The timer ${id} is left.`)
  const isEnough = crew.kills >= kills / 2 && sum('putOff') > 0 && sum('paid') > 0 && sum('woken') >= sessions
  store.close()
  if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
  return {
    isEnough,
    problems,
    folder: dir,
    kills: crew.kills,
    woken: sum('woken'),
    paid: sum('paid'),
    putOff: sum('putOff'),
    errors,
    passedMs,
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [sessions = 24, kills = 12, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number)
  const { problems, folder, ...report } = await playSleep({ sessions, kills, seed })
  for (const problem of problems.slice(0, 20)) console.log(`WRONG: ${problem}`)
  if (problems.length > 0) console.log(`${problems.length} problems, left in ${folder}`)
  for (const message of new Set(report.errors.map((one) => one.message))) console.log(`Told: ${message}`)
  console.log(
    `Seed ${seed}: ${sessions} sessions that sleep or wait for a budget, ${processes} processes with clocks up to a minute ahead or behind, ` +
      `which jump; ${report.kills} kills in ${(report.passedMs / 1000).toFixed(1)} s. ${report.woken} times woken, ${report.paid} of them for the budget; ${report.putOff} put off: ` +
      `${problems.length === 0 ? 'each once, in time' : 'WRONG'}.`,
  )
  process.exitCode = problems.length === 0 ? 0 : 1
}
