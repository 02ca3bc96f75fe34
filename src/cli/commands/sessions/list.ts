import type { ListOptions } from '../../../core/sessions/store/list-options.js'
import { badUsageError } from '../../cli-error.js'
import type { CliIO, Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions, parseTag, parseWholeNumber } from '../../parse-options.js'
import { formatJsonLine } from '../../render/json-renderer.js'
import { createPaint, wantsColor } from '../../render/paint.js'
import { formatIsoTime } from '../../render/format-time.js'
import { formatSessionTable } from '../../render/session-table.js'
import { type SessionInList, readSessionRow } from '../../session-row.js'
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

function withDates({ id, createdAt, updatedAt, ...rest }: SessionInList): object {
  const [created, updated] = [createdAt, updatedAt].map(formatIsoTime)
  return { id, createdAt: created, updatedAt: updated, ...rest }
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
