import { type PendingCall, agentStates } from '../../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../../machines/agent/questions.js'
import { systemClock } from '../../core/base/clock.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { sendToStoredSession } from '../../core/run/send-to-stored-session.js'
import type { Receipt, SessionMessage } from '../../core/sessions/inbox/session-message.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { MessageForAll, SessionSelection, SendAllReceipt } from '../../fleet/send-all.js'
import {
  badUsageError,
  type CliIO,
  checkChoice,
  defineCommand,
  parseDate,
  parseTag,
  type ParsedOptions,
} from '../command.js'
import { exitCodes, type ExitCode } from '../exit-codes.js'
import { byOption, formatCarriedOptions, refuseStray, storeOption } from '../options.js'
import { formatJsonLine } from '../output.js'
import { toTarget } from '../../core/sessions/inbox/session-message.js'
import { matchCall } from '../resume-hints.js'
import { findSession, missingSession, withSessionStore } from '../session-store.js'

/** The number of a message's arguments, and how the usage line shows them. */
type MessageSpecs = Readonly<Record<string, readonly [min: number, max: number, args: string]>>

/** Messages that can be sent to one or more sessions. */
const commonSpecs: MessageSpecs = {
  cancel: [0, 1, '[WHY]'],
  pause: [0, 0, ''],
  resume: [0, 1, '[DATE]'],
  steer: [1, 1, 'TEXT'],
}

const messageSpecs: MessageSpecs = {
  ...commonSpecs,
  approve: [1, 1, 'CALL'],
  reject: [1, 2, 'CALL [REASON]'],
  reply: [1, 1, 'TEXT'],
  'tool-output': [2, 2, 'CALL JSON'],
  revoke: [1, 1, 'GRANT'],
}

const broadcastSpecs: MessageSpecs = { ...commonSpecs, message: [1, 1, 'TEXT'] }

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
    if (parsed.has('all')) return sendToMany(parsed, io)
    refuseStray(parsed, ['tag', 'prefix', 'agent', 'state', 'key', 'json'], '--all')
    const [id, word, ...args] = parsed.positionals
    if (id === undefined)
      throw badUsageError(`ID is missing. ${missingSession} Usage: statewright send ID MESSAGE`, 'ID')
    checkMessage(word, args, 'send ID', messageSpecs)
    const store = parsed.text('store')
    await withSessionStore(store, io, async (opened) => {
      await findSession(opened, id)
      const message = { ...(await createMessage(opened, id, word, args)), by: parsed.text('by') }
      const receipt = await sendToStoredSession({ store: opened, clock: systemClock }, id, message)
      io.stdout.write(`${formatReceipt(receipt, message.type, id, store)}\n`)
    })
    return exitCodes.completed
  },
})

function formatUsages(specs: MessageSpecs): string[] {
  return Object.entries(specs).map(([word, [, , args]]) => `  ${word} ${args}`.trimEnd())
}

function checkMessage(
  word: string | undefined,
  args: readonly string[],
  usage: string,
  specs: MessageSpecs,
): asserts word is string {
  const names = Object.keys(specs)
  if (word === undefined)
    throw badUsageError(`MESSAGE is missing. Use one of ${names.join(', ')}.`, 'MESSAGE')
  checkChoice('MESSAGE', word, names)
  const [min, max, takes] = specs[word] ?? [0, 0, '']
  if (args.length < min || args.length > max)
    throw badUsageError(`Write: statewright ${`${usage} ${word} ${takes}`.trimEnd()}`, 'MESSAGE')
}

/** The parts of a message that are derived from its text. */
function createTextMessage(word: string, text: string | undefined): MessageForAll | null {
  switch (word) {
    case 'cancel':
      return { type: 'cancel', ...(text !== undefined && text !== '' && { why: text }) }
    case 'pause':
      return { type: 'pause' }
    case 'resume':
      return { type: 'resume', ...(text !== undefined && text !== '' && { at: readWakeDate(text) }) }
    case 'steer':
      return { type: 'steer', text: text ?? '' }
    case 'message':
      return { type: 'message', when: 'next', input: text ?? '' }
    default:
      return null
  }
}

function readWakeDate(text: string): Date {
  const at = parseDate(text)
  if (at !== undefined) return new Date(at)
  throw badUsageError(`DATE must have a time zone, such as 2026-05-04T08:30:00Z (got '${text}').`, 'DATE')
}

async function createMessage(
  store: SessionStore,
  id: string,
  word: string,
  [first = '', second]: readonly string[],
): Promise<SessionMessage> {
  if (word === 'reply') return { type: 'reply', input: first }
  const message = createTextMessage(word, first)
  if (message !== null) return message
  if (word === 'revoke') return { type: 'revoke', grant: first }
  const target = await findCallTarget(store, id, first)
  if (word === 'approve') return { type: 'approve', ...target }
  if (word === 'reject') return { type: 'reject', ...target, ...(second !== undefined && { why: second }) }
  return { type: 'toolOutput', ...target, value: parseValue(second ?? '') }
}

/** An unknown call is passed on unchanged, because message validation rejects it. */
async function findCallTarget(
  store: SessionStore,
  id: string,
  text: string,
): Promise<Pick<PendingCall, 'callId' | 'messageId'> & { fingerprint?: string }> {
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
  { positionals, all, text, has }: ParsedOptions<typeof broadcastOptions>,
  io: CliIO,
): Promise<ExitCode> {
  const [word, ...args] = positionals
  checkMessage(word, args, 'send --all …', broadcastSpecs)
  const message = { ...createTextMessage(word, args[0]), by: text('by') } as MessageForAll
  const tags = all('tag').map(parseTag)
  const [prefix, agent, key] = [text('prefix'), text('agent'), text('key')]
  const states = all('state') as (typeof agentStates)[number][]
  const selection: SessionSelection = {
    ...(tags.length > 0 && { tags: Object.fromEntries(tags) }),
    ...(prefix !== undefined && { prefix }),
    ...(agent !== undefined && { agent }),
    ...(states.length > 0 && { state: states }),
  }
  if (Object.keys(selection).length === 0)
    throw badUsageError('--all needs --tag, --prefix, --agent or --state.', '--all')
  const { sendAll } = await import('../../fleet/send-all.js')
  return withSessionStore(text('store'), io, async (store) => {
    const showsProgress = io.stdout.isTTY === true && !has('json')
    const receipt = await sendAll(store, selection, message, {
      signal: io.signal,
      ...(key !== undefined && { key }),
      ...(showsProgress && { onProgress: ({ sessions }) => io.stdout.write(`\r${sessions} sessions …`) }),
    })
    if (showsProgress) io.stdout.write('\r\u001B[K')
    io.stdout.write(has('json') ? formatJsonLine(receipt) : formatReceipts(receipt))
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
  const reasons = refusals.map(({ session, code, message }) => `  ${session}: ${code}: ${message}`)
  return [`${sessions} sessions:`, ...lines, ...reasons, ''].join('\n')
}
