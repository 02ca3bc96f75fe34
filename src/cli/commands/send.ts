import { type PendingCall, agentStates, type AgentState } from '../../../machines/agent/run-result.js'
import { listAnswerableCalls } from '../../../machines/agent/to-result.js'
import { systemClock } from '../../core/base/clock.js'
import { sendToStoredSession } from '../../core/run/send-to-stored-session.js'
import type { Receipt, SessionMessage } from '../../core/sessions/inbox/session-message.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { MessageForAll, SessionSelection, SendAllReceipt } from '../../fleet/send-all.js'
import { badUsageError } from '../cli-error.js'
import type { Command, CliIO } from '../command.js'
import { exitCodes, type ExitCode } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { withSessionStore } from '../open-session-store.js'
import { parseOptions, type OptionSpecs, type ParsedOptions, parseTag } from '../parse-options.js'
import { matchCall } from '../question-word.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { formatJsonLine } from '../render/json-renderer.js'
import { formatCarriedOptions } from './common-options.js'
import { sessionOptionSpecs } from './sessions/session-options.js'

/** What chooses the sessions. */
const selectionNames = ['tag', 'prefix', 'agent', 'state', 'key', 'json'] as const

const sendManyOptions = {
  all: { about: 'every session that matches --tag, --prefix, --agent or --state' },
  tag: { value: 'NAME=VALUE', about: 'with --all: sessions with this tag; may be repeated' },
  prefix: { value: 'TEXT', about: 'with --all: sessions whose ids begin with it and a colon' },
  agent: { value: 'NAME', about: 'with --all: sessions of this agent' },
  state: {
    value: 'STATE',
    about: 'with --all: sessions in this state; may be repeated (default: not ended)',
  },
  key: { value: 'TEXT', about: 'with --all: told once however often the command is run with it' },
  json: { about: 'with --all: print the counts as JSON' },
} satisfies OptionSpecs

/** The messages, with the number of their arguments. */
const messageSpecs: Record<string, { least: number; most: number; takes: string }> = {
  cancel: { least: 0, most: 1, takes: '[WHY]' },
  pause: { least: 0, most: 0, takes: '' },
  resume: { least: 0, most: 1, takes: '[DATE]' },
  steer: { least: 1, most: 1, takes: 'TEXT' },
  approve: { least: 1, most: 1, takes: 'CALL' },
  reject: { least: 1, most: 2, takes: 'CALL [REASON]' },
  reply: { least: 1, most: 1, takes: 'TEXT' },
  'tool-output': { least: 2, most: 2, takes: 'CALL JSON' },
}

const options = { ...sendManyOptions, ...sessionOptionSpecs }

export const sendCommand: Command = {
  name: 'send',
  about: 'Sends a message to a session, in whatever process it runs.',
  positional: 'ID MESSAGE',
  options,
  notes: [
    `MESSAGE is one of:\n${Object.entries(messageSpecs)
      .map(([word, { takes }]) => `  ${`${word} ${takes}`.trimEnd()}`)
      .join('\n')}`,
    'A run at work reads the message within a second. A run at rest that no process holds reads it when it is resumed; only\n' +
      'cancel, and resume with a date, take effect at once. With a DATE, such as 2026-05-04T08:30:00Z, the run sleeps until then. CALL is the id of a pending call, or CALL@FP with its fingerprint, as run and resume\n' +
      'print it: then no other call with this id is answered.',
    'With --all, MESSAGE is cancel, pause, resume [DATE], steer TEXT or message TEXT, and there is no ID: every session that matches is\n' +
      'told. Nothing more starts for it later than a second after the command has ended.',
    'Examples:\n' +
      "  statewright send 6f1c… steer 'Use the newer file.'\n" +
      "  statewright send 6f1c… reject call_2 'Not on a Friday.'\n" +
      '  statewright send 6f1c… tool-output call_3 \'{"opened":true}\'\n' +
      "  statewright send --all --tag tenant=acme cancel 'The contract has ended.'",
  ],
  execute: async (args, io) => {
    const parsed = parseOptions(args, options)
    const { positionals, text } = parsed
    if (parsed.has('all')) return sendMany(parsed, io)
    const given = selectionNames.find((name) => parsed.has(name))
    if (given !== undefined)
      throw badUsageError(`--${given} chooses among many sessions: add --all, or leave it out.`, `--${given}`)
    const [id, word, ...rest] = positionals
    if (id === undefined) throw badUsageError('Which session? Write: statewright send ID MESSAGE.', 'ID')
    checkMessage(word, rest)
    return withSessionStore(text('store'), io, async (store) => {
      await findSession(store, id)
      const message = await createMessage(store, id, word, rest)
      const receipt = await sendToStoredSession({ store, clock: systemClock }, id, message)
      io.stdout.write(`${formatReceipt(receipt, message.type, id, text('store'))}\n`)
      return exitCodes.completed
    })
  },
}

/** With its time zone: a date without one would be of this machine. */
function parseDate(text: string): Date {
  const date = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(text) ? new Date(text) : null
  if (date !== null && !Number.isNaN(date.getTime())) return date
  throw badUsageError(`'${text}' is no date with a time zone, such as 2026-05-04T08:30:00Z.`, 'DATE')
}

