// Misbehaving engines: they call twice at once, late, or never again, submit invalid sessions, or know
// different sessions than the store.
import { setTimeout as sleep } from 'node:timers/promises'
import { payments } from './cast.mjs'
import { heldAgainst, openStage, wrongInLedger } from './stage.mjs'

const mostMs = 200_000

export async function playContrary(name, server) {
  const startedAt = Date.now()
  const wrong = []
  // DBOS logs rejected calls at length.
  const stage = await openStage(name, server, { part: 'contrary', settings: { isQuiet: true } })
  const { store, agent, engine, hosts, ledger } = stage
  const until = async (what, holds) => {
    let isSo = await holds()
    while (!isSo && Date.now() - startedAt < mostMs) {
      await sleep(50)
      isSo = await holds()
    }
    if (!isSo) wrong.push(`it never came to this: ${what}`)
  }
  const stateOf = async (session) => (await store.get(session))?.summary?.state
  const isIn = (session, state) => async () => (await stateOf(session)) === state
  const paid = (session) => [...ledger.paid.keys()].filter((key) => key.startsWith(`${session}/`)).length
  await stage.start(3)

  // Ten identical concurrent calls.
  const twice = `${name}-twice-1`
  await Promise.all(Array.from({ length: 10 }, () => engine.call(twice)))
  await until('called ten times, done once', isIn(twice, 'COMPLETED'))

  // Late, because it has ended.
  const { head } = await store.get(twice)
  await engine.call(twice)
  await until('the late call is done', async () => (await engine.open()).length === 0)
  if ((await store.get(twice)).head !== head || paid(twice) !== payments)
    wrong.push('a late call has done something')

  // Never again, because the process dies and the engine has lost the session.
  const forgotten = `${name}-forgotten-1`
  await engine.begin(forgotten)
  await until('a session at work', async () => paid(forgotten) > 0)
  await engine.forget(forgotten)
  await hosts.killAll()
  await engine.pickUp?.(store)
  await until('the forgotten session is found', isIn(forgotten, 'COMPLETED'))

  // The engine has it as done and the store has it as open: a wait that was continued from elsewhere.
  const open = `${name}-open-5`
  await engine.begin(open)
  await until('a session that asks', isIn(open, 'WAITING_FOR_INPUT'))
  await engine.forget(open)
  const { run, seq } = await agent.replay(open)
  await engine.answer(open, run.pending[0], seq)
  await engine.pickUp?.(store)
  await until('the answered session has ended', isIn(open, 'COMPLETED'))

  // The store no longer has it.
  const gone = `${name}-gone-5`
  await engine.begin(gone)
  await until('another one that asks', isIn(gone, 'WAITING_FOR_INPUT'))
  await engine.waits?.(gone)
  const { run: waitingRun, seq: at } = await agent.replay(gone)
  await until('it is deleted', () =>
    Promise.resolve(store.delete(gone)).catch(({ code }) => code !== 'session_busy'),
  )
  const refusal = await engine.answer(gone, waitingRun.pending[0], at).then(
    () => 'none',
    ({ code = '', message }) => `${code} ${message}`,
  )
  if (!refusal.includes('unknown_session')) wrong.push(`told to nobody: ${refusal}`)
  await until('the engine gives up what is gone', async () => (await engine.open()).length === 0)
  if ((await store.get(gone)) !== null || paid(gone) !== 1)
    wrong.push('a session that was deleted has begun anew')

  // Invalid sessions and turns.
  const junk = await engine.junk()
  for (const [what, message] of Object.entries(junk))
    if (!/invalid_|unknown_agent|payload_too_large|not_begun/.test(message)) wrong.push(`${what}: ${message}`)
  const after = `${name}-after-1`
  await engine.begin(after)
  await until('a session after all that', isIn(after, 'COMPLETED'))

  for (const session of [twice, forgotten, open, after])
    wrong.push(...(await heldAgainst(session, stage)).wrong)
  wrong.push(...wrongInLedger(ledger))
  wrong.push(...(await stage.close()))
  const row = {
    host: name,
    'ten at once': paid(twice),
    forgotten: paid(forgotten),
    'done for the engine alone': paid(open),
    deleted: refusal.slice(0, 40),
    'no session': Object.keys(junk).length,
    wrong: wrong.length,
  }
  return { rows: [row], wrong }
}
