import { createPaint, shorten } from '../../../core/format/format-words.js'
import { listSessions } from '../../../core/run/delete-sessions.js'
import { formatWakeTime } from '../../../core/base/clock.js'
import { type MachineRecord, openMachineRecord } from '../../../core/sessions/log/machine-record.js'
import type { ListedSession, LogRecord, SessionStore } from '../../../core/sessions/store/store.js'
import type { CliIO } from '../../command.js'
import { formatJsonLine, wantsColor } from '../../output.js'
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
  if (form === 'json') {
    for (const record of records)
      io.stdout.write(formatJsonLine({ seq: record.seq, at: record.at, ...open(record) }))
    return
  }
  if (form === 'events') {
    const width = io.stdout.columns ?? 160
    for (const record of records) io.stdout.write(`${formatLine(record, open(record), width)}\n`)
    return
  }
  const last = records.at(-1)
  if (last) await showState(store, entry, { seq: last.seq, ...open(last) }, io)
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
  { stdout, env }: CliIO,
): Promise<void> {
  const paint = createPaint(wantsColor(stdout, env))
  const children: string[] = []
  for await (const { id, summary } of listSessions(store, { parent: entry.id }))
    children.push(`${id} ${summary?.state ?? 'new'}`)
  const rows: [string, string | undefined][] = [
    ['machine', machine],
    [
      'state',
      state.status === 'active' ? formatValue(state.value) : `${formatValue(state.value)} (${state.status})`,
    ],
    ['context', JSON.stringify(state.context)],
    ['output', state.output === undefined ? undefined : JSON.stringify(state.output)],
    ['error', state.error === undefined ? undefined : JSON.stringify(state.error)],
    ['refused', refused && `${refused.code}: ${refused.message}`],
    ...Object.values(state.actors).map(({ src, at }): [string, string] => [
      'runs',
      `${src}, since record ${at}`,
    ]),
    ...state.delays.map(({ event, at }): [string, string] => [
      'waits',
      `${event.type} at ${formatWakeTime(at)}`,
    ]),
    ...children.map((child): [string, string] => ['agent', child]),
    ['record', `${seq} of ${entry.head}`],
    ['holder', entry.holder ?? undefined],
  ]
  const lines = rows.flatMap(([name, text]) =>
    text === undefined ? [] : [`  ${paint('dim', name.padEnd(8))} ${shorten(text, 2000)}`],
  )
  stdout.write(`${formatHead(entry, {}, paint)}\n${lines.join('\n')}\n`)
}