function checkMessage(word: string | undefined, rest: readonly string[]): asserts word is string {
  const known = word !== undefined && Object.hasOwn(messageSpecs, word) ? messageSpecs[word] : undefined
  if (!known)
    throw badUsageError(
      `${word === undefined ? 'The message is missing' : `'${word}' is not a message`}: give one of ${Object.keys(messageSpecs).join(', ')}.`,
      'MESSAGE',
    )
  if (rest.length < known.least || rest.length > known.most)
    throw badUsageError(`Write: statewright send ID ${`${word ?? ''} ${known.takes}`.trimEnd()}.`, 'MESSAGE')
}

async function createMessage(
  store: SessionStore,
  id: string,
  word: string,
  [first = '', second]: readonly string[],
): Promise<SessionMessage> {
  switch (word) {
    case 'cancel':
      return { type: 'cancel', ...(first !== '' && { why: first }) }
    case 'steer':
      return { type: 'steer', text: first }
    case 'reply':
      return { type: 'reply', input: first }
    case 'pause':
      return { type: word }
    case 'resume':
      return { type: word, ...(first !== '' && { at: parseDate(first) }) }
    case 'approve':
      return { type: 'approve', ...(await findCallTarget(store, id, first)) }
    case 'reject':
      return {
        type: 'reject',
        ...(await findCallTarget(store, id, first)),
        ...(second !== undefined && { why: second }),
      }
    default:
      return {
        type: 'toolOutput',
        ...(await findCallTarget(store, id, first)),
        value: parseValue(second ?? ''),
      }
  }
}

/** The call of an answer. An unknown call is sent as it is, and refused where the message is checked. */
async function findCallTarget(
  store: SessionStore,
  id: string,
  text: string,
): Promise<Pick<PendingCall, 'callId' | 'messageId'> & { fingerprint?: string }> {
  const { run } = await readSessionAt(store, id)
  const named = matchCall(text, run ? listAnswerableCalls(run.context) : [])
  if (named === undefined || named.rest !== undefined) return { callId: text }
  const { callId, fingerprint, messageId } = named.call
  return named.kind === 'other'
    ? { callId, fingerprint: text.slice(callId.length + 1) }
    : { callId, fingerprint, ...(messageId !== undefined && { messageId }) }
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw badUsageError(
      `The output of a call must be JSON. Write a text as: ${quoteShellWord(JSON.stringify(text))}.`,
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
      return `Stored for ${id}, which is at rest. It goes on with: statewright resume ${id}${formatCarriedOptions({ store })}`
    default:
      return type === 'resume' ? `${id} sleeps until then.` : `Cancelled ${id}.`
  }
}

/** `tell --all`: the same message for many sessions. */
async function sendMany(
  { positionals, all, text, has }: ParsedOptions<keyof typeof sendManyOptions | 'store' | 'help'>,
  io: CliIO,
): Promise<ExitCode> {
  const message = parseMessage(positionals)
  const which = parseSelection(all('tag'), {
    prefix: text('prefix'),
    agent: text('agent'),
    states: all('state'),
  })
  const key = text('key')
  const { sendAll } = await import('../../fleet/send-all.js')
  return withSessionStore(text('store'), io, async (store) => {
    const isSeen = io.stdout.isTTY === true && !has('json')
    const receipt = await sendAll(store, which, message, {
      signal: io.signal,
      ...(key !== undefined && { key }),
      ...(isSeen && { onProgress: ({ sessions }) => io.stdout.write(`\r${sessions} sessions …`) }),
    })
    if (isSeen) io.stdout.write('\r\u001B[K')
    io.stdout.write(has('json') ? formatJsonLine(receipt) : formatReceipts(receipt))
    return receipt.refused > 0 ? exitCodes.error : exitCodes.completed
  })
}

function parseMessage([word, text, ...more]: readonly string[]): MessageForAll {
  const needsText = word === 'steer' || word === 'message'
  const isKnown = ['cancel', 'pause', 'resume', 'steer', 'message'].includes(word ?? '')
  const most = word === 'pause' ? 1 : 2
  const count = (word === undefined ? 0 : 1) + (text === undefined ? 0 : 1) + more.length
  if (!isKnown || count > most || (needsText && text === undefined))
    throw badUsageError(
      'Write: statewright send --all … MESSAGE, with one of cancel [WHY], pause, resume [DATE], steer TEXT, message TEXT.',
      'MESSAGE',
    )
  switch (word) {
    case 'steer':
      return { type: 'steer', text: text ?? '' }
    case 'message':
      return { type: 'message', when: 'next', input: text ?? '' }
    case 'pause':
      return { type: word }
    case 'resume':
      return { type: word, ...(text !== undefined && { at: parseDate(text) }) }
    default:
      return { type: 'cancel', ...(text !== undefined && { why: text }) }
  }
}

function parseSelection(
  tags: readonly string[],
  {
    prefix,
    agent,
    states,
  }: { prefix: string | undefined; agent: string | undefined; states: readonly string[] },
): SessionSelection {
  const unknown = states.find((state) => !agentStates.includes(state as AgentState))
  if (unknown !== undefined)
    throw badUsageError(`--state must be one of ${agentStates.join(', ')} (is '${unknown}').`, '--state')
  if (tags.length === 0 && prefix === undefined && agent === undefined && states.length === 0)
    throw badUsageError('Which sessions? Give --tag, --prefix, --agent or --state beside --all.', '--all')
  return {
    ...(tags.length > 0 && { tags: Object.fromEntries(tags.map(parseTag)) }),
    ...(prefix !== undefined && { prefix }),
    ...(agent !== undefined && { agent }),
    ...(states.length > 0 && { state: states as AgentState[] }),
  }
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
