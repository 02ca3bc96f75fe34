import { systemClock } from '../../../core/base/clock.js'
import { deleteSession } from '../../../core/sessions/delete-session.js'
import { openTerminalPrompt } from '../../terminal-prompt.js'
import { badUsageError, CliError } from '../../cli-error.js'
import type { CliIO, Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { findSession } from '../../find-session.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions } from '../../parse-options.js'
import { formatCount, shorten } from '../../../core/format/format-words.js'
import type { ListedSession } from '../../../core/sessions/store/store.js'
import { parseSessionId, sessionOptionSpecs } from './session-options.js'

const options = {
  yes: { short: 'y', about: 'do not ask' },
  ...sessionOptionSpecs,
}

export const deleteCommand: Command = {
  name: 'sessions delete',
  about: 'Deletes a session with all its records, and those of its sub-agents, after asking.',
  positional: 'ID',
  options,
  notes: ['This cannot be undone: statewright sessions export ID keeps a copy.'],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const id = parseSessionId(positionals)
    if (!has('yes') && !(io.stdin.isTTY === true && io.stdout.isTTY === true)) {
      throw badUsageError('There is no terminal to confirm at: give --yes to delete the session.', '--yes')
    }
    return withSessionStore(text('store'), io, async (store) => {
      const entry = await findSession(store, id)
      if (!has('yes') && !(await isSure(entry, io))) {
        io.stdout.write('Nothing was deleted.\n')
        return io.signal.aborted ? exitCodes.cancelled : exitCodes.completed
      }
      const deleted = await deleteSession(store, systemClock, id)
      await store.purge?.()
      if (deleted === 0)
        throw new CliError('unknown_session', `Session '${id}' was deleted by another program.`, id)
      const below = deleted === 1 ? '' : `, and ${formatCount(deleted - 1)} of its sub-agents`
      io.stdout.write(`Deleted ${id}${below}.\n`)
      return exitCodes.completed
    })
  },
}

async function isSure({ id, head, summary }: ListedSession, io: CliIO): Promise<boolean> {
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
