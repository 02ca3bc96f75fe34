import { createInterface } from 'node:readline'
import { addAbortSignal } from 'node:stream'
import type {
  Elicitation,
  ElicitationField,
  ElicitationValue,
  PendingCall,
  RunResult,
} from '../../machines/agent/run-result.js'
import { formatWakeTime } from '../core/base/clock.js'
import { escapeInvisible, formatArgumentsJson, formatCallPath } from '../core/format/format-call.js'
import { shorten } from '../core/format/format-words.js'
import type { RunMessage } from '../core/run/apply-message.js'
import { findFault, listChoices } from '../core/sessions/elicitation-answer.js'
import { toTarget } from '../core/sessions/inbox/session-message.js'
import { badUsageError, type CliIO } from './command.js'
import type { CommonOptions } from './options.js'
import { describeCall, formatElicitation } from './resume-hints.js'

/** Asks the user. Resolves with null if there is no answer (end of input, Ctrl-C, or `until` settled first). */
export type Ask = (question: string, until?: Promise<unknown>) => Promise<string | null>

/** The answer to a resting run, or a function that answers everything in its result. */
export type Answer = RunMessage | ((rest: RunResult) => RunMessage[])

/** Returns the argument, stdin for `-`, the fallback, or piped stdin, in this order. */
export async function choosePrompt(
  prompt: string | undefined,
  fallback: string | undefined,
  io: CliIO,
): Promise<string> {
  const isPiped =
    prompt === '-' || (prompt === undefined && fallback === undefined && io.stdin.isTTY !== true)
  const text = isPiped ? await readPiped(io) : (prompt ?? fallback ?? '')
  if (text.trim() !== '') return text
  throw badUsageError(
    isPiped
      ? 'stdin is empty. Pipe a prompt in, or pass it as an argument.'
      : 'There is no prompt. Pass one, such as: statewright run "What changed last week?"',
    'PROMPT',
  )
}

const maxBytes = 10 * 1024 * 1024

export async function readPiped({ stdin, signal }: Pick<CliIO, 'stdin' | 'signal'>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of addAbortSignal(signal, stdin)) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array)
    size += bytes.length
    if (size > maxBytes) throw badUsageError('The prompt on stdin is longer than 10 MiB.', 'PROMPT')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString('utf8').trim()
}

export function canAsk({ output }: Pick<CommonOptions, 'output'>, { stdin, stdout }: CliIO): boolean {
  return output === 'human' && stdin.isTTY === true && stdout.isTTY === true
}

/** Asks on stdout, and reads answers from stdin line by line. `close` releases stdin. */
export function openTerminalPrompt({ stdin, stdout, signal }: CliIO): { ask: Ask; close: () => void } {
  // The terminal keeps its own line editing, and Ctrl-C remains a signal.
  const lines = createInterface({ input: stdin, terminal: false })
  const iterator = lines[Symbol.asyncIterator]()
  const close = (): void => lines.close()
  signal.addEventListener('abort', close, { once: true })
  if (signal.aborted) close()
  // If a question is abandoned, the next question receives the pending line.
  let pendingLine: Promise<IteratorResult<string>> | undefined
  return {
    ask: async (question, until) => {
      if (signal.aborted) return null
      stdout.write(question)
      pendingLine ??= iterator.next()
      const line = await (until ? Promise.race([pendingLine, until.then(() => null)]) : pendingLine)
      if (line === null) return null
      pendingLine = undefined
      if (line.done === true) stdout.write('\n')
      return line.done === true ? null : line.value.trim()
    },
    close: () => {
      signal.removeEventListener('abort', close)
      close()
    },
  }
}

/** Asks the user for the pending input. Null if there is no answer, or if only a program can answer. */
export async function askForAnswer(result: RunResult, ask: Ask): Promise<Answer | null> {
  if (result.state === 'PAUSED') return askToResume(result.wakeAt, ask)
  if (result.reason === 'message') {
    const message = await ask('Your message (Enter to exit): ')
    return message === null || message === '' ? null : { type: 'reply', input: message }
  }
  const call = result.pending?.find(({ needs }) => needs === 'approval')
  if (call) return askForApproval(call, ask)
  const elicitation = result.pending?.find((one) => one.needs === 'elicitation')
  return elicitation ? askElicitation(elicitation, ask) : null
}

async function askForApproval(call: PendingCall, ask: Ask): Promise<Answer | null> {
  const why = call.reason === undefined ? '' : `${escapeInvisible(call.reason)} `
  const doubt = call.interrupted ? 'It was interrupted and may already have taken effect. ' : ''
  for (;;) {
    const question = `${why}${doubt}Run ${describeCall(call)}? (y)es, (n)o, (e)dit: `
    const choice = await askChoice(question, ['yes', 'no', 'edit'], ask)
    if (choice === null) return null
    if (choice === 'yes') return { type: 'approve', ...toTarget(call) }
    if (choice === 'no') {
      const reason = await ask('Reason for the model (Enter for none): ')
      return { type: 'reject', ...toTarget(call), why: reason ?? '' }
    }
    const edited = await askForArguments(call.arguments, ask)
    if (edited !== undefined) return { type: 'approve', ...toTarget(call), editedInput: edited }
  }
}

