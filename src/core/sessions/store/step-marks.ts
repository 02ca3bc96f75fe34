import { parseJsonOr } from '../../base/json.js'
import { isObject } from '../../base/values.js'

/** A person's rating of a step, keyed by the record that ended the step. */
export interface StepMark {
  seq: number
  mark: 'good' | 'bad' | 'note'
  /** The person's note. Can be empty for `good` and `bad`. */
  note: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Parses the marks of a session, in record order. Drops invalid marks, so that they do not hide the session. */
export function parseMarks(text: string | null): { marks?: StepMark[] } {
  const byRecord = text === null ? null : parseJsonOr(text, null)
  const marks = isObject(byRecord) ? Object.values(byRecord).filter(isMark) : []
  return marks.length === 0 ? {} : { marks: marks.sort((a, b) => a.seq - b.seq) }
}

function isMark(value: unknown): value is StepMark {
  if (!isObject(value)) return false
  const { seq, mark, note, at } = value
  return (
    Number.isSafeInteger(seq) &&
    (mark === 'good' || mark === 'bad' || mark === 'note') &&
    typeof note === 'string' &&
    Number.isFinite(at)
  )
}

export function changeMarks(text: string | null, seq: number, mark: StepMark | null): string {
  const { [seq]: _former, ...others } = Object.fromEntries(
    (parseMarks(text).marks ?? []).map((one) => [one.seq, one]),
  )
  return JSON.stringify(mark === null ? others : { ...others, [seq]: mark })
}
