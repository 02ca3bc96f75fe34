import { type CheckedSession, checkSessions } from '../../../core/drive/stranded-sessions.js'
import { stripControls } from '../../../core/format/format-words.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import { checkSessionLogs, type LogFault } from '../../../testing/check-session-log.js'
import { badUsageError, type CliIO, defineCommand } from '../../command.js'
import { type ExitCode, exitCodes } from '../../exit-codes.js'
import { loadAgents } from '../../load.js'
import { agentsModuleOption, excludeBoth, storeOption } from '../../options.js'
import { formatJsonLine } from '../../output.js'
import { withSessionStore } from '../../session-store.js'

export const checkCommand = defineCommand({
  name: 'sessions check',
  about: 'Checks which open sessions your agents can resume, or that all logs are valid.',
  options: {
    ...agentsModuleOption,
    spec: { about: 'check the logs of all sessions, including ended ones, against the rules of the loop' },
    json: { about: 'print one line of JSON for each session' },
    ...storeOption,
  },
  notes: [
    'Use it before deploying. It does not run agents or write anything.',
    'Exit codes: 0 all can be resumed, 1 some cannot. With --spec: 0 every log is valid, 1 some are not.',
    'Examples:\n' +
      '  statewright sessions check --agents ./agents.mjs\n' +
      '  statewright sessions check --spec --store postgres://localhost/app',
  ],
  execute: async (parsed, io) => {
    const { has, text } = parsed
    const module = text('agents')
    excludeBoth(parsed, 'spec', 'agents', 'With --spec, the command reads only the logs')
    if (!has('spec') && module === undefined)
      throw badUsageError(
        'Pass the module that exports the agents with --agents MODULE, or check only the logs with --spec.',
        '--agents',
      )
    return withSessionStore(text('store'), io, (store) =>
      module === undefined
        ? checkLogs(store, io, has('json'))
        : checkResumable(store, module, io, has('json')),
    )
  },
})

async function checkResumable(
  store: SessionStore,
  module: string,
  io: CliIO,
  isJson: boolean,
): Promise<ExitCode> {
  const agents = await loadAgents(module, io.cwd, store)
  const count = { all: 0, ok: 0, changed: 0 }
  for await (const checked of checkSessions(agents, store)) {
    count.all += 1
    if (checked.ok) count.ok += 1
    if (checked.verdict === 'changed') count.changed += 1
    if (isJson) io.stdout.write(formatJsonLine(checked))
    else if (!checked.ok) io.stdout.write(formatSession(checked))
  }
  const { all, ok, changed } = count
  const others = changed > 0 ? ` (${changed} of them with changed instructions, tools or model)` : ''
  if (!isJson) io.stdout.write(`${ok} of ${all} open sessions can be resumed here${others}.\n`)
  return ok === all ? exitCodes.completed : exitCodes.error
}

async function checkLogs(store: SessionStore, io: CliIO, isJson: boolean): Promise<ExitCode> {
  const count = { all: 0, ok: 0 }
  for await (const { session, violation } of checkSessionLogs(store)) {
    const ok = violation === null
    count.all += 1
    if (ok) count.ok += 1
    if (isJson) io.stdout.write(formatJsonLine({ session, ok, ...violation }))
    else if (!ok) io.stdout.write(formatViolation(session, violation))
  }
  if (!isJson) io.stdout.write(`${count.ok} of ${count.all} sessions have a valid log.\n`)
  return count.ok === count.all ? exitCodes.completed : exitCodes.error
}

function formatViolation(session: string, { seq, rule, message, law }: LogFault): string {
  const where = seq === null ? rule : `record ${seq} breaks '${rule}'`
  return `${stripControls(session)}  ${where}: ${stripControls(message)}${law === null ? '' : ` ${law}`}\n`
}

function formatSession({ session, agent, verdict, why }: CheckedSession): string {
  return `${stripControls(session)}  ${stripControls(agent)}  ${verdict}: ${stripControls(why ?? '')}\n`
}
