import { type CheckedSession, checkSessions } from '../../../core/drive/check-sessions.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import { checkSessionLogs, type LogFault } from '../../../testing/check-session-log.js'
import { stripControls } from '../../../core/format/format-words.js'
import { badUsageError } from '../../cli-error.js'
import type { CliIO, Command } from '../../command.js'
import { type ExitCode, exitCodes } from '../../exit-codes.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions } from '../../parse-options.js'
import { formatJsonLine } from '../../render/json-renderer.js'
import { loadAgents } from '../../load-agents.js'
import { sessionOptionSpecs } from './session-options.js'

const options = {
  agents: {
    value: 'MODULE',
    about: 'a module whose default export is defineAgents({ … }), or a function of the store that returns it',
  },
  spec: {
    about: 'check the log of every session, ended ones too, by the rules of the loop; takes no agents',
  },
  json: { about: 'print one line of JSON for each session' },
  ...sessionOptionSpecs,
}

export const checkCommand: Command = {
  name: 'sessions check',
  about:
    'Checks which open sessions this version of your agents can resume, or what the logs of all sessions say.',
  positional: '',
  options,
  notes: [
    'Use it before a deployment: nothing runs, nothing is written. Exit codes: 0 all can be resumed, 1 some cannot.',
    'With --spec: 0 every log keeps the rules of the loop, 1 some do not, or are damaged.',
    'Examples:\n  statewright sessions check --agents ./agents.mjs --store postgres://localhost/app\n' +
      '  statewright sessions check --spec',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    const module = text('agents')
    if (has('spec')) {
      if (module !== undefined)
        throw badUsageError('--spec looks at logs alone: give either --spec or --agents.', '--spec')
      return withSessionStore(text('store'), io, (store) => checkLogs(store, io, has('json')))
    }
    if (module === undefined)
      throw badUsageError('Which agents? Give --agents MODULE. Or check the logs alone: --spec.', '--agents')
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

/** Judges every log of a store by the reference model, one after the other. */
async function checkLogs(store: SessionStore, io: CliIO, isJson: boolean): Promise<ExitCode> {
  const count = { all: 0, ok: 0 }
  for await (const { session, violation } of checkSessionLogs(store)) {
    const ok = violation === null
    count.all += 1
    if (ok) count.ok += 1
    if (isJson) io.stdout.write(formatJsonLine({ session, ok, ...violation }))
    else if (!ok) io.stdout.write(formatViolation(session, violation))
  }
  if (!isJson) io.stdout.write(`${count.ok} of ${count.all} sessions keep the rules of the loop.\n`)
  return count.ok === count.all ? exitCodes.completed : exitCodes.error
}

function formatViolation(session: string, { seq, rule, message, law }: LogFault): string {
  const where = seq === null ? rule : `record ${seq} breaks '${rule}'`
  return `${stripControls(session)}  ${where}: ${stripControls(message)}${law === null ? '' : ` ${law}`}\n`
}

function formatSession({ session, agent, verdict, why }: CheckedSession): string {
  return `${stripControls(session)}  ${stripControls(agent)}  ${verdict}: ${stripControls(why ?? '')}\n`
}

function formatTotals({ all, ok, changed }: { all: number; ok: number; changed: number }): string {
  const others = changed > 0 ? ` (${changed} of them with changed instructions, tools or model)` : ''
  return `${ok} of ${all} open sessions can be resumed here${others}.\n`
}
