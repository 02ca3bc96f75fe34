import { type PendingCall, agentStates } from '../../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import { systemClock } from '../../core/base/clock.js'
import { formatCount } from '../../core/format/format-words.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { sendToStoredSession } from '../../core/run/send-to-stored-session.js'
import { type Receipt, type SessionMessage, toTarget } from '../../core/sessions/inbox/session-message.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { MessageForAll, SessionSelection, SendAllReceipt } from '../../fleet/send-all.js'
import {
  badUsageError,
  type CliIO,
  checkChoice,
  defineCommand,
  missingSession,
  parseDate,
  type ParsedOptions,
  toCommands,
} from '../command.js'
import { exitCodes, type ExitCode } from '../exit-codes.js'
import { byOption, formatCarriedOptions, readSelection, refuseStray, storeOption } from '../options.js'
import { createProgressLine, formatJsonLine } from '../output.js'
import { matchCall } from '../resume-hints.js'
import { findSession, withSessionStore } from '../session-store.js'

type CallTarget = Pick<PendingCall, 'callId' | 'messageId'> & { fingerprint?: string }

/** The arguments of a message as the usage line shows them, and the message made from them. */
type MessageSpecs<Create> = Readonly<Record<string, readonly [usage: string, create: Create]>>
type CreateForAll<Message = MessageForAll> = (args: readonly string[]) => Message
type Create = (
  args: readonly string[],
  findCall: () => Promise<CallTarget>,
) => SessionMessage | Promise<SessionMessage>

/** Messages that can be sent to one or more sessions. */
const commonSpecs: MessageSpecs<CreateForAll<MessageForAll & SessionMessage>> = {
  cancel: ['[WHY]', ([why]) => ({ type: 'cancel', ...(why && { why }) })],
  pause: ['', () => ({ type: 'pause' })],
  resume: ['[DATE]', ([date]) => ({ type: 'resume', ...(date && { at: readWakeDate(date) }) })],
  steer: ['TEXT', ([text = '']) => ({ type: 'steer', text })],
}

const messageSpecs: MessageSpecs<Create> = {
  ...commonSpecs,
  approve: ['CALL', async (_, findCall) => ({ type: 'approve', ...(await findCall()) })],
  reject: [
    'CALL [REASON]',
    async ([, why], findCall) => ({
      type: 'reject',
      ...(await findCall()),
      ...(why !== undefined && { why }),
    }),
  ],
  reply: ['TEXT', ([input = '']) => ({ type: 'reply', input })],
  'tool-output': [
    'CALL JSON',
    async ([, json = ''], findCall) => ({
      type: 'toolOutput',
      ...(await findCall()),
      value: parseValue(json),
    }),
  ],
  revoke: ['GRANT', ([grant = '']) => ({ type: 'revoke', grant })],
}

const broadcastSpecs: MessageSpecs<CreateForAll> = {
  ...commonSpecs,
  message: ['TEXT', ([input = '']) => ({ type: 'message', when: 'next', input })],
}

const broadcastOptions = {
  all: { about: 'every session that matches --tag, --prefix, --agent or --state' },
  tag: { value: 'NAME=VALUE', about: 'with --all: sessions with this tag; can be repeated' },
  prefix: { value: 'TEXT', about: 'with --all: sessions whose ids start with TEXT and a colon' },
  agent: { value: 'NAME', about: 'with --all: sessions of this agent' },
  state: {
    value: 'STATE',
    choices: agentStates,
    about: 'with --all: sessions in this state; can be repeated (default: all that have not ended)',
  },
  key: {
    value: 'TEXT',
    about: 'with --all: send the message only once, even if the command runs again with this key',
  },
  json: { about: 'with --all: print the counts as JSON' },
  ...byOption,
  ...storeOption,
} as const

export const sendCommand = defineCommand({
  name: 'send',
  about: 'Sends a message to a session in any process.',
  positional: '[ID] [MESSAGE…]',
  options: broadcastOptions,
  notes: [
    `MESSAGE is one of:\n${formatUsages(messageSpecs).join('\n')}`,
    'A working run reads the message within a second. If no process drives the session, the message is read when the run ' +
      'is resumed; only cancel and resume DATE take effect at once. With a DATE such as 2026-05-04T08:30:00Z, the run sleeps until then.',
    'CALL is the id of a pending call, or CALL@FP with its fingerprint, as printed by run and resume. With a fingerprint, a call ' +
      'whose arguments have changed is not answered.',
    'GRANT is the id of a grant, as listed by statewright grants ID.',
    `With --all, omit ID: every matching session gets the message. MESSAGE is one of:\n${formatUsages(broadcastSpecs).join('\n')}`,
    'One second after the command ends, these sessions start no new work.',
    'Examples:\n' +
      "  statewright send 6f1c… steer 'Use the newer file.'\n" +
      "  statewright send 6f1c… reject call_2 'Not on a Friday.'\n" +
      '  statewright send 6f1c… tool-output call_3 \'{"opened":true}\'\n' +
      "  statewright send --all --tag tenant=acme cancel 'The contract has ended.'",
  ],
  execute: async (parsed, io) => {
    if (parsed.values.all) return sendToMany(parsed, io)
    refuseStray(parsed.values, ['tag', 'prefix', 'agent', 'state', 'key', 'json'], '--all')
    const [id, word, ...args] = parsed.positionals
    if (id === undefined)
      throw badUsageError(`ID is missing. ${missingSession} Usage: statewright send ID MESSAGE`, 'ID')
    const create = readMessage(word, args, 'send ID', messageSpecs)
    const { store, by } = parsed.values
    await withSessionStore(store, io, async (opened) => {
      await findSession(opened, id)
      const message = { ...(await create(args, () => findCallTarget(opened, id, args[0] ?? ''))), by }
      const receipt = await sendToStoredSession({ store: opened, clock: systemClock }, id, message)
      io.stdout.write(`${formatReceipt(receipt, message.type, id, store)}\n`)
    })
    return exitCodes.completed
  },
})

