import type { ForkEdit, MomentView, RecordRow, ShownMessage } from '../protocol.js'
import { formatCount, formatMoney } from './format.js'
import type { RunStep } from './run-steps.js'

/** An edit that a user has chosen, and the message that it is about. */
export interface WantedEdit {
  edit: ForkEdit
  message: Pick<ShownMessage, 'id' | 'at'>
}

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

/** What a fork at this record drops, and what may happen again, in sentences. */
export function describeFork(place: number, steps: readonly RunStep[], rows: readonly RecordRow[]): string {
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
  const names = [...new Set(ran.map(({ name }) => name))]
  const again =
    ran.length === 0
      ? ''
      : ` ${formatCount(ran.length, 'call')} of them ran (${names.slice(0, 4).join(', ')}${names.length > 4 ? ', …' : ''}) and may run again; those that need an approval ask for it.`
  return `${asked} dropped and asked again${paid}.${again}`
}
