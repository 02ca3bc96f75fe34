import { shorten } from '../../core/format/format-words.js'
import { badUsageError, CliError } from '../cli-error.js'
import type { Command, CommandGroup } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { withSessionStore } from '../open-session-store.js'
import { parseOptions } from '../parse-options.js'
import { formatIsoTime, formatTimestamp } from '../render/format-time.js'
import { formatJsonLine } from '../render/json-renderer.js'
import { createPaint, wantsColor } from '../render/paint.js'
import type { Schedule } from '../../fleet/schedule.js'
import { sessionOptionSpecs } from './sessions/session-options.js'

const listOptions = {
  json: { about: 'print one line of JSON for each schedule' },
  ...sessionOptionSpecs,
}

const listCommand: Command = {
  name: 'schedules list',
  about: 'Lists the stored schedules.',
  positional: '',
  options: listOptions,
  notes: [
    "A program adds schedules with schedule() and carries them out with createScheduler(), of 'statewright/fleet'. The sessions\n" +
      'of a schedule are: statewright sessions list --tag schedule=ID',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, listOptions)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    const { listSchedules } = await import('../../fleet/schedule.js')
    await withSessionStore(text('store'), io, async (store) => {
      const schedules = await listSchedules(store)
      if (has('json'))
        for (const { nextAt, ...rest } of schedules)
          io.stdout.write(formatJsonLine({ ...rest, nextAt: formatIsoTime(nextAt) }))
      else if (schedules.length === 0) io.stdout.write('There are no schedules.\n')
      else {
        const paint = createPaint(wantsColor(io.stdout, io.env))
        const [head = '', ...lines] = formatTable(schedules)
        io.stdout.write(`${[paint('dim', head), ...lines].join('\n')}\n`)
      }
    })
    return exitCodes.completed
  },
}

const removeOptions = sessionOptionSpecs

const removeCommand: Command = {
  name: 'schedules remove',
  about: 'Removes a schedule. Sessions that it has begun go on.',
  positional: 'ID',
  options: removeOptions,
  notes: ['A program that still calls schedule() with this id adds it again.'],
  execute: async (args, io) => {
    const { positionals, text } = parseOptions(args, removeOptions)
    const [id, ...more] = positionals
    if (id === undefined || more.length > 0)
      throw badUsageError("Which schedule? Give one id: 'statewright schedules list' shows them.", 'ID')
    const { removeSchedule } = await import('../../fleet/schedule.js')
    return withSessionStore(text('store'), io, async (store) => {
      if (!(await removeSchedule(store, id)))
        throw new CliError('unknown_schedule', `There is no schedule '${id}'.`, id)
      io.stdout.write(`Removed ${id}.\n`)
      return exitCodes.completed
    })
  },
}

export const schedulesCommands: CommandGroup = {
  name: 'schedules',
  about: 'Lists and removes schedules.',
  commands: [listCommand, removeCommand],
}

function formatTable(schedules: readonly Schedule[]): string[] {
  const rows = schedules.map(({ id, agent, cron, everyMs, timezone, nextAt }) => [
    id,
    agent,
    cron === undefined ? `every ${(everyMs ?? 0) / 1000} s` : `${cron} (${timezone ?? 'UTC'})`,
    `${formatTimestamp(nextAt)} UTC`,
  ])
  // What the store has may come from anywhere.
  const table = [
    ['schedule', 'agent', 'when', 'next'],
    ...rows.map((row) => row.map((cell) => shorten(cell, 160))),
  ]
  const widths = [0, 1, 2].map((i) => Math.max(...table.map((row) => (row[i] ?? '').length)))
  return table.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
