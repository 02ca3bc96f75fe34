import { type Json, type Moment, type Run, type Verdict, begin, isEnd } from '../../../spec/run.js'
import { checkSnapshot, readRun } from './check-snapshot.js'
import { Broken, type Details, type Violation, hear, settle, toViolation } from './walk-table.js'

/** A record of a log: `data` is read, and stands beside `seq` and `at`. */
export interface LogEntry {
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly [key: string]: unknown
}

/**
 * Whether a log is one that the loop can have written: null, or the first record that breaks a law of the table in
 * spec/. With `details`, what the table asks has an answer; without them, it is open, and both ways are taken.
 */
export function judgeLog(entries: Iterable<LogEntry>, details?: Details): Violation | null {
  /** The runs that are possible. */
  let runs: Run[] = []
  let opened: Json = {}
  for (const entry of entries) {
    try {
      if (entry.type === 'opened') opened = entry['state'] ?? {}
      else runs = judgeEntry(runs, entry, opened, details)
    } catch (error) {
      return toViolation(entry.seq, error)
    }
  }
  return null
}

function judgeEntry(runs: Run[], entry: Json, opened: Json, details?: Details): Run[] {
  const { type, at, input, event, state } = entry
  const moment: Moment = { now: event?.now ?? input?.now ?? at, event: event ?? {}, ask }
  function ask(what: string, run: Run): Verdict {
    return details?.answers[what]?.(run, moment) ?? 'perhaps'
  }
  switch (type) {
    case 'start': {
      const ended = runs.filter(({ place }) => isEnd(place))
      if (runs.length > 0 && ended.length === 0)
        throw new Broken(
          'start: A run starts where none is under way.',
          `Another one stands in ${runs[0]?.place}.`,
        )
      return (ended.length > 0 ? ended : [undefined]).flatMap((before) =>
        settle(
          {
            ...begin(input, before?.loaded ?? opened.loaded),
            details: details?.begin(entry, opened, before),
          },
          moment,
          details,
        ),
      )
    }
    case 'event':
      if (runs.length === 0)
        throw new Broken(
          'start: A run starts before anything happens in it.',
          `${event.type} comes before its start.`,
        )
      return narrow(runs, (run) => hear(run, moment, details))
    case 'snapshot': {
      const seen = readRun(state, details)
      // A part of a log begins with a snapshot; with one that is selected, a session returns to another branch.
      if (entry.selected === undefined) narrow(runs, (run) => checkSnapshot(run, seen, state.status, details))
      return [seen]
    }
    default:
      throw new Broken(
        'known: Every record is of a kind that the loop has.',
        `There is no record of type '${type}'.`,
      )
  }
}

/** What is left possible. Where nothing is, the last run says why: those before it are of guards that may have acted. */
function narrow(runs: Run[], onwards: (run: Run) => Run[]): Run[] {
  let last: Broken | undefined
  const left = runs.flatMap((run) => {
    try {
      return onwards(run)
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      last = error
      return []
    }
  })
  if (left.length === 0 && last) throw last
  if (left.length < 2) return left
  return [...new Map(left.map((run) => [JSON.stringify({ ...run, setup: null }), run])).values()]
}
