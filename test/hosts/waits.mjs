// Waits for a provider, for people, and for the lease of a lost machine, with every process killed during the
// wait.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { payments, turn } from './cast.mjs'
import { heldAgainst, isAtWork, openStage, wrongInLedger } from './stage.mjs'

/** Longer than a drive waits itself. */
const retryAfterMs = 11_500
const answerTimeoutMs = 5000
const killAfterMs = 3000
const mostMs = 200_000
/** The maximum time that a session may be without a process after its lease expires. */
const mostUnheldMs = 90_000

export async function playWaits(name, server) {
  const startedAt = Date.now()
  const marks = mkdtempSync(join(tmpdir(), 'statewright-marks-'))
  const requests = new Map()
  /** The first request of a waiting session is refused for a long time. */
  const script = ({ body, ...more }) => {
    const session = body.messages.findLast(({ role }) => role === 'user').content
    const times = [...(requests.get(session) ?? []), Date.now()]
    requests.set(session, times)
    return session.includes('-wait-') && times.length === 1
      ? { status: 429, retryAfterMs }
      : turn({ body, ...more })
  }
  const settings = { marks, answerTimeoutMs }
  const stage = await openStage(name, server, { part: 'waits', settings, script, processes: 4 })
  const { store, agent, engine, hosts, ledger } = stage
  const wrong = []
  const id = (word, n) => `${name}-${word}-${n}`

  // A separate machine that never returns. Others see only its lease.
  const elsewhere = [id('else-aim-effect', 1), id('else', 2), id('else', 3)]
  await hosts.start(3, { machine: 'elsewhere', isOnce: true })
  await engine.ready?.()
  await Promise.all(elsewhere.map((session) => engine.begin(session)))
  while (!readdirSync(marks).includes(elsewhere[0])) await sleep(50)
  const goneAt = Date.now()
  const left = new Map(
    await Promise.all(elsewhere.map(async (session) => [session, (await store.get(session))?.head ?? 0])),
  )

  await Promise.all([0, 1, 2].map((slot) => hosts.start(slot)))
  const waiting = [id('wait', 1), id('wait', 2)]
  const [inTime, never, tooLate] = [id('patient', 5), id('late', 5), id('late', 10)]
  const all = [...elsewhere, ...waiting, inTime, never, tooLate]
  await Promise.all(all.slice(elsewhere.length).map((session) => engine.begin(session)))

  const restedAt = new Map()
  const endedAt = new Map()
  const unheld = new Map()
  let unheldMs = 0
  let takenMs = 0
  let isKilled = false
  let refusal
  while (endedAt.size < all.length && Date.now() - startedAt < mostMs) {
    await sleep(100)
    for (const session of all) {
      const listed = await store.get(session)
      const { state } = listed?.summary ?? {}
      if (!state) continue
      if (elsewhere.includes(session) && isAtWork(state)) {
        if (listed.holder === null) unheld.set(session, unheld.get(session) ?? Date.now())
        else unheld.delete(session)
        unheldMs = Math.max(unheldMs, Date.now() - (unheld.get(session) ?? Date.now()))
        if (listed.head > left.get(session)) takenMs = Math.max(takenMs, Date.now() - goneAt)
        if (listed.head > left.get(session)) left.set(session, Infinity)
      }
      const isResting = state === 'WAITING_FOR_INPUT' && listed.holder === null
      if (isResting && !restedAt.has(session)) restedAt.set(session, listed.updatedAt)
      if (!isAtWork(state) && state !== 'WAITING_FOR_INPUT' && !endedAt.has(session))
        endedAt.set(session, listed.updatedAt)
      if (session === inTime && isResting && Date.now() - restedAt.get(session) > 1000) {
        const { run } = await agent.replay(session)
        await engine.answer(session, run.pending[0], listed.head)
      }
    }
    const isKillTime = Date.now() - (restedAt.get(tooLate) ?? Infinity) > killAfterMs
    if (!isKilled && isKillTime && endedAt.has(inTime)) {
      isKilled = true
      for (const session of waiting)
        if ((await store.get(session)).holder !== null) wrong.push(`${session} is held while it waits`)
      await hosts.killAll()
    }
    if (endedAt.has(tooLate) && refusal === undefined) {
      const { run, seq } = await agent.replay(tooLate)
      const [{ id: callId }] = run.messages.flatMap(({ tool_calls: calls = [] }) => calls).slice(-1)
      refusal = 'none'
      await engine.answer(tooLate, { callId }, seq).catch(({ message }) => (refusal = message))
    }
  }

  let sleptMs = Infinity
  for (const session of waiting) {
    const times = requests.get(session)
    sleptMs = Math.min(sleptMs, (times[1] ?? 0) - times[0])
    // One refused request, then one per payment, then one for the end.
    if (times.length !== payments + 2) wrong.push(`${session} has asked its model ${times.length} times`)
  }
  if (!(sleptMs >= retryAfterMs)) wrong.push(`a wait of ${retryAfterMs} ms was one of ${sleptMs} ms`)
  const patience = [never, tooLate].map((session) => endedAt.get(session) - restedAt.get(session))
  // The engine's timer and the store have different clocks.
  for (const ms of patience)
    if (!(ms >= answerTimeoutMs - 100)) wrong.push(`a question was cancelled after ${ms} ms`)
  for (const session of [...elsewhere, ...waiting, inTime])
    wrong.push(...(await heldAgainst(session, stage)).wrong)
  for (const session of [never, tooLate]) {
    wrong.push(...(await heldAgainst(session, stage, 'CANCELLED')).wrong)
    if (ledger.paid.has(`${session}/1`)) wrong.push(`${session} was paid, and nobody had agreed`)
  }
  const written = (await store.read(tooLate)).map(({ data }) => data)
  if (!written.some((data) => data.includes('No answer arrived in time.')))
    wrong.push('a cancel does not say why')
  if (!/CANCELLED/.test(refusal)) wrong.push(`an answer that is late: ${refusal}`)
  if (!isKilled) wrong.push('nothing was killed')
  if (takenMs === 0) wrong.push('nothing was left behind')
  if (unheldMs > mostUnheldMs) wrong.push(`a session was nobody's for ${unheldMs} ms`)
  wrong.push(...wrongInLedger(ledger))
  const quietBy = Date.now() + 10_000
  while ((await engine.open()).length > 0 && Date.now() < quietBy) await sleep(200)
  for (const open of await engine.open()) wrong.push(`${open} is not done for the engine`)
  wrong.push(...(await stage.close()))
  rmSync(marks, { recursive: true })
  const row = {
    host: name,
    'a wait of 11.5 s': `${sleptMs} ms`,
    'a patience of 5 s': `${Math.max(...patience)} ms`,
    'until the sessions of a machine that is gone were taken': `${takenMs} ms`,
    'of that without a lease': `${unheldMs} ms`,
    wrong: wrong.length,
  }
  return { rows: [row], wrong }
}
