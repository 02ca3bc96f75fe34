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
import { byOption, formatCarriedOptions, storeOption } from '../options.js'
import { formatJsonLine } from '../output.js'
import { toTarget } from '../../core/sessions/inbox/session-message.js'
import { matchCall } from '../resume-hints.js'
import { findSession, missingSession, withSessionStore } from '../session-store.js'

interface MessageSpec {
  min: number
  max: number
  args: string
}

/** Messages that can be sent to one or more sessions, with the number of their arguments. */
const commonSpecs: Readonly<Record<string, MessageSpec>> = {
  cancel: { min: 0, max: 1, args: '[WHY]' },
  pause: { min: 0, max: 0, args: '' },
  resume: { min: 0, max: 1, args: '[DATE]' },
  steer: { min: 1, max: 1, args: 'TEXT' },
}

const messageSpecs: Readonly<Record<string, MessageSpec>> = {
  ...commonSpecs,
  approve: { min: 1, max: 1, args: 'CALL' },
  reject: { min: 1, max: 2, args: 'CALL [REASON]' },
  reply: { min: 1, max: 1, args: 'TEXT' },
  'tool-output': { min: 2, max: 2, args: 'CALL JSON' },
  revoke: { min: 1, max: 1, args: 'GRANT' },
}

const broadcastSpecs: Readonly<Record<string, MessageSpec>> = {
  ...commonSpecs,
  message: { min: 1, max: 1, args: 'TEXT' },
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
    if (parsed.has('all')) return sendToMany(parsed, io)
    const stray = (['tag', 'prefix', 'agent', 'state', 'key', 'json'] as const).find((name) =>
      parsed.has(name),
    )
    if (stray !== undefined) throw badUsageError(`--${stray} needs --all.`, `--${stray}`)
    const [id, word, ...args] = parsed.positionals
    if (id === undefined)
      throw badUsageError(`ID is missing. ${missingSession} Usage: statewright send ID MESSAGE`, 'ID')
    checkMessage(word, args, 'send ID', messageSpecs)
    const store = parsed.text('store')
    await withSessionStore(store, io, async (opened) => {
      await findSession(opened, id)
      const message = await createMessage(opened, id, word, args)
      const receipt = await sendToStoredSession({ store: opened, clock: systemClock }, id, {
        ...message,
        by: parsed.text('by'),
      })
      io.stdout.write(`${formatReceipt(receipt, message.type, id, store)}\n`)
    })
    return exitCodes.completed
  },
})

function formatUsages(specs: typeof messageSpecs): string[] {
  return Object.entries(specs).map(([word, { args }]) => `  ${word} ${args}`.trimEnd())
}

function checkMessage(
  word: string | undefined,
  args: readonly string[],
  usage: string,
  specs: typeof messageSpecs,
): asserts word is string {
  const names = Object.keys(specs)
  if (word === undefined)
    throw badUsageError(`MESSAGE is missing. Use one of ${names.join(', ')}.`, 'MESSAGE')
  checkChoice('MESSAGE', word, names)
  const { min = 0, max = 0, args: takes = '' } = specs[word] ?? {}
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

/**
 * Finds the call that an answer refers to. An unknown call is passed on unchanged, because message validation rejects it.
 */
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
    throw badUsageError(
      `A call's output must be JSON. Write a string as: ${quoteShellWord(JSON.stringify(text))}.`,
      'JSON',
    )
  }
}

function formatReceipt(
  { status }: Receipt,
  type: SessionMessage['type'],
  id: string,
  store: string | undefined,
): string {
  switch (status) {
    case 'sent':
      return `Sent to ${id}. The process that runs it reads the message within a second.`
    case 'waiting':
      return `Stored for ${id}, which is idle. Continue with: statewright resume ${id}${formatCarriedOptions({ store })}`
    default:
      return type === 'resume' ? `${id} sleeps until then.` : `Cancelled ${id}.`
  }
}

/** Sends one message to many sessions. */
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
