import { isMachineSession, readMachineRecord } from '../../../core/sessions/log/machine-record.js'
import { type AgentState, type Reason, isActiveState } from '../../../../machines/agent/run-result.js'
import { formatWakeTime } from '../../../core/base/clock.js'
import {
  formatAgo,
  formatCount,
  formatMoney,
  shorten,
  type Style,
} from '../../../core/format/format-words.js'
import { getStateStyle } from '../../../core/format/run-summary.js'
import { createSummary, getListedTitle } from '../../../core/sessions/session-summary.js'
import { readSessionAt } from '../../../core/sessions/replay-session.js'
import { StoreError, type StoreErrorCode } from '../../../core/sessions/store/store-error.js'
import type { ListedSession, SessionStore, SessionSummary } from '../../../core/sessions/store/store.js'
import { type CliIO, defineCommand, parseTime } from '../../command.js'
import { readSelection, selectionOptions, storeOption } from '../../options.js'
import { createOutputPaint, formatIsoTime, formatJsonLine, formatTable } from '../../output.js'
import { describeStore, withSessionStore } from '../../session-store.js'

const defaultLimit = 20

export const listCommand = defineCommand({
  name: 'sessions list',
  about: 'Lists stored sessions, newest first.',
  options: {
    json: { about: 'print one line of JSON for each session' },
    limit: {
      value: 'N',
      min: 0,
      about: `the maximum number of sessions; 0 lists all (default: ${defaultLimit})`,
    },
    since: {
      value: 'TIME',
      about: 'only sessions written since this time: an age such as 12h or 7d, or a date with a time zone',
    },
    ...selectionOptions,
    children: { about: 'also list the sessions of sub-agents' },
    ...storeOption,
  },
  notes: [
    "An 'interrupted' session was running when its process ended. To continue it: statewright resume ID.",
  ],
  execute: async (parsed, io) => {
    const { limit = defaultLimit, since, children = false, json, store: url } = parsed.values
    const selection = readSelection(parsed)
    const isFiltered = since !== undefined || Object.keys(selection).length > 0
    await withSessionStore(url, io, async (store) => {
      const entries = await store.list({
        ...selection,
        ...(since !== undefined && { since: parseTime('--since', since, Date.now()) }),
        // Requests one more session to determine whether there are older ones.
        ...(limit > 0 && { limit: limit + 1 }),
        children,
      })
      const rows: SessionRow[] = []
      for (const entry of limit === 0 ? entries : entries.slice(0, limit)) {
        // Only one log is in memory at a time.
        const row = await readSessionRow(store, entry)
        if (row !== null) rows.push(row)
      }
      if (json) for (const row of rows) io.stdout.write(formatJsonLine(toJson(row)))
      else if (rows.length === 0) {
        const place = await describeStore(url, io)
        io.stdout.write(
          isFiltered
            ? `No sessions in ${place} match.\n`
            : `There are no sessions in ${place}. Start one: statewright run "What changed last week?"\n`,
        )
      } else showTable(rows, limit > 0 && entries.length > limit, io)
    })
  },
})

function toJson({ id, createdAt, updatedAt, wakeAt, ...rest }: SessionRow): object {
  const [created, updated] = [createdAt, updatedAt].map(formatIsoTime)
  const sleep = wakeAt === undefined ? {} : { wakeAt: formatIsoTime(wakeAt) }
  return { id, createdAt: created, updatedAt: updated, ...rest, ...sleep }
}

const heads = ['session', 'state', 'when', 'messages', 'tokens', 'cost', 'title']

function showTable(rows: readonly SessionRow[], hasMore: boolean, io: CliIO): void {
  const paint = createOutputPaint(io)
  const cells = rows.map((row) => toCells(row, Date.now()))
  const widths = heads
    .slice(0, -1)
    .map((head, i) => Math.max(head.length, ...cells.map((line) => line[i]?.length ?? 0)) + 2)
  const room = (io.stdout.columns ?? 160) - widths.reduce((sum, each) => sum + each, 0)
  const style = (cell: string, head: string, i: number): string =>
    head === 'state'
      ? paint(rows[i]?.value === undefined ? getListedStyle(rows[i]?.state ?? 'new') : 'bold', cell)
      : cell
  // Titles keep some width even on a narrow terminal.
  const lines = rows.map((row, i) => [...(cells[i] ?? []), shorten(row.title, Math.max(20, room))])
  io.stdout.write(formatTable(heads, lines, { paint, numeric: ['messages', 'tokens', 'cost'], style }))
  if (hasMore) io.stdout.write(`${paint('dim', 'There are older sessions: --limit 0 shows all.')}\n`)
}

function toCells(row: SessionRow, now: number): string[] {
  return [
    shorten(row.id, 200),
    row.wakeAt === undefined ? row.state : `${row.state} until ${formatWakeTime(row.wakeAt)}`,
    formatAgo(row.updatedAt, now),
    formatCount(row.messages),
    formatCount(row.totalTokens),
    formatMoney(row.cost, '?'),
  ]
}

function getListedStyle(state: ListedState): Style {
  if (state === 'interrupted') return 'yellow'
  if (state === 'new') return 'dim'
  return state === state.toUpperCase() ? getStateStyle(state as AgentState) : 'red'
}

/** `interrupted`: active, without a lease holder. `new`: not started. Also error codes and machine states. */
type ListedState = AgentState | 'interrupted' | 'new' | StoreErrorCode | (string & {})

interface SessionRow extends Omit<SessionSummary, 'state'> {
  id: string
  state: ListedState
  reason: Reason | null
  createdAt: number
  updatedAt: number
  head: number
  holder: string | null
}

/** Reads the current state from the log, because the summary in the store dates from the run's last rest. */
async function readSessionRow(store: SessionStore, entry: ListedSession): Promise<SessionRow | null> {
  const { summary, ...place } = entry
  try {
    if (summary && isMachineSession({ summary })) {
      const [last] = (await store.read(entry.id, { from: 'snapshot' })).slice(-1)
      if (last) readMachineRecord(last, entry.id)
      return last ? { ...summary, ...place, state: summary.value ?? 'new' } : null
    }
    const folded = await readSessionAt(store, entry.id)
    const { run, name, tags, parent, runs, state, definition } = folded
    const title = getListedTitle(summary, folded)
    if (run !== null) {
      const now = createSummary(run.context, { name, tags, parent, runs, definition })
      const isInterrupted = isActiveState(now.state) && entry.holder === null
      return { ...now, ...place, title, state: isInterrupted ? 'interrupted' : (now.state ?? 'RUNNING') }
    }
    const [messages, { totalTokens, cost }] = [state.messages.length, state.usage]
    const named = { ...(name !== undefined && { name }), title }
    return { ...emptySummary, ...place, ...named, messages, totalTokens, cost, state: 'new' }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // The session was deleted in the meantime.
    if (error.code === 'unknown_session') return null
    return { ...(summary ?? emptySummary), ...place, state: error.code }
  }
}

const emptySummary: Omit<SessionSummary, 'state'> = {
  title: '',
  reason: null,
  runs: 0,
  messages: 0,
  totalTokens: 0,
  cost: null,
}
