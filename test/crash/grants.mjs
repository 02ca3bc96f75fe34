import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent } from 'statewright'
import { checkSessionLog } from 'statewright/testing'
import { effectsIn, withStore } from './look.mjs'
import { createPayerModel } from './payer.mjs'
import { inParallel } from './pool.mjs'
import { runProcess } from './process.mjs'

const uses = 10
const callIds = Array.from({ length: uses + 2 }, (_, i) => `pay-${i + 1}`)
/** The number of calls in each answer of the model. */
const atOnce = 4
const revokedAfter = 6

const [goOn, give, revoke] = ['goOn', 'give', 'revoke'].map((action) => ({ action }))
const start = [goOn, give]
/** A process is killed, and its user tries again. */
const killed = (task, fault) => [{ ...task, fault }, task]

/**
 * Payments that start by a grant with ten uses, in processes that are killed. Ten of them must run, and no eleventh. None
 * may run after the revocation of the grant is stored.
 */
export async function playGrants(isAsked) {
  const cases = [...listUses(), ...listRevocations()].filter(isAsked)
  return inParallel(cases, 2, async (each) => {
    const { problems, dir } = await playCase(each).catch((error) => ({ problems: [error.stack] }))
    return { name: each.name, problems, dir }
  })
}

const sides = ['before', 'after']

function listUses() {
  const killedOften = (fault) => [...start, ...Array.from({ length: uses }, () => ({ ...goOn, fault })), goOn]
  return [
    { name: 'grant without a kill', tasks: [...start, goOn] },
    ...sides.flatMap((when) => {
      const tasks = killedOften({ on: 'effect', when, nth: 2 })
      const name = `grant killed ${when}`
      return [
        { name: `${name} put`, tasks: [goOn, ...killed(give, { on: 'put', when }), goOn] },
        { name: `${name} each second payment`, tasks },
        { name: `${name} each second payment, once`, tasks, isOnce: true },
        { name: `${name} each third record`, tasks: killedOften({ on: 'append', when, nth: 3 }) },
      ]
    }),
  ]
}

function listRevocations() {
  const callId = callIds[revokedAfter - 1]
  const inPayment = { ...goOn, revokeIn: callId }
  const dies = { ...goOn, fault: { on: 'effect', when: 'after', callId } }
  const name = 'grant revoked'
  return [
    { name: `${name} in a payment`, tasks: [...start, inPayment, goOn] },
    {
      name: `${name} in a payment and killed`,
      tasks: [...start, ...killed(inPayment, { on: 'revoke', when: 'after' }), goOn],
    },
    ...sides.flatMap((when) => [
      {
        name: `${name} and killed ${when} put`,
        tasks: [...start, dies, ...killed(revoke, { on: 'put', when }), goOn, goOn],
      },
      {
        name: `${name} and killed ${when} it is read`,
        tasks: [...start, dies, revoke, ...killed(goOn, { on: 'append', isTold: true, when }), goOn],
      },
    ]),
  ].map((each) => ({ ...each, isRevoked: true }))
}

async function playCase({ tasks, isOnce = false, isRevoked = false }) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-grants-'))
  const problems = []
  let kills = 0
  let atRevocation = Infinity
  let folder
  for (const task of tasks) {
    const whole = { dir, callIds, atOnce, uses, idempotent: !isOnce, ...task }
    const outcome = await runProcess(whole, { program: 'grant-process' })
    if (outcome?.error) throw new Error(outcome.error.stack)
    if (outcome === null) kills += 1
    folder = await readFolder(dir)
    const { effects, violation } = folder
    if (effects.length > atRevocation)
      problems.push(`${effects.length - atRevocation} payments ran after the revocation`)
    if (folder.isRevoked) atRevocation = Math.min(atRevocation, effects.length)
    if (violation) problems.push(`record ${violation.seq} breaks '${violation.rule}': ${violation.message}`)
  }
  const { effects, results, state } = folder
  const paid = new Set(effects.map(({ callId }) => callId)).size
  const keys = new Set(effects.map(({ idempotencyKey }) => idempotencyKey)).size
  const wanted = isRevoked ? revokedAfter : uses
  if (isOnce ? effects.length !== paid || paid > wanted : paid !== wanted || keys !== wanted)
    problems.push(`${paid} calls with ${keys} keys ran ${effects.length} times`)
  if (!isRevoked && results !== uses) problems.push(`${results} calls have results`)
  if (isRevoked !== folder.isRevoked) problems.push('the revocation is not stored')
  if (state !== 'WAITING_FOR_INPUT') problems.push(`it ends ${state}`)
  if (tasks.some(({ fault }) => fault) && kills === 0) problems.push('no process was killed')
  if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
  return { problems: [...new Set(problems)], dir }
}

const readFolder = (dir) =>
  withStore(dir, async (store) => {
    const records = store.read('s')
    const { messages } = await createAgent({ model: createPayerModel(callIds), store }).replay('s')
    const stored = JSON.stringify([store.inbox.read('s'), records])
    return {
      effects: effectsIn(dir),
      results: messages.filter(({ role }) => role === 'tool').length,
      state: store.get('s')?.summary.state,
      violation: checkSessionLog(records, 's'),
      isRevoked: /"type\\*":\\*"revoke\\*"/i.test(stored),
    }
  })
