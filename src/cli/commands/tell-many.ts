import { agentStates, type AgentState } from '../../../machines/agent/run-result.js'
import type { MessageForAll, SessionSelection, TellAllReceipt } from '../../fleet/tell-all.js'
import { badUsageError } from '../cli-error.js'
import type { CliIO } from '../command.js'
import { type ExitCode, exitCodes } from '../exit-codes.js'
import { withSessionStore } from '../open-session-store.js'
import { type OptionSpecs, type ParsedOptions, parseTag } from '../parse-options.js'
import { formatJsonLine } from '../render/json-renderer.js'

/** What chooses the sessions. */
export const selectionNames = ['tag', 'prefix', 'agent', 'state', 'key', 'json'] as const

export const tellManyOptions = {
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

/** `tell --all`: the same message for many sessions. */
export async function tellMany(
  { positionals, all, text, has }: ParsedOptions<keyof typeof tellManyOptions | 'store' | 'help'>,
  io: CliIO,
): Promise<ExitCode> {
  const message = parseMessage(positionals)
  const which = parseSelection(all('tag'), {
    prefix: text('prefix'),
    agent: text('agent'),
    states: all('state'),
  })
  const key = text('key')
  const { tellAll } = await import('../../fleet/tell-all.js')
  return withSessionStore(text('store'), io, async (store) => {
    const isSeen = io.stdout.isTTY === true && !has('json')
    const receipt = await tellAll(store, which, message, {
      signal: io.signal,
      ...(key !== undefined && { key }),
      ...(isSeen && { onProgress: ({ sessions }) => io.stdout.write(`\r${sessions} sessions …`) }),
    })
    if (isSeen) io.stdout.write('\r\u001B[K')
    io.stdout.write(has('json') ? formatJsonLine(receipt) : formatReceipt(receipt))
    return receipt.refused > 0 ? exitCodes.error : exitCodes.completed
  })
}

function parseMessage([word, text, ...more]: readonly string[]): MessageForAll {
  const needsText = word === 'steer' || word === 'message'
  const most = word === 'pause' || word === 'resume' ? 1 : 2
  const count = (word === undefined ? 0 : 1) + (text === undefined ? 0 : 1) + more.length
  if (count > most || (needsText && text === undefined) || (most === 2 && word !== 'cancel' && !needsText))
    throw badUsageError(
      'Write: statewright tell --all … MESSAGE, with one of cancel [WHY], pause, resume, steer TEXT, message TEXT.',
      'MESSAGE',
    )
  switch (word) {
    case 'steer':
      return { type: 'steer', text: text ?? '' }
    case 'message':
      return { type: 'message', when: 'next', input: text ?? '' }
    case 'pause':
    case 'resume':
      return { type: word }
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

function formatReceipt(receipt: TellAllReceipt): string {
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
