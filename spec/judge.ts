import type { LoggedEvent } from './actors.js'
import { take } from './events.js'
import { Broken, type Rule, rules } from './rules.js'
import { type Run, type Setup, type Usage, begin, hasEnded, nothing } from './run.js'
import { settle } from './settle.js'
import { checkSnapshot, readRun, type StoredState } from './snapshot.js'

/** A record of a log, as the README of the format has it: `data` is read, and stands beside `seq` and `at`. */
export interface LogEntry {
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly [key: string]: unknown
}

/** What is wrong with a log: which record breaks which rule. */
export interface Violation {
  seq: number
  rule: Rule
  /** The rule, in a sentence. */
  law: string
  /** How the record breaks it. */
  message: string
}

/** The fields of entries that the rules read. */
interface Entry {
  seq: number
  at: number
  type: string
  version?: number
  name?: string
  state?: object
  forkedFrom?: object
  input?: Setup
  event?: LoggedEvent & { inbox?: number; key?: string }
  queued?: number
  inbox?: number
  runs?: number
  told?: number
  selected?: number
}

/** What a session hands from one run to the next. */
interface Remembered {
  usage: Usage
  numbered: number
  loaded: readonly string[]
}

/** Where a log stands after the records that were read. */
interface Standing {
  seq: number
  at: number
  isForked: boolean
  /** The runs that are possible. */
  runs: Run[]
  /** Those that have ended before: a session may return to one, where it has branches. Of a part of a log, some. */
  past: Run[]
  isWhole: boolean
  begun: number
  ids: Set<string>
  session: Remembered
  told: number
  inbox: number
  queued: number
  keys: Set<string>
}

/**
 * Whether a log is one that the loop can have written: null, or the first record that breaks a rule. `marks`: whether
 * its version marks what is withheld, as all but the first do.
 */
export function judgeLog(entries: Iterable<LogEntry>, { marks = true } = {}): Violation | null {
  let log: Standing | null = null
  for (const entry of entries) {
    try {
      log = judgeEntry(log, entry as unknown as Entry, marks)
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      return { seq: entry.seq, rule: error.rule, law: rules[error.rule], message: error.message }
    }
  }
  return null
}

function judgeEntry(before: Standing | null, entry: Entry, marks: boolean): Standing {
  const isPart = before === null && entry.type === 'snapshot'
  const log = before ?? createStanding(entry)
  if (!isPart && entry.seq !== log.seq + 1)
    throw new Broken('sequence', `Record ${entry.seq} follows record ${log.seq}.`)
  if (entry.type === 'opened' ? before !== null : before === null && !isPart)
    throw new Broken('opening', `A record of type '${entry.type}' cannot stand here.`)
  const next = { ...log, seq: entry.seq, at: entry.at, ...judge(log, entry, isPart, marks) }
  // A snapshot is read without what is before it.
  const told = entry.type === 'snapshot' ? 0 : next.told
  if ((entry.told ?? told) < told) throw new Broken('count', `It falls from ${told} to ${entry.told}.`)
  return { ...next, told: entry.told ?? told }
}

function judge(log: Standing, entry: Entry, isPart: boolean, marks: boolean): Partial<Standing> {
  switch (entry.type) {
    case 'opened': {
      const {
        messages = [],
        usage = nothing,
        loaded = [],
      } = (entry.state ?? {}) as Partial<Remembered> & { messages?: unknown[] }
      return {
        session: { usage, numbered: messages.length, loaded },
        isForked: entry.forkedFrom !== undefined,
      }
    }
    case 'start':
      return judgeStart(log, entry, entry.input as Setup, marks)
    case 'event':
      return judgeEvent(log, entry, entry.event as LoggedEvent)
    case 'snapshot':
      return judgeSnapshot(log, entry, entry.state as StoredState, isPart, marks)
    default:
      throw new Broken('known', `There is no record of type '${entry.type}'.`)
  }
}

function judgeStart(
  log: Standing,
  { at, queued = 0 }: Entry,
  input: Setup,
  marks: boolean,
): Partial<Standing> {
  const under = log.runs.find((run) => !hasEnded(run))
  const ended = log.runs.filter(hasEnded)
  if (under && ended.length === 0)
    throw new Broken('start', `A run starts while another one stands in ${under.place}.`)
  if (log.ids.has(input.runId)) throw new Broken('start', `There has been a run ${input.runId}.`)
  if (queued > 0 && queued <= log.queued)
    throw new Broken('inbox', `Message ${queued} has begun a run, or a later one has.`)
  const from =
    ended.length > 0
      ? ended.map(({ session: usage, numbered, loaded }) => ({ usage, numbered, loaded }))
      : [log.session]
  const setup = { ...input, features: { ...input.features, marks } }
  const runs = from.flatMap(({ usage, numbered, loaded }) =>
    settle(begin(setup, usage, numbered, loaded), input.now),
  )
  const ids = new Set(log.ids).add(input.runId)
  const past = [...log.past, ...ended]
  return { at, runs, past, ids, begun: log.begun + 1, told: 0, queued: Math.max(queued, log.queued) }
}

