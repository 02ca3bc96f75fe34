import {
  type Json,
  type Moment,
  type Run,
  type Verdict,
  begin,
  isEnd,
  limitOf,
  termsOf,
  type Call,
  isRest,
} from '../../../spec/run.js'
import { changes } from '../../../spec/changes.js'
import { conditions } from '../../../spec/conditions.js'
import { table } from '../../../spec/table.js'

export interface LogEntry {
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly [key: string]: unknown
}

/** The first record that violates the table in spec/. Without `details`, open conditions are followed both ways. */
export function judgeLog(entries: Iterable<LogEntry>, details?: Details): LogViolation | null {
  let runs: Run[] = []
  let opened: Json = {}
  for (const entry of entries) {
    try {
      if (entry.type === 'opened') opened = entry['state'] ?? {}
      else runs = judgeEntry(entry)
    } catch (error) {
      return toViolation(entry.seq, error)
    }
  }
  return null

  function judgeEntry(entry: Json): Run[] {
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
            'start: A run starts only if no other run is active.',
            `Another run is in ${runs[0]?.place}.`,
          )
        return (ended.length > 0 ? ended : [undefined]).flatMap((before) => {
          const run = begin(input, before?.loaded ?? opened.loaded, before?.grants ?? opened.grants)
          return settle({ ...run, details: details?.begin(entry, opened, before) }, moment)
        })
      }
      case 'event':
        if (runs.length === 0)
          throw new Broken('start: A run starts before its events.', `${event.type} comes before the start.`)
        return narrow(runs, (run) => hear(run, moment))
      case 'snapshot': {
        const seen = readRun(state, details)
        // A partial log starts with a snapshot. A `selected` snapshot switches to another branch.
        if (entry.selected === undefined) narrow(runs, (run) => checkSnapshot(run, seen, state.status))
        return [seen]
      }
      default:
        throw new Broken('known: Every record has a known type.', `'${type}' is not a record type.`)
    }
  }

  /** Follows automatic transitions. Returns several runs if the log does not determine a single one. */
  function settle(run: Run, moment: Moment): Run[] {
    const { runs: settled, isDecided } = follow(run, '', moment)
    return isDecided ? settled : [...settled, run]
  }

  /** The runs that are possible after an event. @throws Broken if there are none */
  function hear(run: Run, moment: Moment): Run[] {
    const { type } = moment.event
    if (isEnd(run.place))
      throw new Broken(
        'end: The end of a run is its last record.',
        `${type} comes after the end in ${run.place}.`,
      )
    const event = type.replace(/^xstate\.(done|error)\.actor\./, '$1 ')
    const { runs: possible } = follow(details?.hear(run, moment) ?? run, event, moment)
    if (possible.length > 0) return possible
    const law = rows.find((row) => row.event === event)?.law ?? 'known: Every event has a known type.'
    throw new Broken(law, `${type} happens while the run is in ${run.place}.`)
  }

  function follow(run: Run, event: string, moment: Moment): { runs: Run[]; isDecided: boolean } {
    const followed: Run[] = []
    for (const row of rows) {
      if (row.event !== event || (row.place !== run.place && row.place !== '*')) continue
      const verdict = judge(row, run, moment)
      if (verdict === false) continue
      const next = apply(row, run, moment)
      const moved = details ? details.move(run, next, moment, row) : [next]
      followed.push(...moved.flatMap((one) => settle(one, moment)))
      if (verdict === true) return { runs: followed, isDecided: true }
    }
    return { runs: followed, isDecided: false }
  }

  function checkSnapshot(run: Run, seen: Run, status: string): Run[] {
    const [due, is] = [sketch(run, seen), sketch(seen, seen)]
    // Only the guard knows why it stopped the run.
    if (run.reason === undefined || (run.reason === null && run.stop !== null)) is['reason'] = due['reason']
    // The table alone does not model sleeping sub-agents.
    if (!details && run.reason === 'paused' && seen.reason === 'sleeping') is['reason'] = due['reason']
    if (run.lastBatchFailed === 'perhaps') is['lastBatchFailed'] = run.lastBatchFailed
    const law = 'snapshot: A snapshot matches the place, counters, totals and calls its log leads to.'
    for (const key of Object.keys(due)) {
      const [one, other] = [JSON.stringify(is[key]), JSON.stringify(due[key])]
      if (one !== other) throw new Broken(law, `The ${key} is ${one}, but the log leads to ${other}.`)
    }
    if ((status === 'done') !== isEnd(run.place))
      throw new Broken(law, `The status is ${status} in ${run.place}.`)
    return [seen]
  }

  /** The fields to compare. After the end, values that are used only before the next request are ignored. */
  function sketch(run: Run, seen: Run): Record<string, unknown> {
    const { setup: _, details: __, ...compared } = run
    const calls = run.calls.map(({ id, done, perhaps, unscreened, ...call }, i) => {
      const { needs, started, unchecked, hasHandle } = call
      // The snapshot shows whether a guard refused the call.
      const isDone = done || (perhaps && seen.calls[i]?.done === true)
      return { id, isDone, unscreened, ...(!isDone && { needs, started, unchecked, hasHandle }) }
    })
    const over = isEnd(run.place) && { steering: 0, recalled: false }
    const grants = run.grants.map(({ id, uses = null }) => ({ id, uses }))
    return { ...compared, calls, grants, ...over, ...details?.sketch(run) }
  }
}

