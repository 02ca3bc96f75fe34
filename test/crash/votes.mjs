import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkSessionLog } from 'statewright/testing'
import { effectsIn, withStore } from './look.mjs'
import { inParallel } from './pool.mjs'
import { runProcess } from './process.mjs'

/** The number of people who must approve the payment. */
const needed = 3

const byHandle = (by) => ({ by, via: 'handle' })
const byInbox = (by) => ({ by, via: 'inbox' })

/** Groups of processes. The groups run in sequence, and the processes of a group run concurrently. */
const oneAfterTheOther = [
  [{ votes: [byHandle('ann')] }],
  [{ votes: [byInbox('bob')] }],
  [{ votes: [byHandle('cyd')] }],
]
const atOnce = [
  [{ votes: [] }],
  [{ votes: [byInbox('ann'), byHandle('bob')] }, { votes: [byHandle('cyd')] }],
  // A third process finishes the remaining work.
  [{ votes: ['ann', 'bob', 'cyd'].map(byHandle) }],
]

/**
 * A payment that three people must approve, over several processes. One process is killed at a point, and its user
 * sends the approval again. The payment must run with one idempotency key, and only with all approvals in the log.
 */
export async function playVotes(isAsked) {
  const whole = await playCase({ groups: oneAfterTheOther })
  const cases = [
    { name: 'votes without a kill', groups: oneAfterTheOther },
    ...[oneAfterTheOther, atOnce].flatMap((groups) => faultsOf(whole.records, groups)),
  ].filter(isAsked)
  return inParallel(cases, 2, async (each) => {
    const { problems, dir } = await playCase(each).catch((error) => ({ problems: [error.stack] }))
    return { name: each.name, problems, dir }
  })
}

function faultsOf(records, groups) {
  const order = groups === atOnce ? 'at once' : 'one after the other'
  const points = [
    ...Array.from({ length: records }, (_, i) => ({ on: 'append', seq: i + 1 })),
    { on: 'put' },
    { on: 'remove' },
  ]
  return points.flatMap((point) =>
    ['before', 'after'].map((when) => ({
      name: `votes killed ${when} ${point.seq ? `record ${point.seq}` : point.on} (${order})`,
      groups,
      fault: { ...point, when },
      mustStrike: groups === oneAfterTheOther,
    })),
  )
}

async function playCase({ groups, fault, mustStrike }) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-votes-'))
  const problems = []
  let kills = 0
  const play = async (task) => {
    const outcome = await runProcess({ dir, needed, ...task, fault }, { program: 'vote-process' })
    if (outcome?.error) throw new Error(outcome.error.stack)
    if (outcome !== null) return
    kills += 1
    problems.push(...problemsOf(await readFolder(dir)))
    const again = await runProcess({ dir, needed, ...task }, { program: 'vote-process' })
    if (again.error) throw new Error(again.error.stack)
  }
  for (const group of groups) {
    const isFree = fault === undefined || kills === 0
    await Promise.all(group.map((task) => (isFree ? play(task) : runAgain(dir, task))))
  }
  const folder = await readFolder(dir)
  const { records, effects, state, votes } = folder
  problems.push(...problemsOf(folder))
  if (state !== 'COMPLETED') problems.push(`it ends ${state}`)
  if (effects.length === 0) problems.push('the payment never ran')
  for (const [by, count] of votes) if (count > 1) problems.push(`${by} has approved it ${count} times`)
  if (mustStrike && kills !== 1) problems.push(`${kills} processes were killed`)
  if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
  return { problems: [...new Set(problems)], dir, records: records.length }
}

async function runAgain(dir, task) {
  const { error } = await runProcess({ dir, needed, ...task }, { program: 'vote-process' })
  if (error) throw new Error(error.stack)
}

function problemsOf({ records, effects, votes }) {
  const keys = new Set(effects.map(({ idempotencyKey }) => idempotencyKey))
  const violation = records.length > 0 ? checkSessionLog(records, 's') : null
  return [
    ...(keys.size > 1 ? [`the payment ran with ${keys.size} keys`] : []),
    ...(effects.length > 0 && votes.size < needed ? [`the payment ran with ${votes.size} approvals`] : []),
    ...(violation ? [`record ${violation.seq} breaks '${violation.rule}': ${violation.message}`] : []),
  ]
}

const readFolder = (dir) =>
  withStore(dir, (store) => {
    const records = store.read('s')
    const votes = new Map()
    for (const { data } of records) {
      const { event } = JSON.parse(data)
      if (event?.type === 'APPROVE') votes.set(event.by.id, (votes.get(event.by.id) ?? 0) + 1)
    }
    return { records, votes, effects: effectsIn(dir), state: store.get('s')?.summary?.state }
  })
