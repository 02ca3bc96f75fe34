import { toCanonicalJson } from './canonical-json.js'
import { isMachineSession } from '../core/sessions/log/machine-record.js'
import { expectArgument, listRule } from '../core/base/values.js'
import { foldRecords, toMachineState } from '../core/sessions/fold-session.js'
import { completeInput, restoreState } from '../core/sessions/log/stored-state.js'
import { logVersion, openRecord, type RecordContent } from '../core/sessions/log/log-record.js'
import { listSessions } from '../core/run/delete-sessions.js'
import type { LogRecord, SessionStore } from '../core/sessions/store/store.js'
import { details } from './reference-model/details.js'
import {
  Broken,
  judgeLog,
  type LogEntry,
  type LogViolation,
  readRun,
  toViolation,
} from './reference-model/judge-log.js'
import { StoreError } from '../core/sessions/store/store-error.js'
import { type Json, isEnd, isRest } from '../../spec/run.js'

/**
 * Checks a stored session against the reference model, which is an independent specification of the loop. Takes the
 * records from `store.read`, either complete or starting with a snapshot, and also checks the state restored from them.
 * Returns the first record that violates a rule, or null.
 *
 * @example
 * const violation = checkSessionLog(await memoryStore().read('ann'))
 * if (violation) console.log(`Record ${violation.seq}: ${violation.message} (${violation.law})`)
 * @throws {StoreError} `corrupt_log` for a record that is damaged, `newer_log`, `unknown_state`
 * @throws {UsageError} `invalid_argument` if the argument is not a list of records
 */
export function checkSessionLog(
  records: readonly LogRecord[],
  sessionId = 'of this log',
): LogViolation | null {
  expectArgument('checkSessionLog(records)', records, recordsRule)
  const entries: LogEntry[] = []
  let after = (records[0]?.type === 'snapshot' ? records[0].seq : 1) - 1
  for (const record of records) {
    const content = openRecord(record, after, sessionId)
    after = record.seq
    entries.push({ ...complete(content), seq: record.seq, at: record.at, type: content.type })
  }
  let facts: LogViolation | null = null
  /** The restored state is read only if the log itself is valid. */
  function* listEntries(): Iterable<LogEntry> {
    yield* entries
    facts = checkFacts(entries)
    const end = facts ? null : readEnd(records, sessionId)
    if (!end) return
    yield end
    facts = checkFacts([...entries, end])
  }
  return judgeLog(listEntries(), details) ?? facts
}

const recordsRule = listRule("a session's records, as store.read() returns them")

/** Restores the parts that the log omits. */
function complete(content: RecordContent): object {
  if (content.type === 'start') return { ...content, input: completeInput(content.input) }
  return content.type === 'snapshot' ? { ...content, state: restoreState(content.state) } : content
}

/** The state after all records, in the form of the next snapshot. Null if no run has started. */
function readEnd(records: readonly LogRecord[], sessionId: string): LogEntry | null {
  const { run, head, at, runs, inbox, queued } = foldRecords(records, sessionId)
  if (run === null) return null
  return {
    type: 'snapshot',
    seq: head + 1,
    at,
    version: logVersion,
    runs,
    inbox,
    queued,
    state: toMachineState(run),
  }
}

export interface LogFault {
  seq: number | null
  /** The rule's name, or `corrupt_log`, `newer_log`, `unknown_state`. */
  rule: string
  message: string
  law: string | null
}

export interface CheckedLog {
  session: string
  violation: LogFault | null
}

const pageSize = 500

/** Checks the logs of all sessions in a store one by one, including the logs of sub-agents. Read-only. */
export async function* checkSessionLogs(store: SessionStore): AsyncGenerator<CheckedLog> {
  for await (const entry of listSessions(store, { children: true }, pageSize)) {
    if (isMachineSession(entry)) continue
    const { id } = entry
    const records = await store.read(id)
    // The session was deleted in the meantime or never written.
    if (records.length > 0) yield { session: id, violation: findFault(() => checkSessionLog(records, id)) }
  }
}

function findFault(check: () => LogViolation | null): LogFault | null {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { seq: null, rule: error.code, message: error.message, law: null }
  }
}

