// Kills host processes at random while they drive sessions, and compares the outcomes with the expected
// results.
import { setTimeout as sleep } from 'node:timers/promises'
import { runSession } from '../../dist/src/index.js'
import { agentsOf } from './cast.mjs'
import { heldAgainst, isAtWork, openStage, wrongInLedger } from './stage.mjs'

const mostMs = 300_000

/**
 * Cancels a session from another process while its model is silent in the middle of an answer. Returns the
 * time it takes.
 */
async function cancelHanging(id, { engine, agent, store }) {
  const status = async () => (await store.get(id).catch(() => null)) ?? { holder: null, summary: null }
  await engine.begin(id)
  const giveUpAt = Date.now() + 30_000
  while ((await status()).holder === null && Date.now() < giveUpAt) await sleep(100)
  await sleep(500)
  const toldAt = Date.now()
  await agent.send(id, { type: 'cancel', why: 'From outside.' })
  while ((await status()).summary?.state !== 'CANCELLED' && Date.now() < toldAt + 10_000) await sleep(20)
  return Date.now() - toldAt
}

export async function playRandom(name, server, sessions) {
  const startedAt = Date.now()
  const stage = await openStage(name, server, { part: 'random' })
  const { cast, ledger, store, agent, engine, hosts } = stage
  const wrong = []

  // A session of a version that no process accepts stays unchanged.
  const old = agentsOf({ ...cast, version: '1', accepts: ['1'] })
  const stop = new AbortController()
  await runSession(old.agents, {
    session: `${name}-old-0`,
    input: `${name}-old-0`,
    signal: stop.signal,
    heartbeat: () => setTimeout(() => stop.abort(), 20),
  })
  const before = await store.get(`${name}-old-0`)

  const ids = Array.from({ length: sessions }, (_, i) => `${name}-${i}`)
  await stage.start(3)
  await engine.begin(`${name}-old-0`)
  let begun = 0
  const beginAll = async () => {
    for (const id of ids) {
      await engine.begin(id).then(
        () => (begun += 1),
        () => undefined,
      )
      // An engine that is called twice.
      if (begun % 7 === 0) await engine.begin(id).catch(() => undefined)
    }
  }
  const beginning = beginAll()
  const killing = setInterval(() => hosts.kill(), 2000)
  const ending = setInterval(() => hosts.term(), 5000)
  let restarted = false
  const unheld = new Map()
  let longest = 0
  const answered = new Map()
  const done = new Set()
  while (done.size < ids.length && Date.now() - startedAt < mostMs) {
    await sleep(500)
    if (!restarted && done.size > ids.length / 3) {
      restarted = true
      await engine.restart()
    }
    let listed
    try {
      listed = await store.list({ children: true })
    } catch {
      continue
    }
    for (const { id, head, holder, summary } of listed) {
      if (!ids.includes(id)) continue
      const state = summary?.state ?? 'RUNNING'
      if (isAtWork(state) && holder === null) {
        unheld.set(id, unheld.get(id) ?? Date.now())
        longest = Math.max(longest, Date.now() - unheld.get(id))
      } else unheld.delete(id)
      if (state === 'WAITING_FOR_INPUT' && (answered.get(id) ?? 0) < Date.now() - 5000) {
        answered.set(id, Date.now())
        const { run } = await agent.replay(id).catch(() => ({ run: null }))
        const call = run?.pending?.[0]
        // Repeats the answer if the server is down or the receiving host dies, because no other process knows
        // of it.
        if (call) void engine.answer(id, call, head).catch(() => answered.delete(id))
      }
      if (!isAtWork(state) && state !== 'WAITING_FOR_INPUT') done.add(id)
    }
    // Sessions that could not start while the server was down.
    if (begun < ids.length) await beginning.then(beginAll)
  }
  clearInterval(killing)
  clearInterval(ending)
  const cancelMs = await cancelHanging(`hang-${name}-1`, { engine, agent, store })
  if (!(cancelMs < 10_000)) wrong.push(`a cancel from outside took ${cancelMs} ms`)
  const seconds = (Date.now() - startedAt) / 1000

  wrong.push(...wrongInLedger(ledger))
  let interrupted = 0
  for (const id of ids) {
    const held = await heldAgainst(id, stage)
    interrupted += held.interrupted
    wrong.push(...held.wrong)
  }
  // 7 s on a quiet machine. On a busy one, hosts start more slowly than they are killed.
  if (longest > 240_000) wrong.push(`a session was nobody's for ${longest} ms`)
  const after = await store.get(`${name}-old-0`)
  if (after?.head !== before?.head) wrong.push('a version that nobody accepts has run')
  if (hosts.counts.kills < 3) wrong.push(`only ${hosts.counts.kills} kills`)
  wrong.push(...(await stage.close()))
  await old.store.close()
  const row = {
    host: name,
    sessions: ids.length,
    seconds,
    ...hosts.counts,
    restarts: restarted ? 1 : 0,
    interrupted,
    unheldMs: longest,
    cancelMs,
    wrong: wrong.length,
  }
  return { rows: [row], wrong }
}
