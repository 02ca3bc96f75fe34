import { formatWakeTime } from '../../../core/base/clock.js'
import { type AgentState, type Reason, isWorkState } from '../../../../machines/agent/run-result.js'
import type { ListOptions } from '../../../core/sessions/store/list-options.js'
import {
  type Paint,
  type Style,
  formatCount,
  formatMoney,
  shorten,
  formatAgo,
} from '../../../core/format/format-words.js'
import { getStateStyle } from '../../../core/format/run-summary.js'
import { readSessionAt } from '../../../core/sessions/replay-session.js'
import { getListedTitle } from '../../../core/sessions/listed-title.js'
import { createSummary } from '../../../core/sessions/session-summary.js'
import { StoreError, type StoreErrorCode } from '../../../core/sessions/store/store-error.js'
import type { ListedSession, SessionStore, SessionSummary } from '../../../core/sessions/store/store.js'
import { badUsageError } from '../../cli-error.js'
import type { CliIO, Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions, parseTag, parseWholeNumber } from '../../parse-options.js'
import { formatJsonLine } from '../../render/json-renderer.js'
import { createPaint, wantsColor } from '../../render/paint.js'
import { formatIsoTime } from '../../render/format-time.js'
import { sessionOptionSpecs } from './session-options.js'

const defaultLimit = 20

const options = {
  json: { about: 'print one line of JSON for each session' },
  limit: { value: 'N', about: `how many, newest first; 0 is all (default: ${defaultLimit})` },
  prefix: { value: 'TEXT', about: 'only sessions whose ids begin with it and a colon' },
  tag: { value: 'NAME=VALUE', about: 'only sessions with this tag; may be repeated' },
  children: { about: 'the sessions of sub-agents, too' },
  ...sessionOptionSpecs,
}

export const listCommand: Command = {
  name: 'sessions list',
  about: 'Lists the stored sessions, the last written first.',
  positional: '',
  options,
  notes: ["The run of an 'interrupted' session was at work when its process ended: statewright resume ID."],
  execute: async (args, io) => {
    const { positionals, has, text, all } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    const limit = parseWholeNumber('--limit', text('limit'), 0) ?? defaultLimit
    const prefix = text('prefix')
    const tags = all('tag').map(parseTag)
    const asked: ListOptions = {
      ...(prefix !== undefined && { prefix }),
      ...(tags.length > 0 && { tags: Object.fromEntries(tags) }),
      children: has('children'),
    }
    await withSessionStore(text('store'), io, async (store) => {
      const entries = await store.list(asked)
      const shown = limit === 0 ? entries : entries.slice(0, limit)
      const rows: SessionInList[] = []
      for (const entry of shown) {
        // oxlint-disable-next-line no-await-in-loop -- however many there are, one log at a time is in memory
        const row = await readSessionRow(store, entry)
        if (row !== null) rows.push(row)
      }
      if (has('json')) for (const row of rows) io.stdout.write(formatJsonLine(withDates(row)))
      else showTable(rows, entries.length - shown.length, io)
    })
    return exitCodes.completed
  },
}

function withDates({ id, createdAt, updatedAt, wakeAt, ...rest }: SessionInList): object {
  const [created, updated] = [createdAt, updatedAt].map(formatIsoTime)
  const sleep = wakeAt === undefined ? {} : { wakeAt: formatIsoTime(wakeAt) }
  return { id, createdAt: created, updatedAt: updated, ...rest, ...sleep }
}

function showTable(rows: readonly SessionInList[], more: number, { stdout, env }: CliIO): void {
  if (rows.length === 0) {
    stdout.write('There are no sessions yet. Start one: statewright run "What changed last week?"\n')
    return
  }
  const paint = createPaint(wantsColor(stdout, env))
  stdout.write(formatSessionTable(rows, { now: Date.now(), width: stdout.columns ?? 160, paint }))
  if (more > 0) stdout.write(paint('dim', `${more} older: --limit 0 shows all.`) + '\n')
}

const columnHeads = ['session', 'state', 'when', 'messages', 'tokens', 'cost', 'title']
const numeric: ReadonlySet<string> = new Set(['messages', 'tokens', 'cost'])

/** The least width of titles, even on narrow terminals. */
const minTitleWidth = 20

/** A table of sessions: a header line, then one line each. */
function formatSessionTable(
  rows: readonly SessionInList[],
  { now, width, paint }: { now: number; width: number; paint: Paint },
): string {
  const cells = rows.map((row) => [
    shorten(row.id, 200),
    row.wakeAt === undefined ? row.state : `${row.state} until ${formatWakeTime(row.wakeAt)}`,
    formatAgo(row.updatedAt, now),
    formatCount(row.messages),
    formatCount(row.totalTokens),
    formatMoney(row.cost, '?'),
  ])
  const widths = columnHeads
    .slice(0, -1)
    .map((head, i) => Math.max(head.length, ...cells.map((line) => (line[i] ?? '').length)))
  const titleWidth = Math.max(minTitleWidth, width - widths.reduce((sum, each) => sum + each + 2, 0))
  const aligned = (line: readonly string[]): string[] =>
    line.map((cell, i) =>
      numeric.has(columnHeads[i] ?? '') ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    )
  const lines = rows.map((row, i) => {
    const [id = '', state = '', ...rest] = aligned(cells[i] ?? [])
    return [id, paint(chooseStyle(row.state), state), ...rest, shorten(row.title, titleWidth)].join('  ')
  })
  return [paint('dim', [...aligned(columnHeads.slice(0, -1)), 'title'].join('  ')), ...lines, ''].join('\n')
}

function chooseStyle(state: ListedState): Style {
  switch (state) {
    case 'interrupted':
      return 'yellow'
    case 'new':
      return 'dim'
    default:
      return state === state.toUpperCase()
        ? getStateStyle(state as Parameters<typeof getStateStyle>[0])
        : 'red'
  }
}

/**
 * - `interrupted`: its run was at work, and no process holds it
 * - `new`: no run has started · `corrupt_log` and other codes: why it cannot be read
 */
type ListedState = AgentState | 'interrupted' | 'new' | StoreErrorCode

/** A session in a list, with its current state. */
interface SessionInList extends Omit<SessionSummary, 'state'> {
  id: string
  state: ListedState
  reason: Reason | null
  createdAt: number
  updatedAt: number
  head: number
  holder: string | null
}

/** Reads the current state from the log: the summary in the store is as old as the last rest of a run. */
async function readSessionRow(store: SessionStore, entry: ListedSession): Promise<SessionInList | null> {
  const { summary, ...place } = entry
  try {
    const folded = await readSessionAt(store, entry.id)
    const { run, name, tags, parent, runs, state, definition } = folded
    const title = getListedTitle(summary, folded)
    if (run !== null) {
      const now = createSummary(run.context, { name, tags, parent, runs, definition })
      return { ...now, ...place, title, state: toListedState(now.state, entry.holder) }
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

/** The state of a run, given its own state and the holder of its session. */
function toListedState(state: AgentState | null, holder: string | null): AgentState | 'interrupted' {
  const isAtWork = state === null || isWorkState(state)
  return isAtWork && holder === null ? 'interrupted' : (state ?? 'RUNNING')
}

const emptySummary: Omit<SessionSummary, 'state'> = {
  title: '',
  reason: null,
  runs: 0,
  messages: 0,
  totalTokens: 0,
  cost: null,
}