const laws = {
  sequence: 'Records are numbered consecutively.',
  opening: 'A log starts with its opening record, and a partial log with a snapshot.',
  time: 'Time never goes backwards within a run.',
  count: 'The number of emitted events never decreases within a run.',
  start: 'A run starts with a unique id.',
  inbox: 'An inbox message, or a message with a key, is applied once.',
  withheld: 'Content pending shield review is marked as withheld.',
  facts: "A snapshot matches its session's log.",
  transcript: 'In a transcript, ids increase, and each call is followed by one result in call order.',
}

type Standing = ReturnType<typeof begin>

const begin = ({ at }: Json) => ({
  seq: 0,
  at: at as number,
  eventCount: 0,
  /** Run ids, newest last. Incomplete if the log starts with a snapshot. */
  runs: [] as string[],
  begun: 0,
  inbox: 0,
  queued: 0,
  keys: new Set<string>(),
  isWhole: true,
  setup: null as Json,
})

const broken = (law: keyof typeof laws, message: string): Broken =>
  new Broken(`${law}: ${laws[law]}`, message)

/** The first record that contradicts another record or itself. */
export function checkFacts(entries: Iterable<LogEntry>): LogViolation | null {
  let log: Standing | null = null
  for (const entry of entries) {
    try {
      log = readEntry(log, entry)
    } catch (error) {
      return toViolation(entry.seq, error)
    }
  }
  return null
}

function readEntry(before: Standing | null, entry: Json): Standing {
  const { seq, at, type } = entry
  const isPart = before === null && type === 'snapshot'
  const log = before ?? begin(entry)
  if (!isPart && seq !== log.seq + 1) throw broken('sequence', `Record ${seq} follows record ${log.seq}.`)
  if (type === 'opened' ? before !== null : before === null && !isPart)
    throw broken('opening', `A record of type '${type}' is not allowed here.`)
  const next = { ...log, seq, at, ...read(log, entry, isPart) }
  const eventCount = type === 'snapshot' ? 0 : next.eventCount
  if ((entry.lastEventSeq ?? eventCount) < eventCount)
    throw broken('count', `The number falls from ${eventCount} to ${entry.lastEventSeq}.`)
  return { ...next, eventCount: entry.lastEventSeq ?? eventCount }
}

function read(log: Standing, entry: Json, isPart: boolean): Partial<Standing> {
  if (entry.type === 'opened') return { isWhole: entry.forkedFrom === undefined }
  if (entry.type === 'start') return readStart(log, entry)
  return entry.type === 'event' ? readEvent(log, entry) : readSnapshot(log, entry, isPart)
}

function readStart(log: Standing, { input, queued = 0 }: Json): Partial<Standing> {
  if (log.runs.includes(input.runId)) throw broken('start', `The run ${input.runId} already exists.`)
  if (queued > 0 && queued <= log.queued)
    throw broken('inbox', `Message ${queued} or a later message has already started a run.`)
  const runs = [...log.runs, input.runId]
  return { setup: input, runs, begun: log.begun + 1, eventCount: 0, queued: Math.max(queued, log.queued) }
}

function readEvent(log: Standing, { at, event }: Json): Partial<Standing> {
  const { type, now = at, inbox = 0, key, tools } = event
  if (at < log.at) throw broken('time', `The time is ${at}, but the previous record has ${log.at}.`)
  if (now !== at) throw broken('time', `The event has the time ${now}, but the record has ${at}.`)
  if (inbox > 0 && inbox <= log.inbox)
    throw broken('inbox', `Message ${inbox} of the inbox, or a later message, was already delivered.`)
  if (key !== undefined && log.keys.has(key))
    throw broken('inbox', `The message with the key ${key} was already applied.`)
  if (!event.withheld && isUncleared(event, log.setup?.features ?? {}))
    throw broken('withheld', `${type} is not marked.`)
  const setup =
    type === 'RESUMED' && tools
      ? { ...log.setup, tools }
      : type === 'HANDED_OFF'
        ? { ...log.setup, handed: { ...log.setup?.handed, [event.to]: tools } }
        : log.setup
  const keys = key === undefined ? log.keys : new Set(log.keys).add(key)
  return { setup, inbox: Math.max(inbox, log.inbox), keys }
}