function judgeEvent(log: Standing, { at }: Entry, event: NonNullable<Entry['event']>): Partial<Standing> {
  if (log.runs.length === 0) throw new Broken('start', `${event.type} comes before any run has started.`)
  if (at < log.at) throw new Broken('time', `It is at ${at}, and the record before it at ${log.at}.`)
  if (event.now !== undefined && event.now !== at)
    throw new Broken('time', `Its event is of ${event.now}, and the record of ${at}.`)
  const { inbox, key } = event
  if (inbox !== undefined && inbox <= log.inbox)
    throw new Broken('inbox', `Message ${inbox} of the inbox, or a later one, has been taken before.`)
  if (key !== undefined && log.keys.has(key))
    throw new Broken('inbox', `The message with the key ${key} was taken.`)
  const runs = narrow(log.runs, (run) => take(run, { ...event, now: event.now ?? at }))
  return { runs, inbox: inbox ?? log.inbox, keys: key === undefined ? log.keys : new Set(log.keys).add(key) }
}

function judgeSnapshot(
  log: Standing,
  entry: Entry,
  state: StoredState,
  isPart: boolean,
  marks: boolean,
): Partial<Standing> {
  const seen = readRun(state, log.runs[0]?.setup.now ?? 0, marks)
  const { runs: begun = 0, inbox = 0, queued = 0 } = entry
  const read = { begun, inbox, queued, runs: [seen], ids: new Set(log.ids).add(seen.setup.runId) }
  if (isPart) return { ...read, isWhole: false }
  if (log.runs.length === 0) {
    if (log.isForked) return read
    throw new Broken('start', 'A snapshot comes before any run has started.')
  }
  const due = entry.selected === undefined ? log.runs : findReturned(log, seen)
  const past = entry.selected === undefined ? log.past : [...log.past, ...log.runs]
  if (due === null) return { ...read, past }
  narrow(due, (run) => {
    checkSnapshot(run, seen, state)
    return [run]
  })
  if (begun !== log.begun) throw new Broken('facts', `It has ${begun} runs, and the log ${log.begun}.`)
  if (inbox !== log.inbox || queued !== log.queued)
    throw new Broken(
      'facts',
      `Its inbox ends with ${inbox} and ${queued}, the log’s with ${log.inbox} and ${log.queued}.`,
    )
  return { runs: [seen], past }
}

/** The runs that a session may return to when it is put back on a branch. Null: they ended before this part of the log. */
function findReturned(log: Standing, seen: Run): Run[] | null {
  const ended = [...log.past, ...log.runs].filter(
    (run) => hasEnded(run) && run.setup.runId === seen.setup.runId,
  )
  if (ended.length === 0 && (log.isForked || !log.isWhole)) return null
  if (ended.length === 0)
    throw new Broken('facts', `It returns to the run ${seen.setup.runId}, and no such run has ended.`)
  // Totals and numbers are those of all branches.
  return ended.flatMap((run) =>
    log.runs.map(({ session, numbered, loaded }) => ({
      ...run,
      session,
      loaded,
      numbered: Math.max(run.numbered, numbered),
    })),
  )
}

/** What is left possible. Where nothing is, the first run says why. */
function narrow(runs: Run[], onwards: (run: Run) => Run[]): Run[] {
  let first: Broken | undefined
  const left = runs.flatMap((run) => {
    try {
      return onwards(run)
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      first ??= error
      return []
    }
  })
  if (left.length === 0 && first) throw first
  return [...new Map(left.map((run) => [JSON.stringify({ ...run, setup: null }), run])).values()]
}

const createStanding = ({ at }: Entry): Standing => ({
  seq: 0,
  at,
  isForked: false,
  runs: [],
  past: [],
  isWhole: true,
  begun: 0,
  ids: new Set<string>(),
  told: 0,
  inbox: 0,
  queued: 0,
  session: { usage: nothing, numbered: 0, loaded: [] },
  keys: new Set<string>(),
})
