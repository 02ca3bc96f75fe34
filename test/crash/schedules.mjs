// Schedules in several processes, which are killed again and again and whose clocks jump and differ: each time of each schedule
// begins exactly one session.
// Usage: npm run build && node test/crash/schedules.mjs [SCHEDULES] [KILLS] [SEED] (default: 40 schedules, 6 kills)
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createAgent, defineAgents } from 'statewright'
import { listSchedules, schedule } from 'statewright/fleet'
import { fileStore } from 'statewright/stores/file'
import { startCrew } from './crew.mjs'
import { randomOf } from './random.mjs'

const program = fileURLToPath(new URL('schedules-process.mjs', import.meta.url))
const processes = 4
const minuteMs = 60_000
const skewMs = minuteMs
/** How fast the time of the processes passes. */
const speed = 10
/** Each schedule fires at least twice in so many minutes of their time. */
const leastMinutes = 5
const baseAt = Date.UTC(2026, 4, 4, 6)

/** By their number: every so many milliseconds, and a pattern. Each has a time of its own. */
function createSchedule(n) {
  const every = n % 2 === 0 ? { everyMs: 2 * minuteMs + 7 * n } : { cron: `${n % 60} */2 * * * *` }
  return { id: `s${n}`, ...every, input: 'Write the report.', catchUp: 'all' }
}

/** The times of a schedule before `nextAt`, by a rule of our own. */
function listTimes({ everyMs }, firstAt, nextAt) {
  const step = everyMs ?? 2 * minuteMs
  return Array.from({ length: Math.round((nextAt - firstAt) / step) }, (_, i) => firstAt + i * step)
}

const toSessionId = (id, at) => `${id}@${new Date(at).toISOString().replace('.000Z', 'Z')}`

async function listAll(store) {
  const found = []
  let after
  do {
    // oxlint-disable-next-line no-await-in-loop -- one page after the other
    const page = await store.list({ limit: 500, after })
    found.push(...page)
    after = page.length === 500 ? page.at(-1) : undefined
  } while (after)
  return found
}

/** Plays `kills` kills, and then lets the processes catch up. Returns what is wrong, and what was measured. */
export async function playSchedules({ schedules, kills, seed, killEveryMs = 2500 }) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-schedules-'))
  const random = randomOf(seed, 'kills')
  const problems = []
  const store = fileStore({ dir, now: () => baseAt })
  const agents = defineAgents({ reporter: createAgent({ model: noModel, store }) })
  const stored = []
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (let n = 0; n < schedules; n += 1) stored.push(await schedule(agents, createSchedule(n)))

  const startedAt = Date.now()
  const told = { asked: 0, errors: [] }
  const crew = startCrew({
    program,
    count: processes,
    createTask: (number) => ({ dir, seed: seed + number, speed, skewMs, startedAt, baseAt }),
    onMessage: (message) => {
      if (message.type === 'asked') told.asked += 1
      else told.errors.push(message)
    },
  })
  /* oxlint-disable no-await-in-loop -- one kill after the other */
  for (let n = 0; n < kills; n += 1) {
    await sleep(killEveryMs * (0.5 + random()))
    await crew.kill(Math.floor(random() * processes))
  }
  // Firings and leases of killed processes run out.
  const readFirings = () => store.timers.list({ prefix: 'firing:', limit: 1 })
  const catchUpUntil = Date.now() + 600_000
  const nowEverywhere = () => baseAt + (Date.now() - startedAt) * speed
  const lastAt = Math.max(nowEverywhere(), baseAt + leastMinutes * minuteMs)
  const isCaughtUp = async () => {
    const open = readFirings().length
    return open === 0 && (await listSchedules(store)).every(({ nextAt }) => nextAt > lastAt)
  }
  while (!(await isCaughtUp()) && Date.now() < catchUpUntil) await sleep(100)
  if (!(await isCaughtUp())) problems.push('The processes did not catch up within ten minutes.')
  await crew.stop()
  /* oxlint-enable no-await-in-loop */
  const passedMs = Date.now() - startedAt

  const after = await listSchedules(store)
  const nextAts = new Map(after.map(({ id, nextAt }) => [id, nextAt]))
  const sessions = new Map((await listAll(store)).map((one) => [one.id, one]))
  const open = new Set(
    store.timers.list({ prefix: 'firing:', limit: 100_000 }).map(({ id }) => id.slice('firing:'.length)),
  )
  const wanted = stored.flatMap((one) =>
    listTimes(one, one.nextAt, nextAts.get(one.id)).map((at) => toSessionId(one.id, at)),
  )
  for (const id of wanted) {
    // It was begun as the processes were stopped.
    if (open.has(id)) continue
    const { summary } = sessions.get(id) ?? {}
    if (summary === undefined) problems.push(`${id} was not fired.`)
    else if (summary.state !== 'COMPLETED' || summary.runs !== 1 || summary.messages !== 2)
      problems.push(
        `${id} has ${summary.runs} runs and ${summary.messages} messages, and is ${summary.state}.`,
      )
    sessions.delete(id)
  }
  for (const id of sessions.keys())
    if (!open.has(id)) problems.push(`${id} is no time of a schedule, or was fired too early.`)
  if (crew.kills !== kills) problems.push(`${crew.kills} of ${kills} kills met a process.`)
  const firings = wanted.length - open.size
  if (firings < 2 * schedules) problems.push(`Only ${firings} firings: too few to tell.`)
  store.close()
  if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
  return {
    problems,
    folder: dir,
    firings,
    kills: crew.kills,
    asked: told.asked,
    errors: told.errors,
    passedMs,
    minutes: (passedMs * speed) / minuteMs,
  }
}

const noModel = {
  provider: 'none',
  model: 'none',
  request: () => Promise.reject(new Error('This process asks no model.')),
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [schedules = 40, kills = 6, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number)
  const { problems, folder, ...told } = await playSchedules({ schedules, kills, seed })
  for (const problem of problems.slice(0, 20)) console.log(`WRONG: ${problem}`)
  if (problems.length > 0) console.log(`${problems.length} problems, left in ${folder}`)
  for (const message of new Set(told.errors.map((one) => one.message))) console.log(`Told: ${message}`)
  console.log(
    `Seed ${seed}: ${schedules} schedules in ${processes} processes with clocks up to a minute ahead or behind, which jump; ` +
      `${told.kills} kills in ${told.minutes.toFixed(1)} minutes of their time. ${told.firings} firings, the model was asked ` +
      `${told.asked} times: ${problems.length === 0 ? 'each firing exactly once' : 'WRONG'}.`,
  )
  process.exitCode = problems.length === 0 ? 0 : 1
}