async function askChoice<Word extends string>(
  question: string,
  words: readonly Word[],
  ask: Ask,
): Promise<Word | null> {
  for (;;) {
    const text = (await ask(question))?.toLowerCase()
    if (text === undefined) return null
    const choice = words.find((word) => text === word || text === word[0])
    if (choice !== undefined) return choice
  }
}

/** The new arguments, or undefined if the user goes back. */
async function askForArguments(current: string, ask: Ask): Promise<unknown> {
  let question = `Now: ${formatArgumentsJson(current)}\nNew arguments as JSON (Enter to go back): `
  for (;;) {
    const text = await ask(question)
    if (text === null || text === '') return undefined
    try {
      return JSON.parse(text) as unknown
    } catch {
      question = 'That is not valid JSON. New arguments as JSON (Enter to go back): '
    }
  }
}

async function askToResume(wakeAt: number | undefined, ask: Ask): Promise<Answer | null> {
  const how = wakeAt === undefined ? 'is paused' : `sleeps until ${formatWakeTime(wakeAt)}`
  const choice = await askChoice(`The run ${how}. Continue now? (y)es, (n)o: `, ['yes', 'no'], ask)
  return choice === 'yes' ? { type: 'resume' } : null
}

/** Asks the user for the input that a tool's server requests. Null if there is no answer. */
async function askElicitation(
  call: Extract<PendingCall, { needs: 'elicitation' }>,
  ask: Ask,
): Promise<Answer | null> {
  const { elicitation } = call
  const head = `${formatCallPath(call)}: ${formatElicitation(elicitation, 2_000)}\n`
  const answerWith = (value: unknown): Answer => ({ type: 'toolOutput', ...toTarget(call), value })
  const choices =
    elicitation.mode === 'url' ? 'Open it? (y)es, (d)ecline, (c)ancel: ' : '(a)nswer, (d)ecline, (c)ancel: '
  const choice = await askChoice(head + choices, ['answer', 'yes', 'decline', 'cancel'], ask)
  if (choice === null) return null
  if (choice === 'decline' || choice === 'cancel') return answerWith({ action: choice })
  if (elicitation.mode === 'url') return answerWith({ action: 'accept' })
  const content = await askForm(elicitation, ask)
  return content && answerWith({ action: 'accept', content })
}

async function askForm(
  { schema }: Extract<Elicitation, { mode: 'form' }>,
  ask: Ask,
): Promise<Record<string, ElicitationValue> | null> {
  const content: Record<string, ElicitationValue> = {}
  for (const [key, field] of Object.entries(schema.properties)) {
    const value = await askField(key, field, schema.required?.includes(key) === true, ask)
    if (value === null) return null
    if (value !== undefined) content[key] = value
  }
  return content
}

/** Asks for a field. Undefined omits the field, and null means that there is no answer. */
async function askField(
  key: string,
  field: ElicitationField,
  isRequired: boolean,
  ask: Ask,
): Promise<ElicitationValue | undefined | null> {
  const { title = key, description, default: preset } = field
  const choices = listChoices(field)?.map((choice) => choice.const)
  const kind = choices
    ? `${field.type === 'array' ? 'some of ' : ''}${choices.join(' | ')}`
    : field.type === 'boolean'
      ? 'yes | no'
      : (field.format ?? { string: 'text', integer: 'whole number' }[field.type as string] ?? field.type)
  const enter =
    preset === undefined ? (isRequired ? '' : ', Enter to skip') : `, Enter for ${JSON.stringify(preset)}`
  const about = description === undefined ? '' : ` – ${description}`
  const question = escapeInvisible(shorten(`${title}${about} (${kind}${enter})`, 600))
  let fault = ''
  for (;;) {
    const text = await ask(`${fault}  ${question}: `)
    if (text === null) return null
    if (text === '' && preset !== undefined) return preset
    if (text === '' && !isRequired) return undefined
    const value = parseField(field, text)
    const problem = findFault(field, value)
    if (problem === false) return value as ElicitationValue
    fault = `  ${escapeInvisible(shorten(problem, 300))}.\n`
  }
}

function parseField({ type }: ElicitationField, text: string): unknown {
  if (type === 'number' || type === 'integer') return text.trim() === '' ? text : Number(text)
  if (type === 'array') return text === '' ? [] : text.split(',').map((one) => one.trim())
  if (type !== 'boolean') return text
  if (/^(y|yes|true)$/i.test(text)) return true
  return /^(n|no|false)$/i.test(text) ? false : text
}
