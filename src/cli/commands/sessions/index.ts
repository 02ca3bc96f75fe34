import { systemClock } from '../../../core/base/clock.js'
import { formatCount, shorten } from '../../../core/format/format-words.js'
import { deleteSession, renameSession } from '../../../core/sessions/delete-session.js'
import { forkSession } from '../../../core/sessions/fork-session.js'
import type { ListedSession } from '../../../core/sessions/store/store.js'
import { badUsageError, CliError, type CliIO, type CommandGroup, defineCommand } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { storeOption } from '../../options.js'
import { openTerminalPrompt } from '../../prompt.js'
import { checkRecordExists, findSession, missingSession, withSessionStore } from '../../session-store.js'
import { checkCommand } from './check.js'
import { exportCommand } from './export.js'
import { listCommand } from './list.js'
import { showCommand } from './show.js'

const renameCommand = defineCommand({
  name: 'sessions rename',
  about: "Sets a session's title, even while a run is active.",
  positional: 'ID [TITLE…]',
  missing: missingSession,
  options: {
    default: { about: "restore the default title: the session's name, or its first message" },
    ...storeOption,
  },
  notes: ["Example:\n  statewright sessions rename 6f1c… 'The trip to Lisbon'"],
  execute: async ({ positionals: [id = '', title, ...more], has, text }, io) => {
    if ((title === undefined) !== has('default') || more.length > 0)
      throw badUsageError(
        "Pass one title in quotes: statewright sessions rename ID 'A title', or --default to restore the default.",
        'TITLE',
      )
    await withSessionStore(text('store'), io, async (store) => {
      const { id: found } = await findSession(store, id)
      await renameSession(store, found, title ?? null)
      io.stdout.write(title === undefined ? `${found} has its default title.\n` : `Renamed ${found}.\n`)
    })
  },
})

const forkCommand = defineCommand({
  name: 'sessions fork',
  about: "Forks a session at one of its records, and prints the new session's id.",
  positional: 'ID',
  missing: missingSession,
  options: {
    at: { value: 'N', min: 1, about: 'fork after record N of its log (default: after the last)' },
    ...storeOption,
  },
  notes: [
    'The original session does not change. To list its record numbers: statewright sessions show ID --events',
    'Example:\n  statewright resume "$(statewright sessions fork 6f1c… --at 12)" "Try again."',
  ],
  execute: async ({ positionals: [id = ''], number, text }, io) => {
    const at = number('at')
    await withSessionStore(text('store'), io, async (store) => {
      const session = await findSession(store, id)
      checkRecordExists(at, session)
      io.stdout.write(`${await forkSession(store, session.id, at, systemClock)}\n`)
    })
  },
})

const deleteCommand = defineCommand({
  name: 'sessions delete',
  about: 'Deletes a session and its sub-agents, after confirmation.',
  positional: 'ID',
  missing: missingSession,
  options: { yes: { short: 'y', about: 'do not ask' }, ...storeOption },
  notes: ['This cannot be undone. To make a copy first: statewright sessions export ID'],
  execute: async ({ positionals: [id = ''], has, text }, io) => {
    if (!has('yes') && !(io.stdin.isTTY === true && io.stdout.isTTY === true))
      throw badUsageError(
        'There is no terminal to ask for confirmation. Use --yes to delete the session.',
        '--yes',
      )
    return withSessionStore(text('store'), io, async (store) => {
      const entry = await findSession(store, id)
      if (!has('yes') && !(await confirmDelete(entry, io))) {
        io.stdout.write('Nothing was deleted.\n')
        return io.signal.aborted ? exitCodes.cancelled : exitCodes.completed
      }
      const count = await deleteSession(store, systemClock, entry.id)
      await store.purge?.()
      if (count === 0)
        throw new CliError('unknown_session', `Session '${id}' was deleted by another process.`, id)
      const below = count === 1 ? '' : `, and ${formatCount(count - 1)} of its sub-agents`
      io.stdout.write(`Deleted ${id}${below}.\n`)
      return exitCodes.completed
    })
  },
})

async function confirmDelete({ id, head, summary }: ListedSession, io: CliIO): Promise<boolean> {
  const { ask, close } = openTerminalPrompt(io)
  const title = shorten(summary?.title ?? '', 60)
  try {
    const answer = await ask(
      `Delete session ${id}${title && ` (${title})`} with its ${formatCount(head)} records? (y)es, (n)o: `,
    )
    return /^y(es)?$/i.test(answer ?? '')
  } finally {
    close()
  }
}

export const sessionsCommands: CommandGroup = {
  name: 'sessions',
  about: 'Lists, shows, exports, forks, deletes and checks stored sessions.',
  commands: [
    listCommand,
    showCommand,
    renameCommand,
    exportCommand,
    forkCommand,
    deleteCommand,
    checkCommand,
  ],
}