/** Keeps the possible runs. Without any, reports the last one's error: earlier ones assume that guards acted. */
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

export function readRun({ value, context }: Json, details?: Details): Run {
  let place = value
  while (typeof place === 'object') place = Object.values(place)[0]
  const caps: Record<string, string> = { token_budget: 'budget', cost_limit: 'budget' }
  for (const cap of ['max_steps', 'max_tool_calls']) caps[cap] = cap
  return {
    ...Object.fromEntries(Object.keys(begin({})).map((key) => [key, context[key]])),
    setup: context,
    place,
    stop: context.verdict?.onHalt ?? (isEnd(place) ? null : (caps[context.reason] ?? null)),
    recalled: context.retrieved !== null,
    resends: context.resends ?? 0,
    // Logs from early versions have no plan.
    plan: context.plan ?? null,
    steering: context.steering.length,
    loaded: context.loaded ?? [],
    grants: context.grants ?? [],
    calls: context.calls.map((call: Json) => readCall(call, context)),
    details: details?.read(context),
  } as Run
}

const readCall = ({ id, name, needs, questions, result, started, ...marks }: Json, setup: Json): Call => ({
  id,
  name,
  args: marks.arguments,
  hosted: marks.hosted === true,
  bound: marks.hosted === true || marks.interrupted === true || marks.ungranted === true,
  grant: marks.grant ?? null,
  needs,
  questions: questions ?? [],
  started: started === true,
  done: result !== undefined,
  failed: result !== undefined && result.status !== 'ok' && !marks.unloaded,
  unchecked: marks.unscreenedArguments === true || marks.undecided === true,
  client: marks.client === true,
  decided: marks.decisions !== undefined,
  approved: marks.approved === true,
  terms: termsOf(setup, marks.decisions),
  // An approval from an unknown sender is not stored.
  votes: marks.approvals ?? (marks.approved && !marks.grant ? [{}] : []),
  limit: limitOf(setup, marks.decisions),
  expiresAt: marks.expiresAt ?? null,
  urgent: false,
  unscreened: marks.unscreenedResult === true,
  unloaded: marks.unloaded === true,
  hasHandle: marks.handle !== undefined,
  perhaps: false,
})

/** A row in the table. An event that no row accepts violates its law. */
export interface Row {
  law: string
  place: string
  event: string
  conditions: string[]
  to: string
  changes: string[]
}

/** Extends the table: decides its open conditions and maintains counters. */
export interface Details {
  answers: Record<string, (run: Run, moment: Moment) => boolean>
  begin: (start: Json, opened: Json, before?: Run) => Json
  hear: (run: Run, moment: Moment) => Run
  move: (run: Run, next: Run, moment: Moment, row: Row) => Run[]
  read: (context: Json) => Json
  sketch: (run: Run) => object
}

/** The first rule of the reference model that a log violates. */
export interface LogViolation {
  /** Sequence number of the record. */
  seq: number
  rule: string
  /** The rule as a sentence. */
  law: string
  /** How the record violates the rule. */
  message: string
}

/** `law` is the rule's name and sentence. `message` explains the violation. */
export class Broken extends Error {
  constructor(
    readonly law: string,
    message: string,
  ) {
    super(message)
  }
}

export function toViolation(seq: number, error: unknown): LogViolation {
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
  return { ...next, place, pausing: place !== 'PAUSED' && next.pausing }
}
