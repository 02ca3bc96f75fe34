import { formatCount, formatMoney, shorten } from '../../core/format/format-words.js'
import { sumCosts } from '../costs.js'
import type { Decision, TextEdit, MomentView, RecordRow, ShownMessage } from '../protocol.js'
import { isFailed, isRequestEnd } from '../session-query.js'
import { formatWord } from './format.js'
import type { RunStep } from './run-steps.js'

type Call = Pick<ShownMessage['calls'][number], 'id' | 'name' | 'arguments' | 'result' | 'status'>

/** `at` is the record where the fork starts. */
export type WhatIf = { at: number } & ({ edit: TextEdit; call?: Call } | { decided: Decision; call: Call })

export interface Choice {
  label: string
  wanted: WhatIf
}

function formatCall(call: Call): string {
  const { name, arguments: input, status } = call
  const outcome = isFailed(call) ? 'failed' : formatWord(status ?? 'no result yet')
  return `${name}(${input === '{}' ? '' : shorten(input, 24)}), ${outcome}`
}

/** The latest failed result at or before this record, or else the latest result, or else the latest change. */
export function findDefault(choices: readonly Choice[], seq: number): Choice | undefined {
  const before = choices.filter(({ wanted }) => wanted.at <= seq)
  const results = before.filter(({ wanted }) => 'edit' in wanted && 'result' in wanted.edit)
  return (
    results.find(({ wanted: { call } }) => call && isFailed(call)) ?? results[0] ?? before[0] ?? choices[0]
  )
}

export function listChanges({
  transcript,
  instructions,
}: Pick<MomentView, 'transcript' | 'instructions'>): Choice[] {
  const choices = transcript.toReversed().flatMap(({ role, id, text, forkAt, calls, marks }) => {
    const ofCalls = calls.toReversed().flatMap((call): (Choice | null)[] => [
      call.result === null || call.forkAt === null
        ? null
        : {
            label: `result of ${formatCall(call)}`,
            wanted: { edit: { call: call.id, result: call.result }, call, at: call.forkAt },
          },
      call.decision && {
        label: `decision on ${formatCall(call)}`,
        wanted: { decided: call.decision, call, at: call.decision.seq - 1 },
      },
      forkAt === null
        ? null
        : {
            label: `arguments of ${formatCall(call)}`,
            wanted: { edit: { call: call.id, arguments: call.arguments }, call, at: forkAt },
          },
    ])
    const isOfUser = role === 'user' && !marks.includes('internal') && forkAt !== null
    const message: Choice | null = isOfUser
      ? {
          label: `message: ${shorten(text, 40)}`,
          wanted: { edit: { message: id, content: text }, at: forkAt },
        }
      : null
    return [...ofCalls, message].filter((choice) => choice !== null)
  })
  if (instructions === null || instructions.forkAt === null) return choices
  const { text, forkAt: at } = instructions
  return [...choices, { label: 'instructions', wanted: { edit: { instructions: text }, at } }]
}

/** Another agent may use another model, so that the earlier cost says nothing about the fork. */
export function describeFork(
  place: number,
  steps: readonly RunStep[],
  rows: readonly RecordRow[],
  asksFirst: boolean,
  isSameAgent: boolean,
): string {
  const after = rows.slice(place + 1)
  // A step whose answer is at or before the record is not requested again.
  const dropped = steps.filter(
    ({ from, to }) => to > place && rows.slice(Math.max(from, place + 1), to + 1).some(isRequestEnd),
  )
  if (dropped.length === 0) return 'Nothing comes after this record, so nothing is discarded.'
  const cost = sumCosts(isSameAgent ? after.map(({ paid }) => paid) : [])
  const subject =
    dropped.length === 1
      ? 'The step after this is'
      : `The ${formatCount(dropped.length, 'step')} after this are`
  const paid = cost.usd > 0 ? `, about ${formatMoney(cost.usd)}` : ''
  const unknown = cost.isWhole ? '' : ' (some usage has no price)'
  const ran = after
    .flatMap(({ calls }) => calls)
    .filter(({ status }) => status === 'ok' || status === 'error')
  const [reading, acting] = [ran.filter(isReadOnly), ran.filter((call) => !isReadOnly(call))]
  const again =
    acting.length === 0
      ? ''
      : asksFirst
        ? ` ${formatCount(acting.length, 'call')} with possible side effects (${listNames(acting)}) will need approval.`
        : ` ${formatCount(acting.length, 'call')} with possible side effects (${listNames(acting)}) may run a second time.`
  const read = reading.length === 0 ? '' : ` ${formatCount(reading.length, 'read-only call')} may run again.`
  const hasEarlierCalls = rows.slice(0, place + 1).some(({ calls }) => calls.length > 0)
  return `${subject} discarded and run again${paid}${unknown}.${again}${read}${hasEarlierCalls ? ' Earlier calls keep their results.' : ''}`
}

const isReadOnly = (call: RecordRow['calls'][number]): boolean => call.isReadOnly

function listNames(calls: readonly RecordRow['calls'][number][]): string {
  const names = [...new Set(calls.map(({ name }) => name))]
  return `${names.slice(0, 4).join(', ')}${names.length > 4 ? ', …' : ''}`
}
