import { type CheckedSession, checkSessions } from '../../../core/drive/check-sessions.js'
import { stripControls } from '../../../core/format/format-words.js'
import { badUsageError } from '../../cli-error.js'
import type { Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { loadAgents } from '../../load-agents.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions } from '../../parse-options.js'
import { formatJsonLine } from '../../render/json-renderer.js'
import { sessionOptionSpecs } from './session-options.js'

const options = {
  agents: {
    value: 'MODULE',
    about: 'a module whose default export is defineAgents({ … }), or makes it of a store',
  },
  json: { about: 'print one line of JSON for each session' },
  ...sessionOptionSpecs,
}

export const checkCommand: Command = {
  name: 'sessions check',
  about: 'Reads every session that has not ended on this code, and says which can go on.',
  positional: '',
  options,
  notes: [
    'For the moment before a deploy: nothing is run and nothing written. Exit codes: 0 all can go on, 1 some cannot.',
    'Example:\n  statewright sessions check --agents ./agents.mjs --store postgres://localhost/app',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`There is nothing to name here: '${positionals.join(' ')}'.`)
    const module = text('agents')
    if (module === undefined) throw badUsageError('Whose sessions? Give --agents MODULE.', '--agents')
    return withSessionStore(text('store'), io, async (store) => {
      const agents = await loadAgents(module, io.cwd, store)
      const count = { all: 0, ok: 0, changed: 0 }
      for await (const checked of checkSessions(agents, store)) {
        count.all += 1
        if (checked.ok) count.ok += 1
        if (checked.verdict === 'changed') count.changed += 1
        if (has('json')) io.stdout.write(formatJsonLine(checked))
        else if (!checked.ok) io.stdout.write(formatSession(checked))
      }
      if (!has('json')) io.stdout.write(formatTotals(count))
      return count.ok === count.all ? exitCodes.completed : exitCodes.error
    })
  },
}

function formatSession({ session, agent, verdict, why }: CheckedSession): string {
  return `${stripControls(session)}  ${stripControls(agent)}  ${verdict}: ${stripControls(why ?? '')}\n`
}

function formatTotals({ all, ok, changed }: { all: number; ok: number; changed: number }): string {
  const others = changed > 0 ? ` (${changed} of them with other instructions, tools or another model)` : ''
  return `${ok} of ${all} open sessions can go on here${others}.\n`
}