function isUncleared({ type, output, arguments: edited, why, memo }: Json, features: Json): boolean {
  const { inputShields, outputShields, callShields, resultShields } = features
  if (/done\.actor\.(model|conclusion)$/.test(type))
    return outputShields || (callShields && output.response.toolCalls.length > 0)
  if (type === 'APPROVE') return callShields && edited !== undefined
  if (type === 'REJECT') return (inputShields || resultShields) && why !== ''
  if (type === 'TOOL_RESULT' || type === 'TOOL_OUTPUT') return resultShields
  if (type === 'CHILD_WAITING') return resultShields && memo !== undefined
  return (type === 'STEER' || type === 'REPLY') && inputShields
}

function readSnapshot(log: Standing, entry: Json, isPart: boolean): Partial<Standing> {
  const { runs: begun = 0, inbox = 0, queued = 0, state, selected } = entry
  const { context } = state
  const seen = { begun, inbox, queued, setup: withHandoffs(context), runs: [...log.runs, context.runId] }
  checkTranscript(context, isRest(readRun(state).place))
  if (isPart) return { ...seen, isWhole: false }
  if (log.runs.length === 0) {
    if (!log.isWhole) return seen
    throw broken('facts', 'A snapshot comes before the first run.')
  }
  const compare = (what: string, is: unknown, due: unknown): void => {
    const [one, other] = [toCanonicalJson(is), toCanonicalJson(due)]
    if (one !== other) throw broken('facts', `The ${what} is ${one}, but the log has ${other}.`)
  }
  if (selected === undefined) {
    compare('run', context.runId, log.runs.at(-1))
    for (const key of ['config', 'features']) compare(key, context[key], log.setup?.[key])
    const handed = context.speaker && log.setup?.handed?.[context.speaker]
    const isHanded = toCanonicalJson(context.tools) === toCanonicalJson(handed)
    compare('tools', context.tools, isHanded ? handed : log.setup?.tools)
  } else if (log.isWhole && !(log.runs.includes(context.runId) && isEnd(String(state.value))))
    throw broken('facts', `The record returns to the run ${context.runId}, but no such run has ended.`)
  compare('number of runs', begun, log.begun)
  compare('inbox', [inbox, queued], [log.inbox, log.queued])
  return { setup: withHandoffs(context, log.setup?.handed), runs: seen.runs }
}

/** Adds the tools of agents after a handoff, including pending handoffs. */
function withHandoffs(context: Json, before?: Json): Json {
  const pending = context.calls.flatMap(({ handoff }: Json) => (handoff ? [[handoff.to, handoff.tools]] : []))
  return { ...context, handed: { ...before, ...Object.fromEntries(pending) } }
}

/** Checks a transcript. During a batch, results are complete only while the run rests. */
function checkTranscript({ messages, calls, batchAt, lastMessageNumber }: Json, isResting: boolean): void {
  let last = 0
  for (const [at, { id, role, tool_calls: toolCalls = [] }] of messages.entries()) {
    const number = Number(/^m(\d+)$/.exec(id)?.[1] ?? last + 1)
    if (number <= last || number > lastMessageNumber)
      throw broken(
        'transcript',
        `Message ${id} follows m${last}, but lastMessageNumber is ${lastMessageNumber}.`,
      )
    last = number
    if (role !== 'assistant') continue
    const after: Json[] = messages.slice(at + 1)
    const results = after
      .slice(0, after.findIndex((one) => one.role !== 'tool') >>> 0)
      .map((one) => one.tool_call_id)
    const isOpen = calls.length > 0 && at === batchAt
    const isDue = (id: string): boolean =>
      !isOpen ||
      (isResting ? calls.some((call: Json) => call.id === id && call.result) : results.includes(id))
    const due = toolCalls.map((call: Json) => call.id).filter(isDue)
    if (results.join() !== due.join())
      throw broken(
        'transcript',
        `The calls of ${id} are ${due.join()}, but its results are ${results.join()}.`,
      )
  }
}
