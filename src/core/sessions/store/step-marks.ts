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

/**
 * Parses the marks of a session from JSON, in record order. Invalid marks are dropped, so that they do not hide the
 * session.
 */
export function parseMarks(text: string | null): { marks?: StepMark[] } {
  if (text === null) return {}
  let byRecord: unknown
  try {
    byRecord = JSON.parse(text)
  } catch {
    return {}
  }
  const marks = isObject(byRecord) ? Object.values(byRecord).filter(isMark) : []
  return marks.length === 0 ? {} : { marks: marks.sort((a, b) => a.seq - b.seq) }
}

function isMark(value: unknown): value is StepMark {
  if (!isObject(value)) return false
  const { seq, mark, note, at } = value as Record<string, unknown>
  return (
    Number.isSafeInteger(seq) &&
    (mark === 'good' || mark === 'bad' || mark === 'note') &&
    typeof note === 'string' &&
    Number.isFinite(at)
  )
}

/** Changes the mark of one record. Null removes it. */
export function changeMarks(text: string | null, seq: number, mark: StepMark | null): string {
  const { [seq]: _former, ...others } = Object.fromEntries(
    (parseMarks(text).marks ?? []).map((one) => [one.seq, one]),
  )
  return JSON.stringify(mark === null ? others : { ...others, [seq]: mark })
}
