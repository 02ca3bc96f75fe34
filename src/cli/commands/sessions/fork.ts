import { systemClock } from '../../../core/base/clock.js'
import { forkSession } from '../../../core/sessions/fork-session.js'
import { badUsageError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { findSession } from '../../find-session.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions, parseWholeNumber } from '../../parse-options.js'
import { parseSessionId, sessionOptionSpecs } from './session-options.js'

const options = {
  at: { value: 'N', about: 'fork after record N of its log (default: after the last)' },
  ...sessionOptionSpecs,
}

export const forkCommand: Command = {
  name: 'sessions fork',
  about:
    'Creates a new session from a record of another session, and prints its id. The other session does not change.',
  positional: 'ID',
  options,
  notes: [
    'The records are numbered in: statewright sessions show ID --events',
    'Example:\n  statewright resume "$(statewright sessions fork 6f1c… --at 12)" "Try it without the cache."',
  ],
  execute: async (args, io) => {
    const { positionals, text } = parseOptions(args, options)
    const id = parseSessionId(positionals)
    const at = parseWholeNumber('--at', text('at'), 1)
    await withSessionStore(text('store'), io, async (store) => {
      const { head } = await findSession(store, id)
      if (at !== undefined && at > head) {
        throw badUsageError(`--at: session '${id}' has ${head} records; there is no ${at}.`, '--at')
      }
      io.stdout.write(`${await forkSession(store, id, at, systemClock)}\n`)
    })
    return exitCodes.completed
  },
}
