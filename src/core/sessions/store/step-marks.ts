import { isObject } from '../../base/values.js'

/** A person's judgement of a step, by the record that ended it. */
export interface StepMark {
  seq: number
  mark: 'good' | 'bad' | 'note'
  /** May be empty for `good` and `bad`. */
  note: string
  /** Milliseconds since the epoch. */
  at: number
}

/** The marks of a session as JSON, by record. Unreadable marks are left out, so that they hide no session. */
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
