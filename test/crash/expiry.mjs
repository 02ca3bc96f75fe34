import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent } from 'statewright'
import { checkSessionLog } from 'statewright/testing'
import { effectsIn, withStore } from './look.mjs'
import { createPayerModel } from './payer.mjs'
import { inParallel } from './pool.mjs'
import { runProcess } from './process.mjs'

const [minuteMs, hourMs] = [60_000, 3_600_000]
const askedAt = Date.UTC(2026, 4, 4, 6)
const expiresMs = 15 * minuteMs
/** The first is approved in time. The answer to the second stays unread, the answer to the third comes too late. */
const callIds = ['pay-1', 'pay-2', 'pay-3']

/** Longer than a process that wakes sessions claims an alarm. */
const claimMs = minuteMs

/** Users with their times. The clocks of some are an hour ahead or behind. */
const createSteps = (skewMs, claimedMs = 0) => [
  { action: 'ask', now: askedAt, skewMs: 0 },
  { action: 'approve', now: askedAt + expiresMs - minuteMs, skewMs },
  { action: 'send', now: askedAt + expiresMs - 1, skewMs: -skewMs },
  { action: 'end', now: askedAt + expiresMs + claimedMs, skewMs },
]

/**
 * Payments whose questions expire. A process is killed around a record, an alarm, a message or a payment. Its user tries
 * again, or time passes first. No payment may start too late, and each that is approved in time must run once.
 */
export async function playExpiry(isAsked) {
  const whole = await playCase({ skewMs: hourMs })
  const cases = [{ name: 'expiry without a kill', skewMs: -hourMs }, ...faultsOf(whole.records)].filter(
    isAsked,
  )
  return inParallel(cases, 2, async (each) => {
    const { problems, dir } = await playCase(each).catch((error) => ({ problems: [error.stack] }))
    return { name: each.name, problems, dir }
  })
}

function faultsOf(records) {
  const points = [
    ...Array.from({ length: records }, (_, i) => ({ on: 'append', seq: i + 1 })),
    ...[1, 2].map((nth) => ({ on: 'set', nth })),
    { on: 'put' },
    { on: 'move', nth: 1 },
    { on: 'effect' },
  ]
  return points.flatMap((point, i) =>
    [
      ['after', false, true],
      ['before', true, false],
      ['before', true, true],
    ].map(([when, isLate, idempotent]) => ({
      name:
        `expiry killed ${when} ${Object.values(point).join(' ')}, ${isLate ? 'later' : 'again'}` +
        (idempotent ? '' : ', once'),
      idempotent,
      skewMs: i % 2 === 0 ? hourMs : -hourMs,
      fault: { ...point, when },
      isLate,
    })),
  )
}

async function playCase({ skewMs, fault, isLate = false, idempotent = true }) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-expiry-'))
  const play = async (steps, more) => {
    const task = { dir, expiresMs, callIds, idempotent, steps, ...more }
    const outcome = await runProcess(task, { program: 'expiry-process' })
    if (outcome?.error) throw new Error(outcome.error.stack)
    return outcome
  }
  const problems = []
  const isKilled = (await play(createSteps(skewMs), { fault })) === null
  let killedIn
  if (isKilled) {
    killedIn = readFileSync(join(dir, 'step'), 'utf8')
    // The time starts when the question is in the log.
    const passesTime = isLate && killedIn !== 'end' && (killedIn !== 'ask' || (await isWaiting(dir)))
    const steps = createSteps(-skewMs, killedIn === 'end' ? claimMs : 0)
    await play(steps.slice(steps.findIndex(({ action }) => action === killedIn) + (passesTime ? 1 : 0)))
  }
  if (isKilled !== (fault !== undefined)) problems.push('no process was killed')
  const { records, results, violation, inbox } = await readFolder(dir)
  const effects = effectsIn(dir)
  for (const { callId, at } of effects)
    if (callId !== callIds[0] || at >= askedAt + expiresMs) problems.push(`${callId} ran at ${at}`)
  const keys = new Set(effects.map(({ idempotencyKey }) => idempotencyKey))
  problems.push(...problemsOf(results, isLate ? effects.length : keys.size, isLate && killedIn === 'approve'))
  if (violation) problems.push(`record ${violation.seq} breaks '${violation.rule}': ${violation.message}`)
  if (inbox.length > 0) problems.push(`the inbox has ${inbox.length} messages`)
  if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
  return { problems, dir, records: records.length }
}

const isExpired = (text) => text.startsWith('Not executed: ') && text.endsWith('This is not a refusal.')

function problemsOf([first, ...others], runs, mayMiss) {
  const problems = others.filter((text) => !isExpired(text)).map((text) => `a late call ends: ${text}`)
  if (others.length !== callIds.length - 1) problems.push(`${others.length + 1} calls have results`)
  const isWrong = first === 'paid' ? runs !== 1 : !mayMiss || runs > (isExpired(first) ? 0 : 1)
  if (isWrong) problems.push(`it ran ${runs} times and ends: ${first}`)
  return problems
}

const isWaiting = (dir) => withStore(dir, (store) => store.get('s')?.summary.state === 'WAITING_FOR_INPUT')

const readFolder = (dir) =>
  withStore(dir, async (store) => {
    const records = store.read('s')
    const { messages } = await createAgent({ model: createPayerModel(callIds), store }).replay('s')
    const results = messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
    return { records, results, violation: checkSessionLog(records, 's'), inbox: store.inbox.read('s') }
  })
