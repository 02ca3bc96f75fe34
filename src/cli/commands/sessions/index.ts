import {
  badUsageError,
  CliError,
  type CliIO,
  type CommandGroup,
  defineCommand,
  toCommands,
} from '../../command.js'
import { exportCommand } from './export.js'
import { listCommand } from './list.js'
import { showCommand } from './show.js'
import { type ExitCode, exitCodes } from '../../exit-codes.js'
import { loadAgents } from '../../load.js'
import { agentsModuleOption, excludeBoth, storeOption } from '../../options.js'
import { createProgressLine, formatJsonLine } from '../../output.js'
import { canAsk, openTerminalPrompt } from '../../prompt.js'
import { checkRecordExists, withSession, withSessionStore } from '../../session-store.js'
import { systemClock } from '../../../core/base/clock.js'
import { type CheckedSession, checkSessions } from '../../../core/drive/stranded-sessions.js'
import { formatCount, shorten, stripControls } from '../../../core/format/format-words.js'
import { deleteSession, renameSession } from '../../../core/sessions/delete-session.js'
import { forkSession } from '../../../core/sessions/fork-session.js'
import { readSessionAt } from '../../../core/sessions/replay-session.js'
import type { ListedSession, SessionStore } from '../../../core/sessions/store/store.js'
import { checkSessionLogs, type LogFault } from '../../../testing/check-session-log.js'

const checkCommand = defineCommand({
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
  execute: async ({ values }, io) => {
    const { agents: module, spec, json: isJson = false } = values
    excludeBoth(values, 'spec', 'agents', 'With --spec, the command reads only the logs')
    if (!spec && module === undefined)
      throw badUsageError(
        'Pass the module that exports the agents with --agents MODULE, or check only the logs with --spec.',
        '--agents',
      )
    return withSessionStore(values.store, io, (store) =>
      module === undefined ? checkLogs(store, io, isJson) : checkResumable(store, module, io, isJson),
    )
  },
})

/** Passes the sessions on, and prints their number from time to time. */
async function* countChecked<Checked>(sessions: AsyncIterable<Checked>, io: CliIO): AsyncGenerator<Checked> {
  const line = createProgressLine(io, systemClock, { hasData: true })
  let count = 0
  try {
    for await (const session of sessions) {
      count += 1
      line.update(`${formatCount(count, 'session')} checked`)
      yield session
    }
  } finally {
    line.close()
  }
}

async function checkResumable(
  store: SessionStore,
  module: string,
  io: CliIO,
  isJson: boolean,
): Promise<ExitCode> {
  const agents = await loadAgents(module, io.cwd, store)
  const count = { all: 0, ok: 0, changed: 0 }
  for await (const checked of countChecked(checkSessions(agents, store), io)) {
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
  for await (const { session, violation } of countChecked(checkSessionLogs(store), io)) {
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
  return `${stripControls(session)}  ${where}: ${stripControls(toCommands(message))}${law === null ? '' : ` ${law}`}\n`
}

function formatSession({ session, agent, verdict, why }: CheckedSession): string {
  return `${stripControls(session)}  ${stripControls(agent)}  ${verdict}: ${stripControls(toCommands(why ?? ''))}\n`
}

const renameCommand = defineCommand({
  name: 'sessions rename',
  about: "Sets a session's title, even while a run is active.",
  positional: 'ID [TITLE…]',
  options: {
    default: { about: "restore the default title: the session's name, or its first message" },
    ...storeOption,
  },
  notes: ["Example:\n  statewright sessions rename 6f1c… 'The trip to Lisbon'"],
  execute: async (parsed, io) => {
    const [, title, ...more] = parsed.positionals
    if ((title === undefined) !== (parsed.values.default === true) || more.length > 0)
      throw badUsageError(
        "Pass one title in quotes: statewright sessions rename ID 'A title', or --default to restore the default.",
        'TITLE',
      )
    await withSession(parsed, io, async (store, { id }) => {
      await renameSession(store, id, title ?? null)
      io.stdout.write(title === undefined ? `${id} has its default title.\n` : `Renamed ${id}.\n`)
    })
  },
})

const forkCommand = defineCommand({
  name: 'sessions fork',
  about: "Forks a session at one of its records, and prints the new session's id.",
  positional: 'ID',
  options: {
    at: { value: 'N', min: 1, about: 'fork after record N of its log (default: after the last)' },
    ...storeOption,
  },
  notes: [
    'The original session does not change. To list its record numbers: statewright sessions show ID --events',
    'Example:\n  statewright resume "$(statewright sessions fork 6f1c… --at 12)" "Try again."',
  ],
  execute: (parsed, io) =>
    withSession(parsed, io, async (store, session) => {
      const { at } = parsed.values
      checkRecordExists(at, session)
      const folded = await readSessionAt(store, session.id, at)
      const id = await forkSession({ store, clock: systemClock }, { sessionId: session.id, folded })
      io.stdout.write(`${id}\n`)
    }),
})

const deleteCommand = defineCommand({
  name: 'sessions delete',
  about: 'Deletes a session and its sub-agents, after confirmation.',
  positional: 'ID',
  options: { yes: { short: 'y', about: 'do not ask' }, ...storeOption },
  notes: ['This cannot be undone. To make a copy first: statewright sessions export ID'],
  execute: async (parsed, io) => {
    const { yes } = parsed.values
    if (!yes && !canAsk({ output: 'human' }, io))
      throw badUsageError(
        'There is no terminal to ask for confirmation. Use --yes to delete the session.',
        '--yes',
      )
    return withSession(parsed, io, async (store, entry) => {
      const { id } = entry
      if (!yes && !(await confirmDelete(entry, io))) {
        io.stdout.write('Nothing was deleted.\n')
        return io.signal.aborted ? exitCodes.cancelled : exitCodes.completed
      }
      const count = await deleteSession(store, systemClock, id)
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