function formatUsages(specs: MessageSpecs<unknown>): string[] {
  return Object.entries(specs).map(([word, [usage]]) => `  ${word} ${usage}`.trimEnd())
}

/** Checks a message's name and the number of its arguments. Returns what creates it. */
function readMessage<Create>(
  word: string | undefined,
  args: readonly string[],
  command: string,
  specs: MessageSpecs<Create>,
): Create {
  const names = Object.keys(specs)
  if (word === undefined)
    throw badUsageError(`MESSAGE is missing. Use one of ${names.join(', ')}.`, 'MESSAGE')
  checkChoice('MESSAGE', word, names)
  const [usage, create] = specs[word] as readonly [string, Create]
  const words = usage.split(' ').filter(Boolean)
  const required = words.filter((one) => !one.startsWith('['))
  if (args.length < required.length || args.length > words.length)
    throw badUsageError(`Write: statewright ${`${command} ${word} ${usage}`.trimEnd()}`, 'MESSAGE')
  return create
}

function readWakeDate(text: string): Date {
  const at = parseDate(text)
  if (at !== undefined) return new Date(at)
  throw badUsageError(`DATE must have a time zone, such as 2026-05-04T08:30:00Z (got '${text}').`, 'DATE')
}

/** An unknown call is passed on unchanged, because message validation rejects it. */
async function findCallTarget(store: SessionStore, id: string, text: string): Promise<CallTarget> {
  const { run } = await readSessionAt(store, id)
  const match = matchCall(text, run ? listAnswerableCalls(run.context) : [])
  if (match === undefined || match.rest !== undefined) return { callId: text }
  const { callId } = match.call
  return match.kind === 'changed'
    ? { callId, fingerprint: text.slice(callId.length + 1) }
    : toTarget(match.call)
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const example = quoteShellWord(JSON.stringify(text))
    throw badUsageError(`A call's output must be JSON. Write a string as: ${example}.`, 'JSON')
  }
}

function formatReceipt(
  { status }: Receipt,
  type: SessionMessage['type'],
  id: string,
  store: string | undefined,
): string {
  if (status === 'sent') return `Sent to ${id}. The process that runs it reads the message within a second.`
  if (status === 'waiting')
    return `Stored for ${id}, which is idle. Continue with: statewright resume ${id}${formatCarriedOptions({ store })}`
  return type === 'resume' ? `${id} sleeps until then.` : `Cancelled ${id}.`
}

async function sendToMany(
  { positionals: [word, ...args], all, values }: ParsedOptions<typeof broadcastOptions>,
  io: CliIO,
): Promise<ExitCode> {
  const { by, agent, key, json } = values
  const create = readMessage(word, args, 'send --all …', broadcastSpecs)
  const message = { ...create(args), by } as MessageForAll
  const states = all('state') as (typeof agentStates)[number][]
  const selection: SessionSelection = {
    ...readSelection({ values, all }),
    ...(agent !== undefined && { agent }),
    ...(states.length > 0 && { state: states }),
  }
  if (Object.keys(selection).length === 0)
    throw badUsageError('--all needs --tag, --prefix, --agent or --state.', '--all')
  const { sendAll } = await import('../../fleet/send-all.js')
  return withSessionStore(values.store, io, async (store) => {
    const line = createProgressLine(io, systemClock)
    const receipt = await sendAll(store, selection, message, {
      signal: io.signal,
      ...(key !== undefined && { key }),
      onProgress: ({ sessions }) => line.update(`${formatCount(sessions, 'session')} so far`),
    }).finally(() => line.close())
    io.stdout.write(json ? formatJsonLine(receipt) : formatReceipts(receipt))
    return receipt.refused > 0 ? exitCodes.error : exitCodes.completed
  })
}

function formatReceipts(receipt: SendAllReceipt): string {
  const { sessions, sent, waiting, applied, ended, refused, refusals } = receipt
  if (sessions === 0) return 'No session matches.\n'
  const parts = [
    [sent, 'sent to the processes that run them'],
    [waiting, 'stored for their next resume or turn'],
    [applied, 'done'],
    [ended, 'had ended'],
    [refused, 'refused'],
  ] as const
  const lines = parts.flatMap(([count, what]) => (count > 0 ? [`  ${count} ${what}`] : []))
  const reasons = refusals.map(
    ({ session, code, message }) => `  ${session}: ${code}: ${toCommands(message)}`,
  )
  return [`${sessions} sessions:`, ...lines, ...reasons, ''].join('\n')
}
