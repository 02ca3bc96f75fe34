import type { AgentContext, AgentMachineEvent } from '../../../../machines/agent/context.js'
import { formatArguments, formatToolName } from '../../../core/format/format-call.js'
import { formatWakeTime } from '../../../core/base/clock.js'
import { listSessions } from '../../../core/run/delete-sessions.js'
import {
  formatAgo,
  formatCount,
  formatMessageText,
  type Paint,
  shorten,
} from '../../../core/format/format-words.js'
import { formatRunSummary } from '../../../core/format/run-summary.js'
import { clearRecords } from '../../../core/sessions/clear-records.js'
import { openRecord, type RecordContent } from '../../../core/sessions/log/log-record.js'
import {
  formatStateValue,
  isMachineSession,
  type MachineRecord,
  readMachineRecord,
} from '../../../core/sessions/log/machine-record.js'
import {
  readSessionAt,
  type SessionSnapshot,
  toSessionSnapshot,
} from '../../../core/sessions/replay-session.js'
import type { ListedSession, LogRecord, SessionStore } from '../../../core/sessions/store/store.js'
import { type CliIO, defineCommand } from '../../command.js'
import { excludeBoth, formatCarriedOptions, storeOption } from '../../options.js'
import { createOutputPaint, formatIsoTime, formatJsonLine, formatTimestamp } from '../../output.js'
import { formatErrorLine } from '../../renderer.js'
import { describeWait, formatResumeHint, isWorking } from '../../resume-hints.js'
import { checkRecordExists, withSession } from '../../session-store.js'
import { formatTranscript } from '../../transcript.js'

export const showCommand = defineCommand({
  name: 'sessions show',
  about: 'Shows a session: its messages, usage, state and pending calls.',
  positional: 'ID',
  options: {
    at: { value: 'N', min: 1, about: 'show its state after record N of its log' },
    events: { about: 'list its log records: number, time, type and the start of the content' },
    json: {
      about: 'print its log records, one line of JSON each, without content that shields have not cleared',
    },
    ...storeOption,
  },
  notes: [
    'Examples:\n' +
      '  statewright sessions show 6f1c…\n' +
      '  statewright sessions show 6f1c… --events\n' +
      '  statewright sessions show 6f1c… --at 12\n' +
      '  statewright sessions show 6f1c… --json | jq -c .event.type',
    'The lines of --json follow the schema statewright/records.schema.json.',
  ],
  execute: async (parsed, io) => {
    const { at, events, json, store: url } = parsed.values
    excludeBoth(parsed.values, 'events', 'json', 'Choose one output format')
    await withSession(parsed, io, async (store, entry) => {
      checkRecordExists(at, entry)
      const { id } = entry
      const form = json ? 'json' : events ? 'events' : 'state'
      if (isMachineSession(entry)) await showMachine(store, entry, { at, form }, io)
      else if (form === 'json') await showJson(store, id, at, io)
      else if (form === 'events') await showEvents(store, id, at, io)
      else {
        const folded = await readSessionAt(store, id, at)
        showSession(entry, { ...toSessionSnapshot(folded), parent: folded.parent }, url, io)
      }
    })
  },
})

/** Reads all records, because later records can determine how much of a record is shown. */
async function showJson(store: SessionStore, id: string, to: number | undefined, io: CliIO): Promise<void> {
  const { records, problem } = clearRecords(await store.read(id), id)
  for (const record of records)
    if (to === undefined || record.seq <= to) io.stdout.write(formatJsonLine(record))
  if (problem !== null && (to === undefined || to > records.length)) throw problem
}

/** Shows the records up to a damaged one, then throws its error. */
async function showEvents(store: SessionStore, id: string, to: number | undefined, io: CliIO): Promise<void> {
  const records = await store.read(id, to === undefined ? {} : { to })
  let last = 0
  for (const record of records) {
    const entry = openRecord(record, last, id)
    const kind = entry.type === 'event' ? entry.event.type.replace(/^xstate\./, '') : entry.type
    const head = formatLogHead(record.seq, record.at, kind)
    const room = Math.max(40, (io.stdout.columns ?? 160) - head.length - 2)
    io.stdout.write(`${`${head}  ${shorten(formatContent(entry), room)}`.trimEnd()}\n`)
    last = record.seq
  }
}

