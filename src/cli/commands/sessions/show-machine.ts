import { shorten } from '../../../core/format/format-words.js'
import { listSessions } from '../../../core/run/delete-sessions.js'
import { formatWakeTime } from '../../../core/base/clock.js'
import { type MachineRecord, openMachineRecord } from '../../../core/sessions/log/machine-record.js'
import type { ListedSession, LogRecord, SessionStore } from '../../../core/sessions/store/store.js'
import type { CliIO } from '../../command.js'
import { createOutputPaint, formatJsonLine } from '../../output.js'
import { formatHead, formatLogHead } from './session-lines.js'

/** How to show a `statewright/durable` session. */
export interface MachineView {
  /** The record to show. Defaults to the last. */
  at: number | undefined
  form: 'state' | 'events' | 'json'
}

/** Shows a machine's session. Its records contain the states, so the machine itself is not needed. */
export async function showMachine(
  store: SessionStore,
  entry: ListedSession,
  { at, form }: MachineView,
  io: CliIO,
): Promise<void> {
  const { id } = entry
  const records = await store.read(id, at === undefined ? {} : { to: at })
  const open = (record: LogRecord): MachineRecord => openMachineRecord(record, id) as MachineRecord
  if (form === 'state') {
    const last = records.at(-1)
    if (last) await showState(store, entry, { seq: last.seq, ...open(last) }, io)
    return
  }
  const width = io.stdout.columns ?? 160
  for (const record of records) {
    const { seq, at: time } = record
    if (form === 'json') io.stdout.write(formatJsonLine({ seq, at: time, ...open(record) }))
    else io.stdout.write(`${formatLine(record, open(record), width)}\n`)
  }
}

/** The number, time and event of a record, the state after it, and the data of the event. */
function formatLine({ seq, at }: LogRecord, { event, state, refused }: MachineRecord, width: number): string {
  const { type, actorId: _actor, ...data } = event
  const head = formatLogHead(seq, at, type.replace(/^xstate\./, ''))
  const value = refused ? `refused: ${refused.code}` : `→ ${formatValue(state.value)}`
  const text = Object.keys(data).length > 0 ? `${value}  ${JSON.stringify(data)}` : value
  return `${head}  ${shorten(text, Math.max(40, width - head.length - 2))}`
}

const formatValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

async function showState(
  store: SessionStore,
  entry: ListedSession,
  { seq, machine, state, refused }: MachineRecord & { seq: number },
  io: CliIO,
): Promise<void> {
  const paint = createOutputPaint(io)
  const children: string[] = []
  for await (const { id, summary } of listSessions(store, { parent: entry.id }))
    children.push(`${id} ${summary?.state ?? 'new'}`)
  const value = formatValue(state.value)
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
