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
    about: 'a module whose default export is defineAgents({ … }), or a function of the store that returns it',
  },
  json: { about: 'print one line of JSON for each session' },
  ...sessionOptionSpecs,
}

export const checkCommand: Command = {
  name: 'sessions check',
  about: 'Checks which open sessions this version of your agents can resume.',
  positional: '',
  options,
  notes: [
    'Use it before a deployment: nothing runs, nothing is written. Exit codes: 0 all can be resumed, 1 some cannot.',
    'Example:\n  statewright sessions check --agents ./agents.mjs --store postgres://localhost/app',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    const module = text('agents')
    if (module === undefined) throw badUsageError('Which agents? Give --agents MODULE.', '--agents')
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
  const others = changed > 0 ? ` (${changed} of them with changed instructions, tools or model)` : ''
  return `${ok} of ${all} open sessions can be resumed here${others}.\n`
}
