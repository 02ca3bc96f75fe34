// Agent versions that come and go. Sessions that no version accepts are left unchanged and listed. A deploy
// under load strands and interrupts no session.
import { setTimeout as sleep } from 'node:timers/promises'
import { runSession, listStrandedSessions } from '../../dist/src/index.js'
import { agentsOf } from './cast.mjs'
import { heldAgainst, isAtWork, openStage, wrongInLedger } from './stage.mjs'

const mostMs = 200_000

/** A session that a version's process left in the middle of a request. */
async function leftBy(version, session, cast) {
  const old = agentsOf({ ...cast, version, accepts: [version] })
  const stop = new AbortController()
  const heartbeat = () => setTimeout(() => stop.abort(), 20)
  await runSession(old.agents, { session, input: session, signal: stop.signal, heartbeat })
  await old.store.close()
}

export async function playDeploys(name, server, sessions) {
  const startedAt = Date.now()
  const wrong = []
  const versions = { version: '5', accepts: ['4', '5'] }
  const stage = await openStage(name, server, { part: 'deploys', versions, processes: 7 })
  const { cast, store, agents, agent, engine, hosts, ledger } = stage
  const until = async (holds) => {
    while (!(await holds()) && Date.now() - startedAt < mostMs) await sleep(100)
  }
  const stateOf = async (session) => (await store.get(session))?.summary?.state

  // Version 1 sessions queued in the engine. No process accepts them.
  const old = [1, 2, 3].map((n) => `${name}-old-${n}`)
  await Promise.all(old.map((session) => leftBy('1', session, cast)))
  const heads = await Promise.all(old.map(async (session) => (await store.get(session)).head))
  await Promise.all(
    [0, 1, 2].map((slot) => hosts.start(slot, { version: '4', accepts: ['4'], isOnce: true })),
  )
  await engine.ready?.()
  await Promise.all(old.map((session) => engine.begin(session)))

  // Under load, version 5 replaces each version 4 process.
  const ids = Array.from({ length: sessions }, (_, i) => `${name}-deploy-${i}`)
  const answered = new Set()
  const pending = new Set(ids)
  const look = async () => {
    for (const { id, head, holder, summary } of await store.list({ children: true })) {
      if (!pending.has(id) || isAtWork(summary?.state ?? 'RUNNING')) continue
      if (summary.state !== 'WAITING_FOR_INPUT') pending.delete(id)
      else if (holder === null && !answered.has(id)) {
        answered.add(id)
        const { run } = await agent.replay(id)
        await engine.answer(id, run.pending[0], head)
      }
    }
    return pending.size === 0
  }
  const beginning = (async () => {
    for (const id of ids) {
      await engine.begin(id)
      await sleep(20)
    }
  })()
  let inTheMiddle = 0
  for (const slot of [0, 1, 2]) {
    await sleep(600)
    await hosts.start(3 + slot, { isOnce: true })
    inTheMiddle += (await store.list({ children: true })).filter(
      ({ id, holder }) => pending.has(id) && holder !== null,
    ).length
    await hosts.end(slot)
    await look()
  }
  await beginning
  await until(look)
  for (const id of pending) wrong.push(`${id} is stranded in ${await stateOf(id)}`)
  const deployedMs = Date.now() - startedAt
  let interrupted = 0
  const by = { 4: 0, 5: 0 }
  for (const id of ids) {
    const held = await heldAgainst(id, stage)
    interrupted += held.interrupted
    wrong.push(...held.wrong)
    by[(await store.get(id)).summary.version] += 1
  }
  if (interrupted > 0) wrong.push(`a deploy has interrupted ${interrupted} calls`)
  if (inTheMiddle === 0) wrong.push('no session was in the middle of the deploy')
  // The number of sessions that start on the new version is random. The old version has ended its sessions.
  if (by[4] === 0) wrong.push('the old version has begun no session')

  // Unaccepted sessions are unchanged and listed. The next deploy ends them.
  const stranded = await listStrandedSessions(agents, store)
  if (
    stranded
      .map(({ session, needs }) => `${session} ${needs}`)
      .sort()
      .join() !== old.map((id) => `${id} payer 1`).join()
  )
    wrong.push(`stranded: ${JSON.stringify(stranded)}`)
  for (const [i, session] of old.entries())
    if ((await store.get(session)).head !== heads[i]) wrong.push(`${session} has run`)
  await hosts.start(6, { version: '6', accepts: ['1', '5', '6'] })
  await Promise.all([3, 4, 5].map((slot) => hosts.end(slot)))
  const acceptedAt = Date.now()
  await until(async () => (await Promise.all(old.map(stateOf))).every((state) => state === 'COMPLETED'))
  const endedMs = Date.now() - acceptedAt
  for (const session of old) wrong.push(...(await heldAgainst(session, stage)).wrong)
  if ((await listStrandedSessions(agents, store)).length > 0) wrong.push('something is stranded at the end')
  wrong.push(...wrongInLedger(ledger))
  await until(async () => (await engine.open()).length === 0)
  for (const open of await engine.open()) wrong.push(`${open} is not done for the engine`)
  wrong.push(...(await stage.close()))
  const row = {
    host: name,
    sessions: ids.length,
    'begun by 4': by[4],
    'begun by 5': by[5],
    'held while it was replaced': inTheMiddle,
    interrupted,
    seconds: deployedMs / 1000,
    'of version 1, until they ended': `${endedMs} ms`,
    wrong: wrong.length,
  }
  return { rows: [row], wrong }
}
