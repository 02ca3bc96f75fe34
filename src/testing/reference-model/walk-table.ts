import { changes } from '../../../spec/changes.js'
import { conditions } from '../../../spec/conditions.js'
import { type Json, type Moment, type Run, type Verdict, isEnd, isRest } from '../../../spec/run.js'
import { table } from '../../../spec/table.js'

/** A row of the table. An event that no row accepts violates its law. */
export interface Row {
  law: string
  place: string
  event: string
  conditions: string[]
  to: string
  changes: string[]
}

/** Extends the table: decides its open conditions and keeps counters. */
export interface Details {
  answers: Record<string, (run: Run, moment: Moment) => boolean>
  /** The counters at the start of a run. */
  begin: (start: Json, opened: Json, before?: Run) => Json
  /** Before an event takes effect. */
  hear: (run: Run, moment: Moment) => Run
  /** After a row is taken. */
  move: (run: Run, next: Run, moment: Moment, row: Row) => Run[]
  /** Reads the counters of a snapshot, and selects the compared ones. */
  read: (context: Json) => Json
  sketch: (run: Run) => object
}

export interface Violation {
  seq: number
  rule: string
  law: string
  message: string
}

/** `law` is the rule's name and sentence; `message` explains the violation. */
export class Broken extends Error {
  constructor(
    readonly law: string,
    message: string,
  ) {
    super(message)
  }
}

export function toViolation(seq: number, error: unknown): Violation {
  if (!(error instanceof Broken)) throw error
  const [, rule = '', law = ''] = /^(\w+): (.+)$/s.exec(error.law) ?? []
  return { seq, rule, law, message: error.message }
}

const split = (text = '', by: string): string[] => text.split(by).map((part) => part.trim())
/** The rows of the table, plus one per actor whose failure ends the run. */
export const rows: readonly Row[] = readRows()

function readRows(): Row[] {
  const read = table.split('\n# ').flatMap((chapter) => {
    const [law = '', ...lines] = chapter.trim().split('\n')
    return lines.flatMap((line): Row[] => {
      const [places, events, when, to = '', what] = split(line, '|')
      const row = { law, conditions: split(when, '&'), to, changes: split(what, ',') }
      return split(places, ',').flatMap((place) =>
        split(events, ',').map((event) => ({ ...row, place, event })),
      )
    })
  })
  const actors = read.filter(({ event }) => event.startsWith('done '))
  const ending = { conditions: [''], to: 'ERROR', changes: ['because'] }
  return [...read, ...actors.map((row) => ({ ...row, ...ending, event: row.event.replace('done', 'error') }))]
}

/** Follows automatic transitions. Returns several runs if the log does not determine one. */
export function settle(run: Run, moment: Moment, details?: Details): Run[] {
  const { runs, isDecided } = follow(run, '', moment, details)
  return isDecided ? runs : [...runs, run]
}

/** The runs that are possible after an event. @throws Broken if there are none */
export function hear(run: Run, moment: Moment, details?: Details): Run[] {
  const { type } = moment.event
  if (isEnd(run.place))
    throw new Broken('end: The end of a run is its last record.', `${type} follows the end in ${run.place}.`)
  const event = type.replace(/^xstate\.(done|error)\.actor\./, '$1 ')
  const { runs } = follow(details?.hear(run, moment) ?? run, event, moment, details)
  if (runs.length > 0) return runs
  const law = rows.find((row) => row.event === event)?.law
  throw new Broken(
    law ?? 'known: Every event has a known type.',
    `${type} happens while the run is in ${run.place}.`,
  )
}

function follow(
  run: Run,
  event: string,
  moment: Moment,
  details?: Details,
): { runs: Run[]; isDecided: boolean } {
  const runs: Run[] = []
  for (const row of rows) {
    if (row.event !== event || (row.place !== run.place && row.place !== '*')) continue
    const verdict = judge(row, run, moment)
    if (verdict === false) continue
    const next = apply(row, run, moment)
    const moved = details ? details.move(run, next, moment, row) : [next]
    runs.push(...moved.flatMap((one) => settle(one, moment, details)))
    if (verdict === true) return { runs, isDecided: true }
  }
  return { runs, isDecided: false }
}

function judge({ conditions: names }: Row, run: Run, moment: Moment): Verdict {
  const verdicts = names.map((condition): Verdict => {
    const [name = '', of = ''] = condition.replace('!', '').split(' ')
    const verdict = name === '' || (conditions[name]?.(run, moment, of) ?? moment.ask(name, run))
    return condition.startsWith('!') && verdict !== 'perhaps' ? !verdict : verdict
  })
  return !verdicts.includes(false) && (verdicts.includes('perhaps') ? 'perhaps' : true)
}

function apply({ to, changes: names }: Row, run: Run, moment: Moment): Run {
  const place = to === '=' ? run.place : to
  let next: Run = { ...run, ...(isRest(run.place) && place !== run.place && { reason: null }) }
  for (const [name = '', of = ''] of names.map((one) => one.split(' ')))
    next = { ...next, ...changes[name]?.(next, moment, of) }
  const isCapped = /^(max_steps|max_tool_calls|budget)$/.test(next.stop ?? '')
  if (isEnd(place)) return { ...next, place, calls: [], pausing: false, stop: isCapped ? null : next.stop }
  return { ...next, place, pausing: next.pausing && place !== 'PAUSED' }
}