/** `parent` is the session that has called a sub-agent. */
type ShownSession = SessionSnapshot & { parent: string | undefined }

function showSession(
  entry: ListedSession,
  replayed: ShownSession,
  store: string | undefined,
  io: CliIO,
): void {
  const paint = createOutputPaint(io)
  const width = Math.max(40, io.stdout.columns ?? 100)
  const transcript = formatTranscript(replayed.messages, { paint, width })
  const status = formatStatus(entry, replayed, store, paint)
  io.stdout.write(
    `${formatHead(entry, replayed, paint)}\n${transcript}${transcript === '' ? '' : '\n'}${status}`,
  )
}

function formatStatus(
  entry: ListedSession,
  replayed: ShownSession,
  store: string | undefined,
  paint: Paint,
): string {
  const { seq, run, usage, snapshot, parent } = replayed
  const { id, head: last, holder } = entry
  const carried = formatCarriedOptions({ store })
  if (run === null || snapshot === null)
    return `No run has started. Start one: statewright run --session ${id}${carried} 'Your prompt'\n`
  const { limits } = (snapshot.context as AgentContext).config
  const runNumber = seq === last ? entry.summary?.runs : 1
  const summary = formatRunSummary({ ...run, usage }, limits, null, paint, runNumber)
  const head = `${formatErrorLine(run, paint)}${summary}  ${paint('dim', 'record')}  ${seq} of ${last}\n`
  if (seq < last)
    return `${head}This is an earlier state. To continue from it: statewright sessions fork ${id}${carried} --at ${seq}\n`
  if (holder !== null) return `${head}Working: ${shorten(holder, 200)}\n`
  const waits = run.resumable ? `${describeWait(run).replace(/^the/, 'The')}\n` : ''
  if (parent !== undefined)
    return `${head}${waits}It is a sub-agent of '${parent}'. Answer or continue that session: statewright sessions show ${parent}${carried}\n`
  if (isWorking(run)) return `${head}It was interrupted. Continue with: statewright resume ${id}${carried}\n`
  const next = formatResumeHint(run, carried)
  return head + waits + (next === null ? '' : `${next}\n`)
}

function formatContent(entry: RecordContent): string {
  switch (entry.type) {
    case 'opened': {
      const { name, state, forkedFrom } = entry
      const from = forkedFrom ? `from ${forkedFrom.sessionId} at ${forkedFrom.seq}` : ''
      const copied = state ? `with ${formatCount(state.messages.length, 'message')}` : ''
      return [name ?? '', from, copied].filter((part) => part !== '').join(', ')
    }
    case 'start':
      if (entry.input.features.inputShields) return pendingReviewNote
      return entry.input.input.map((message) => formatMessageText(message)).join(' ')
    case 'event':
      return entry.event.withheld ? pendingReviewNote : formatEventContent(entry.event)
    default:
      return JSON.stringify(entry.state.value)
  }
}

const pendingReviewNote = '(not cleared by shields)'

function formatEventContent(event: AgentMachineEvent): string {
  switch (event.type) {
    case 'xstate.done.actor.model':
    case 'xstate.done.actor.conclusion': {
      const { text, toolCalls } = event.output.response
      const calls = toolCalls.map(
        ({ function: call }) => `→ ${formatToolName(call.name)}(${formatArguments(call.arguments, 80)})`,
      )
      return [text, ...calls].filter((part) => part !== '').join(' ')
    }
    case 'xstate.error.actor.model':
    case 'xstate.error.actor.conclusion':
      return `${event.error.code}: ${event.error.message}`
    case 'TOOL_RESULT':
      return `${event.callId} ${event.result.status}: ${event.result.content}`
    case 'STORE_FAILED':
      return `${event.failure.code}: ${event.failure.message}`
    case 'REPLY':
      return event.messages.map((message) => formatMessageText(message)).join(' ')
    default: {
      // People do not need the fingerprint.
      const loose = event as AgentMachineEvent & { now?: number; fingerprint?: string }
      const { type: _type, now: _now, fingerprint: _fingerprint, ...rest } = loose
      return Object.values(rest)
        .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
        .join(' ')
    }
  }
}

