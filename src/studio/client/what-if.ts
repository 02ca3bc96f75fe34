import { formatCount, formatMoney } from '../../core/format/format-words.js'
import type { Decision, ForkEdit, MomentView, RecordRow, ShownMessage } from '../protocol.js'
import type { RunStep } from './run-steps.js'

/** An edit that a user has chosen, and the message that it is about. */
export interface WantedEdit {
  edit: MessageEdit
  message: Pick<ShownMessage, 'id' | 'at'>
}

type MessageEdit = Exclude<ForkEdit, { instructions: string }>

/** What a user wants to be otherwise: something in a message, what a person decided about a call, or the instructions. */
export type WhatIf =
  | WantedEdit
  | { decided: Decision; call: Pick<ShownMessage['calls'][number], 'id' | 'name' | 'arguments'> }
  | { instructions: string }

/** States from which a fork can run. */
export const forkableStates: ReadonlySet<string> = new Set([
  'RUNNING',
  'WAITING_FOR_TOOL',
  'WAITING_FOR_INPUT',
  'PAUSED',
])

interface Search {
  rows: readonly RecordRow[]
  steps: readonly RunStep[]
  /** A record at which the message is seen. */
  place: number
  load: (place: number) => Promise<MomentView | null>
}

/**
 * The index of the record at which a fork takes the edit: a message is edited where it was said, arguments before the call
 * has a result, and a result when its whole batch has results, so that no other call of the batch runs again.
 */
export async function findEditPlace({ edit, message }: WantedEdit, search: Search): Promise<number> {
  const { rows, steps, place, load } = search
  const isThere = async (at: number): Promise<boolean> => {
    const moment = at < 0 ? null : await load(at)
    const shown = moment?.transcript.find(({ id }) => id === message.id)
    if (!shown || !('result' in edit)) return shown !== undefined
    const call = shown.calls.find(({ id }) => id === edit.call)
    return call !== undefined && call.result !== null && call.status !== 'withheld'
  }
  const since = rows.findIndex(
    ({ at, calls }) => at >= message.at && (!('result' in edit) || calls.some(({ id }) => id === edit.call)),
  )
  const isGuessed = since !== -1 && since <= place && (await isThere(since)) && !(await isThere(since - 1))
  const first = isGuessed ? since : await findFirst(place, isThere)
  return 'result' in edit ? findEndOfBatch(first, rows, steps) : first
}

/** By halves: what is seen at a record is seen at each record after it. */
async function findFirst(last: number, isThere: (at: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, last]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    // oxlint-disable-next-line no-await-in-loop -- the next question depends on the answer
    if (await isThere(middle)) high = middle
    else low = middle + 1
  }
  return high
}

function findEndOfBatch(first: number, rows: readonly RecordRow[], steps: readonly RunStep[]): number {
  const step = steps.find(({ from, to }) => from <= first && first <= to)
  for (let at = step?.to ?? first; at > first; at -= 1) {
    const row = rows[at]
    if (row && row.calls.length > 0 && forkableStates.has(row.state)) return at
  }
  return first
}

/** The index of the record at which other instructions hold for the whole run: its first one at which the fork can run. */
export function findFirstForkable(rows: readonly RecordRow[], run: number): number {
  const first = rows.findIndex((row) => row.run === run && forkableStates.has(row.state))
  return first === -1 ? rows.length - 1 : first
}

/** What a fork at this record drops, and what may happen again, in sentences. */
export function describeFork(
  place: number,
  steps: readonly RunStep[],
  rows: readonly RecordRow[],
  asksFirst: boolean,
): string {
  const after = rows.slice(place + 1)
  const dropped = steps.filter((step) => step.to > place && step.tokens > 0)
  const cost = after.reduce((sum, { paid }) => sum + paid, 0)
  if (dropped.length === 0) return 'Nothing comes after this record, so nothing is dropped.'
  const asked =
    dropped.length === 1
      ? 'The step after this is'
      : `The ${formatCount(dropped.length, 'step')} after this are`
  const paid = cost > 0 ? `, about ${formatMoney(cost)}` : ''
  const ran = after
    .flatMap(({ calls }) => calls)
    .filter(({ status }) => status === 'ok' || status === 'error')
  const [reading, acting] = [ran.filter(isReadOnly), ran.filter((call) => !isReadOnly(call))]
  const again =
    acting.length === 0
      ? ''
      : asksFirst
        ? ` ${formatCount(acting.length, 'call')} that may not repeat (${listNames(acting)}) will be asked for approval.`
        : ` ${formatCount(acting.length, 'call')} that may not repeat (${listNames(acting)}) may run a second time.`
  const read =
    reading.length === 0 ? '' : ` ${formatCount(reading.length, 'call')} that only read may run again.`
  const kept = rows.slice(0, place + 1).some(({ calls }) => calls.length > 0)
  return `${asked} dropped and asked again${paid}.${again}${read}${kept ? ' Calls before it keep their results.' : ''}`
}

const isReadOnly = (call: RecordRow['calls'][number]): boolean => call.isReadOnly

function listNames(calls: readonly RecordRow['calls'][number][]): string {
  const names = [...new Set(calls.map(({ name }) => name))]
  return `${names.slice(0, 4).join(', ')}${names.length > 4 ? ', …' : ''}`
}
