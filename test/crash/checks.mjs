import { isDeepStrictEqual } from 'node:util'
import { mayRunTwice } from './script.mjs'

/**
 * The problems of a session, one sentence each. `reference` is the result of the uninterrupted run, `looks`
 * the state after each kill, `end` the final state.
 */
export function problemsOf({ outcome, looks, end, reference, losesEffects = false }) {
  if (outcome.error) return [`it was refused: ${outcome.error.stack}`]
  const { result } = outcome
  const inDoubt = new Set(looks.flatMap((each) => each.inDoubt))
  return [
    ...differences(plain(result), expected(plain(reference), inDoubt)),
    ...logProblems(end, looks, result),
    ...unlawful([...looks, end]),
    ...(losesEffects ? [] : effectProblems(end, looks)),
    ...endingProblems(outcome, looks, end),
  ]
}

/** A result without times and the run's id. */
function plain({ runId: _runId, messages, ...rest }) {
  return { ...rest, messages: messages.map(({ createdAt: _createdAt, ...message }) => withoutWords(message)) }
}

/** The wording of an interruption is free, but it must state that the outcome is unknown. */
function withoutWords(message) {
  const isInterrupted =
    message.data?.status === 'interrupted' && /interrupted.*unknown/is.test(message.content)
  return isInterrupted ? { ...message, content: '(interrupted)' } : message
}

/** The expected result: uncertain calls are interrupted, and all other parts are equal. */
function expected(reference, inDoubt) {
  const messages = reference.messages.map((message) =>
    inDoubt.has(message.tool_call_id)
      ? { ...message, content: '(interrupted)', data: { status: 'interrupted' } }
      : message,
  )
  return { ...reference, messages }
}

function differences({ messages, ...result }, { messages: wanted, ...reference }) {
  const problems = Object.keys({ ...reference, ...result })
    .filter((key) => !isDeepStrictEqual(result[key], reference[key]))
    .map((key) => `${key} is ${show(result[key])}, not ${show(reference[key])}`)
  const at = Array.from({ length: Math.max(messages.length, wanted.length) }, (_, i) => i).find(
    (i) => !isDeepStrictEqual(messages[i], wanted[i]),
  )
  if (at !== undefined) problems.push(`messages[${at}] is ${show(messages[at])}, not ${show(wanted[at])}`)
  return problems
}

function logProblems({ records, result: folded }, looks, result) {
  const problems = []
  if (records.some(({ seq }, i) => seq !== i + 1)) problems.push('the records are not numbered 1, 2, 3, …')
  if (!isDeepStrictEqual(folded, result)) problems.push('the fold of the log is not the result')
  for (const [i, look] of looks.entries()) {
    const isKept = look.records.every((record, at) => isDeepStrictEqual(record, records[at]))
    if (!isKept) problems.push(`records that were durable at kill ${i + 1} are not in the log any more`)
  }
  return problems
}

/** Each log found, including logs between two processes, must be one that the loop can write. */
export function unlawful(looks) {
  return looks.flatMap(({ violation }, i) =>
    violation
      ? [
          `the log of look ${i + 1} breaks '${violation.rule}' at record ${violation.seq}: ${violation.message}`,
        ]
      : [],
  )
}

function effectProblems({ effects }, looks) {
  const problems = []
  const executions = (callId, lines = effects) => lines.filter((line) => line.callId === callId).length
  for (const callId of new Set(effects.map((line) => line.callId))) {
    const keys = new Set(
      effects.filter((line) => line.callId === callId).map(({ idempotencyKey }) => idempotencyKey),
    )
    if (keys.size > 1) problems.push(`${callId} ran with ${keys.size} idempotency keys`)
    if (executions(callId) > 1 && !mayRunTwice(callId))
      problems.push(`${callId} ran ${executions(callId)} times`)
  }
  for (const [i, look] of looks.entries()) {
    for (const callId of look.durable) {
      if (executions(callId) > executions(callId, look.effects)) {
        problems.push(`${callId} ran again, though its result was durable at kill ${i + 1}`)
      }
    }
  }
  return problems
}

/**
 * The log ends once, with its last record. The process that wrote the end announced it once. A process that
 * finds it does not announce it.
 */
function endingProblems({ ended }, looks, end) {
  const problems = []
  const announced = looks.at(-1)?.ended ? 0 : 1
  if (ended !== announced) problems.push(`run_ended was emitted ${ended} times, not ${announced}`)
  if (!end.ended || end.endedBefore) problems.push('the run does not end with the last record of its log')
  return problems
}

function show(value) {
  const text = JSON.stringify(value) ?? 'missing'
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
