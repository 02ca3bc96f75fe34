/**
 * The session under test, in twelve steps: the model's answer at each, how its first request fails, and the
 * tools. All values depend only on the step, so a repeated request gets the same answer.
 */

export const prompt = 'Close the books of the quarter.'

/** A call, with its tool's working time before and after the effect, in milliseconds. */
const call = (name, id, ms = 0) => ({ id, name, arguments: { id, ms } })

export const steps = [
  {
    calls: [
      call('fetch_ledger', 'ledger-1', 1),
      call('save_note', 'note-1', 2),
      call('send_mail', 'mail-1', 1),
    ],
  },
  { fails: 429, text: 'Now the details.', calls: [call('read_page', 'page-1')] },
  { calls: [call('send_mail', 'mail-2', 3), call('send_mail', 'mail-3'), call('read_page', 'page-2', 2)] },
  { text: 'The first half of the report, and ', finish: 'length' },
  { text: 'the second half.', calls: [call('save_note', 'note-2', 4)] },
  { fails: 503, calls: [call('pay', 'pay-1', 2), call('read_page', 'page-3', 1)] },
  { calls: [call('fetch_ledger', 'ledger-2', 3)] },
  { calls: [call('book_room', 'room-1', 1), call('save_note', 'note-3')] },
  { text: 'One more mail.', calls: [call('send_mail', 'mail-4', 4)] },
  { fails: 503, calls: [call('read_page', 'page-4', 2)] },
  {
    calls: [
      call('send_mail', 'mail-5', 2),
      call('save_note', 'note-4', 2),
      call('read_page', 'page-5', 2),
      call('book_room', 'room-2', 3),
    ],
  },
  { text: 'The books are closed.' },
]

export const calls = steps.flatMap(({ calls: each = [] }) => each)

/** `fetch_ledger` returns enough data that the log gets a snapshot on the way. */
export const traits = {
  read_page: { readOnly: true },
  fetch_ledger: { readOnly: true, chars: 130_000 },
  save_note: { idempotent: true },
  send_mail: {},
  book_room: { fails: 'The hotel is full.' },
  pay: { needsApproval: true },
}

const nameOf = new Map(calls.map(({ id, name }) => [id, name]))

/** Whether an interrupted call may run again. */
export function mayRunTwice(callId) {
  const { readOnly, idempotent } = traits[nameOf.get(callId)]
  return readOnly === true || idempotent === true
}
