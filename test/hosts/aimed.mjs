// Kills the process that has a session in every phase of a hand-over, separately, and compares the outcome
// with an uninterrupted run.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { heldAgainst, openStage, wrongInLedger } from './stage.mjs'

/** Each phase by its point in points.mjs, with the number of results that must report an interruption. */
export const phases = {
  called: 'the engine has called, the lease is not taken',
  taken: 'lease taken, nothing appended',
  starting: 'the start is being appended',
  started: 'the start is appended, the model is not asked',
  asked: 'the model request is under way',
  answering: 'the answer is here, and not appended',
  answered: 'the answer is appended, its call has not begun',
  effect: 'the effect of the tool has begun',
  paid: 'the effect is done, its result is not appended',
  kept: 'the result is appended',
  resting: 'at rest for a person, the lease is not given back',
  rested: 'at rest for a person, the engine does not know',
  waiting: 'a person is waited for, every process is killed',
  told: 'the answer is in the inbox, the engine does not know',
  woken: 'answered, the lease is not taken',
  waking: 'answered, lease taken, nothing appended',
  approving: 'the answer is being appended',
  approved: 'the answer is appended, its call has not begun',
  leaving: 'SIGTERM, the lease is not given back',
  left: 'SIGTERM, the lease is given back',
  ending: 'at its end, the lease is not given back',
  ended: 'at its end, the engine does not know',
}
/** An appended call may have started. The outcome is unknown. */
const interruptedIn = new Set(['answered', 'effect', 'paid', 'approved'])
/** Its answers arrive through a separate queue. */
const notOf = { dbos: ['told'] }
const mostMs = 200_000
/** The maximum time that a session may be without a process. */
const mostUnheldMs = 35_000

/**
 * One process per active session, even after each has lost one, so that a kill interrupts only its session.
 */
const atOnce = 4
const processes = 2 * atOnce

export async function playAimed(name, server, times) {
  const marks = mkdtempSync(join(tmpdir(), 'statewright-marks-'))
  const startedAt = Date.now()
  const settings = { marks, concurrency: 1, drainMs: 200 }
  const stage = await openStage(name, server, { part: 'aimed', settings, processes })
  const { store, agent, engine, hosts, ledger } = stage
  const wrong = []
  const acquired = new Map()
  hosts.onMessage = (message) => {
    if (message.acquired)
      acquired.set(message.acquired, [...(acquired.get(message.acquired) ?? []), message.at])
  }
  const played = Object.keys(phases).filter((phase) => !notOf[name]?.includes(phase))
  const sessions = played.flatMap((phase) =>
    Array.from({ length: times }, (_, i) => ({ phase, id: `${name}-aim-${phase}-${(i + 1) * 5}` })),
  )
  await stage.start(processes)

  const playOne = async ({ id, phase }) => {
    while (!hosts.areReady(processes)) await sleep(20)
    await engine.begin(id)
    let isAnswered = false
    while (Date.now() - startedAt < mostMs) {
      await sleep(100)
      const listed = await store.get(id)
      const { state } = listed?.summary ?? {}
      if (state === 'COMPLETED' || state === 'ERROR' || state === 'CANCELLED') return
      if (state !== 'WAITING_FOR_INPUT' || listed.holder !== null || isAnswered) continue
      const { run } = await agent.replay(id)
      if (phase === 'waiting') {
        // The engine's wait is set up.
        await engine.waits?.(id)
        await sleep(500)
        await hosts.killAll()
      }
      isAnswered = true
      await engine.answer(id, run.pending[0], listed.head).catch(({ message }) => {
        wrong.push(`${id}: the answer was refused: ${message}`)
      })
    }
  }
  const playAll = async (all) => {
    const left = [...all]
    const next = async () => {
      for (let one = left.shift(); one; one = left.shift()) await playOne(one)
    }
    await Promise.all(Array.from({ length: atOnce }, next))
  }
  // Concurrently, because each of them kills every process.
  const isOfAll = ({ phase }) => phase === 'waiting'
  await playAll(sessions.filter((one) => !isOfAll(one)))
  await playAll(sessions.filter(isOfAll))

  // A dead process's leftovers in the engine are also finished there.
  const quietBy = Date.now() + mostUnheldMs
  while ((await engine.open()).length > 0 && Date.now() < quietBy) await sleep(200)
  for (const open of await engine.open()) wrong.push(`${open} is not done for the engine`)

  wrong.push(...wrongInLedger(ledger))
  const struck = new Set(readdirSync(marks))
  const rows = []
  for (const phase of played) {
    const row = { phase: phases[phase], host: name, times: 0, interrupted: 0, unheldMs: 0, wrong: 0 }
    const of = sessions.filter((one) => one.phase === phase)
    for (const { id } of of) {
      const held = await heldAgainst(id, stage)
      const isStruck = struck.has(id) || phase === 'waiting'
      const expected = interruptedIn.has(phase) ? 1 : 0
      const problems = held.wrong
      if (!isStruck) problems.push(`${id} was not killed`)
      if (held.interrupted !== expected) problems.push(`${id}: ${held.interrupted} results are interrupted`)
      if (struck.has(id)) {
        const at = Number(readFileSync(join(marks, id), 'utf8'))
        const again = acquired.get(id)?.find((time) => time > at)
        if (again === undefined) problems.push(`${id} was not taken up again`)
        row.unheldMs = Math.max(row.unheldMs, (again ?? at) - at)
      }
      if (row.unheldMs > mostUnheldMs) problems.push(`${id} was nobody's for ${row.unheldMs} ms`)
      row.times += isStruck ? 1 : 0
      row.interrupted += held.interrupted
      row.wrong += problems.length
      wrong.push(...problems)
    }
    rows.push(row)
  }
  wrong.push(...(await stage.close()))
  rmSync(marks, { recursive: true })
  return { name, seconds: (Date.now() - startedAt) / 1000, rows, wrong }
}