function formatHead(
  { id, createdAt, updatedAt, summary }: ListedSession,
  { name }: Pick<SessionSnapshot, 'name'>,
  paint: Paint,
): string {
  const listedTitle = summary?.title ?? name ?? ''
  const title = listedTitle === '' || listedTitle === id ? '' : ` · ${shorten(listedTitle, 80)}`
  const when = `created ${formatTimestamp(createdAt)} UTC, written ${formatAgo(updatedAt, Date.now())}`
  return `${paint('bold', `Session ${id}${title}`)}\n${paint('dim', when)}\n`
}

/** Formats the head of a line for a record: its number (for `--at`), time, and type. */
function formatLogHead(seq: number, at: number, kind: string): string {
  const when = (formatIsoTime(at) ?? '?').slice(0, 23).replace('T', ' ').padEnd(23)
  return `${String(seq).padStart(5)}  ${when}  ${shorten(kind, 40).padEnd(18)}`
}

/** Shows a machine's session. Its records contain the states, so the machine itself is not needed. */
async function showMachine(
  store: SessionStore,
  entry: ListedSession,
  { at, form }: { at: number | undefined; form: 'state' | 'events' | 'json' },
  io: CliIO,
): Promise<void> {
  const { id } = entry
  const records = await store.read(id, at === undefined ? {} : { to: at })
  const open = (record: LogRecord): MachineRecord => readMachineRecord(record, id)
  if (form === 'state') {
    const last = records.at(-1)
    if (last) await showMachineState(store, entry, { seq: last.seq, ...open(last) }, io)
    return
  }
  const width = io.stdout.columns ?? 160
  for (const record of records) {
    const { seq, at: time } = record
    if (form === 'json') io.stdout.write(formatJsonLine({ seq, at: time, ...open(record) }))
    else io.stdout.write(`${formatMachineLine(record, open(record), width)}\n`)
  }
}

function formatMachineLine(
  { seq, at }: LogRecord,
  { event, state, refused }: MachineRecord,
  width: number,
): string {
  const { type, actorId: _actor, ...data } = event
  const head = formatLogHead(seq, at, type.replace(/^xstate\./, ''))
  const value = refused ? `refused: ${refused.code}` : `→ ${formatStateValue(state.value)}`
  const text = Object.keys(data).length > 0 ? `${value}  ${JSON.stringify(data)}` : value
  return `${head}  ${shorten(text, Math.max(40, width - head.length - 2))}`
}

async function showMachineState(
  store: SessionStore,
  entry: ListedSession,
  { seq, machine, state, refused }: MachineRecord & { seq: number },
  io: CliIO,
): Promise<void> {
  const paint = createOutputPaint(io)
  const children: string[] = []
  for await (const { id, summary } of listSessions(store, { parent: entry.id }))
    children.push(`${id} ${summary?.state ?? 'new'}`)
  const value = formatStateValue(state.value)
  const rows: readonly (readonly [string, string | null | undefined])[] = [
    ['machine', machine],
    ['state', state.status === 'active' ? value : `${value} (${state.status})`],
    ['context', JSON.stringify(state.context)],
    ['output', state.output === undefined ? undefined : JSON.stringify(state.output)],
    ['error', state.error === undefined ? undefined : JSON.stringify(state.error)],
    ['refused', refused && `${refused.code}: ${refused.message}`],
    ...Object.values(state.actors).map(({ src, at }) => ['runs', `${src}, since record ${at}`] as const),
    ...state.delays.map(({ event, at }) => ['waits', `${event.type} at ${formatWakeTime(at)}`] as const),
    ...children.map((child) => ['agent', child] as const),
    ['record', `${seq} of ${entry.head}`],
    ['holder', entry.holder],
  ]
  const lines = rows.flatMap(([name, text]) =>
    text == null ? [] : [`  ${paint('dim', name.padEnd(8))} ${shorten(text, 2000)}`],
  )
  io.stdout.write(`${formatHead(entry, {}, paint)}\n${lines.join('\n')}\n`)
}
