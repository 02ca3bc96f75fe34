import { renameSession } from '../../../core/sessions/rename-session.js'
import { badUsageError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { findSession } from '../../find-session.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions } from '../../parse-options.js'
import { parseSessionId, sessionOptionSpecs } from './session-options.js'

const options = {
  default: { about: 'take the title back: the name of the session, or the beginning of its first message' },
  ...sessionOptionSpecs,
}

export const renameCommand: Command = {
  name: 'sessions rename',
  about: 'Gives a session a title, which lists show. Also while a run works on it.',
  positional: 'ID TITLE',
  options,
  notes: ["Example:\n  statewright sessions rename 6f1c… 'The trip to Lisbon'"],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const [id = '', title, ...more] = positionals
    if ((title === undefined) !== has('default') || more.length > 0)
      throw badUsageError(
        "Give one title in quotes: statewright sessions rename ID 'A title', or --default to take it back.",
        'TITLE',
      )
    await withSessionStore(text('store'), io, async (store) => {
      const { id: found } = await findSession(store, parseSessionId([id]))
      await renameSession(store, found, title ?? null)
      io.stdout.write(title === undefined ? `${found} has its default title.\n` : `Renamed ${found}.\n`)
    })
    return exitCodes.completed
  },
}
