import { formatCount, formatMoney, shorten } from '../../core/format/format-words.js'
import { sumCosts } from '../costs.js'
import type { MomentView, RecordRow, TextEdit } from '../protocol.js'
import { isFailed, isRequestEnd } from '../session-query.js'
import { type Change, toCallChanges, toInstructionsChange, toMessageChange } from './what-if.js'
import { formatWord } from '../format.js'
import type { RunStep } from '../run-steps.js'

/** `value` is the text as JSON. Undefined if the text is not JSON, as a result need not be. */
export function toEdit({ kind, id }: Change, text: string, value: unknown): TextEdit {
  if (kind === 'instructions') return { instructions: text }
  if (kind === 'message') return { message: id, content: text }
  return kind === 'result' ? { call: id, result: value ?? text } : { call: id, arguments: value }
}

/** The latest failed result at or before this record, or else the latest result, or else the latest change. */
export function findDefault(changes: readonly Change[], seq: number): Change | undefined {
  const before = changes.filter(({ at }) => at <= seq)
  const results = before.filter(({ kind }) => kind === 'result')
  return results.find(({ call }) => call && isFailed(call)) ?? results[0] ?? before[0] ?? changes[0]
}

/** The latest first. */
export function listChanges({
  transcript,
  instructions,
}: Pick<MomentView, 'transcript' | 'instructions'>): Change[] {
  const changes = transcript
    .toReversed()
    .flatMap((message) => [
      ...message.calls.toReversed().flatMap((call) => Object.values(toCallChanges(call, message.forkAt))),
      toMessageChange(message),
    ])
  return [...changes, instructions && toInstructionsChange(instructions)].filter((change) => change !== null)
}

export function describeChange({ kind, text, call }: Change): string {
  if (!call) return kind === 'message' ? `message: ${shorten(text, 40)}` : kind
  const { name, arguments: input, status } = call
  const outcome = isFailed(call) ? 'failed' : formatWord(status ?? 'no result yet')
  const called = `${name}(${input === '{}' ? '' : shorten(input, 24)}), ${outcome}`
  return `${kind} ${kind === 'decision' ? 'on' : 'of'} ${called}`
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
