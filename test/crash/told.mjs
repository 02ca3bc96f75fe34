import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { problemsOf, unlawful } from './checks.mjs'
import { isTold } from './faults.mjs'
import { look } from './look.mjs'
import { inParallel } from './pool.mjs'
import { runProcess } from './process.mjs'

/**
 * Sessions that receive a message while the sender or the receiver is killed around it, with the problems of
 * each.
 */
export const playTold = (model, { result: reference }, isAsked) =>
  inParallel(toldCases().filter(isAsked), 2, async (each) => {
    const dir = mkdtempSync(join(tmpdir(), 'statewright-crash-'))
    const problems = await problemsOfTold(each, dir, model, reference).catch((error) => [error.stack])
    if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
    return { name: each.name, problems, dir }
  })

const text = 'Mind the half-year, too.'
const messages = {
  approve: { type: 'approve', callId: 'pay-1' },
  steer: { type: 'steer', text },
  cancel: { type: 'cancel', why: 'The books stay open.' },
}

const sides = ['before', 'after']
const putting = sides.map((when) => ({ on: 'put', when }))
const looking = sides.map((when) => ({ on: 'look', when }))
/** Until the log has it and the inbox no longer has it. */
const applying = sides.flatMap((when) => [
  { on: 'append', when, isTold: true },
  { on: 'remove', when },
])

function toldCases() {
  return Object.keys(messages).flatMap((type) => [
    ...[...putting, ...(type === 'cancel' ? applying : [])].map((fault) => ({
      name: `told ${type}, its teller killed ${fault.when} ${fault.on}`,
      type,
      teller: fault,
    })),
    ...[...looking, ...applying].map((fault) => ({
      name: `told ${type} at a rest, its hearer killed ${fault.when} ${fault.on}`,
      type,
      // A process that dies after the message is stored has not applied it.
      teller: { on: 'put', when: 'after' },
      hearer: fault,
    })),
    ...(type === 'approve' ? [] : [...looking, ...applying]).map((fault) => ({
      name: `told ${type} at work, its hearer killed ${fault.when} ${fault.on}`,
      type,
      isAtWork: true,
      hearer: fault,
    })),
  ])
}

async function problemsOfTold({ type, teller, hearer, isAtWork }, dir, model, reference) {
  const { baseURL } = model.session()
  const message = messages[type]
  const looks = []
  /** True if it was killed as planned. */
  const killed = async (task) => {
    const outcome = await runProcess({ dir, baseURL, ...task })
    if (outcome?.error) throw new Error(outcome.error.stack)
    if (outcome === null) looks.push(await look(dir))
    return outcome === null
  }
  const missed = []
  if (!isAtWork) {
    if (await killed({ rests: true })) missed.push('the session did not come to its rest')
    if (!(await killed({ tells: message, fault: teller }))) missed.push('the teller was not killed')
    // A sender that sent no message sends it again.
    if (teller.on === 'put' && teller.when === 'before') await killed({ tells: message })
  }
  const tellsAt = isAtWork && { tellsAt: { callId: 'mail-2', message } }
  if (hearer && !(await killed({ rests: type === 'approve', fault: hearer, ...tellsAt })))
    missed.push('the hearer was not killed')
  const outcome = await runProcess({ dir, baseURL, rests: type === 'approve' })
  if (outcome.error) return [`it was refused: ${outcome.error.stack}`]
  const end = await look(dir)
  return [
    ...missed,
    ...whatBecame[type]({ outcome, end, looks, reference }),
    ...inboxProblems(end, type),
    ...unlawful([...looks, end]),
  ]
}

const timesOf = (callId, { effects }) => effects.filter((line) => line.callId === callId).length

const whatBecame = {
  approve: ({ outcome, end, looks, reference }) => problemsOf({ outcome, looks, end, reference }),
  steer: ({ outcome: { result }, end, reference }) => [
    ...(result.output === reference.output && result.state === 'COMPLETED'
      ? []
      : [`it ends ${result.state}`]),
    ...times('the steering is heard', received(result)),
    ...times('pay-1 runs', timesOf('pay-1', end)),
  ],
  cancel: ({ outcome: { result }, end, looks }) => [
    ...(result.state === 'CANCELLED' ? [] : [`it ends ${result.state}`]),
    ...times('pay-1 runs', timesOf('pay-1', end), 0),
    // The next process reads the message before it continues.
    ...(end.effects.length === looks.at(-1).effects.length ? [] : ['tools worked on after the cancel']),
  ],
}

const received = ({ messages: all }) =>
  all.filter(({ role, content }) => role === 'user' && JSON.stringify(content).includes(text)).length

const times = (what, count, wanted = 1) => (count === wanted ? [] : [`${what} ${count} times, not ${wanted}`])

/** A logged message in the inbox is obsolete. After a session's end, the next run removes it. */
function inboxProblems({ records, inbox }, type) {
  return [
    ...times('the log has the message', records.filter(isTold).length),
    ...(type === 'cancel' || inbox.length === 0 ? [] : [`${inbox.length} messages are left in the inbox`]),
  ]
}
