import type { AgentContext } from '../../../machines/agent/context.js'
import type { PendingCall, RunInProgress, RunResult } from '../../../machines/agent/run-result.js'
import { describeError } from '../../core/base/errors.js'
import { formatCallId } from '../../core/format/format-call.js'
import { shorten, stripControls } from '../../core/format/format-words.js'
import { formatShellOption, quoteShellWord } from '../../core/format/shell-words.js'
import { readElicitationAnswer } from '../../core/sessions/elicitation-answer.js'
import { readSessionAt, toSessionSnapshot } from '../../core/sessions/replay-session.js'
import { nothingToResumeError } from '../../core/sessions/session-errors.js'
import { sessionBusyError } from '../../core/sessions/store/store-error.js'
import type { ListedSession, SessionStore } from '../../core/sessions/store/store.js'
import { badUsageError, type CliIO, defineCommand } from '../command.js'
import { type ExitCode, toExitCode } from '../exit-codes.js'
import { followRun, showRest } from '../follow-run.js'
import { loadConfig, type Refuse } from '../load.js'
import { withAgent } from '../model-setup.js'
import { type CommonOptions, formatCarriedOptions, readCommonOptions, runOptions } from '../options.js'
import { createOutputPaint } from '../output.js'
import { toTarget } from '../../core/sessions/inbox/session-message.js'
import { type Answer, canAsk, readPiped } from '../prompt.js'
import { createRenderer, formatErrorLine } from '../renderer.js'
import {
  type CallMatch,
  describeCall,
  describeNeed,
  formatCallWord,
  formatExample,
  isWorking,
  matchCall,
} from '../resume-hints.js'
import { withSession } from '../session-store.js'
import { exitCodesNote } from './run.js'

type AnswerKind = 'approve' | 'reject' | 'output'

/** An answer on the command line. Where the call's id ends depends on the pending calls. */
interface AnswerOption {
  kind: AnswerKind
  text: string
}

interface ResumeCommandOptions extends CommonOptions {
  /** `-` means stdin. */
  message: string | undefined
  answers: readonly AnswerOption[]
}

export const resumeCommand = defineCommand({
  name: 'resume',
  about: 'Resumes the latest run of a session.',
  positional: 'ID [MESSAGE…]',
  options: {
    approve: {
      value: 'CALL@FP[=JSON]',
      about: 'approve a call, optionally with new arguments; can be repeated',
    },
    reject: { value: 'CALL@FP[=WHY]', about: 'reject a call; the model reads the reason; can be repeated' },
    output: { value: 'CALL@FP=TEXT', about: 'the result of a call that you executed; can be repeated' },
    ...runOptions,
  },
  notes: [
    'A run that was interrupted or paused continues; the model reads MESSAGE (- is stdin). A run that is waiting for calls ' +
      'continues when all are answered. A run that is waiting for a message continues with MESSAGE. In a terminal, the command prompts you. ' +
      'If the run has ended, its result is shown.',
    'An answer names a call and its fingerprint, CALL@FP, as the command prints it, because arguments may change. Use the same ' +
      'model, tools and instructions as the run. Its limits do not change.',
    exitCodesNote,
    'Examples:\n' +
      '  statewright resume 6f1c… --tools ./tools.mjs\n' +
      '  statewright resume 6f1c… --approve call_1@9f3c…\n' +
      '  statewright resume 6f1c… --approve \'call_1@9f3c…={"to":"bob@example.com"}\'\n' +
      "  statewright resume 6f1c… --reject 'call_2@01ab…=Not on a Friday.'\n" +
      '  statewright resume 6f1c… "Use the newer file."',
  ],
  execute: async (parsed, io) => {
    const words = parsed.positionals.slice(1)
    const options = {
      ...readCommonOptions(parsed),
      message: words.length === 0 ? undefined : words.join(' '),
      answers: (['approve', 'reject', 'output'] as const).flatMap((kind) =>
        parsed.all(kind).map((text) => ({ kind, text })),
      ),
    }
    return withSession(parsed, io, (store, session) => resumeSession(store, session, options, io))
  },
})

async function resumeSession(
  store: SessionStore,
  { id, holder }: ListedSession,
  options: ResumeCommandOptions,
  io: CliIO,
): Promise<ExitCode> {
  if (holder !== null) throw sessionBusyError(id, holder)
  const { run: result, snapshot } = toSessionSnapshot(await readSessionAt(store, id))
  if (result === null || snapshot === null) throw nothingToResumeError(id)
  const { limits } = (snapshot.context as AgentContext).config
  const message = options.message === '-' ? await readPiped(io) : options.message
  if (message?.trim() === '')
    throw badUsageError('The message is empty. Write a message, or omit MESSAGE.', 'MESSAGE')
  const answers = collectAnswers(result, message, options)
  if (!isWorking(result) && answers.length === 0 && !(result.resumable && canAsk(options, io))) {
    const isHuman = options.output === 'human'
    if (isHuman && result.output !== '') io.stdout.write(`${stripControls(result.output)}\n`)
    if (isHuman) io.stdout.write(formatErrorLine(result, createOutputPaint(io)))
    io.stdout.write(createRenderer(options.output, limits, io).renderResult(result))
    showRest(result, { isHuman, carried: formatCarriedOptions(options), io })
    return toExitCode(result)
  }
  const file = await loadConfig(options.config, io.cwd)
  return withAgent({ options, file, store }, io, (agent, setup) =>
    followRun({
      start: async (runOptions) => {
        const run = await agent.resume(id, runOptions)
        // An active run reads the message at the next safe point.
        if (isWorking(result) && message !== undefined) run.steer(message, options)
        return run
      },
      answers,
      limits,
      view: options,
      opening: setup.opening,
      carried: formatCarriedOptions(options),
      drainMs: options.drainMs,
      io,
    }),
  )
}

function collectAnswers(
  result: RunResult | RunInProgress,
  message: string | undefined,
  { answers }: ResumeCommandOptions,
): Answer[] {
  const toCalls = createAnswers(result, answers)
  if (message === undefined) return result.state === 'PAUSED' ? [{ type: 'resume' }] : toCalls
  if (isWorking(result)) return []
  if (!result.resumable)
    throw badUsageError(
      `The run has ended (${result.state}), so it accepts no messages. Start another run in its session: ` +
        `statewright run --session ${result.sessionId} ${quoteShellWord(shorten(message, 60))}`,
      'MESSAGE',
    )
  if (result.reason === 'message') return [{ type: 'reply', input: message }]
  return [{ type: 'steer', text: message }, ...toCalls]
}

/** Checks all answers before the first one is applied. @throws {CliError} `bad_usage` */
function createAnswers(
  { state, pending = [] }: RunResult | RunInProgress,
  options: readonly AnswerOption[],
): Answer[] {
  const answered = new Set<string>()
  return options.map(({ kind, text }) => {
    const refuse: Refuse = (message, cause) => badUsageError(`--${kind}: ${message}`, `--${kind}`, { cause })
    const match = matchCall(text, pending)
    if (match === undefined) throw refuse(describeUnknownCall(text, state, pending))
    const { call, rest } = match
    if ((call.needs !== 'approval') !== (kind === 'output')) throw refuse(describeWrongKind(call))
    if (match.kind !== 'same') throw refuse(describeOtherCall(kind, match))
    if (answered.has(call.callId)) throw refuse(`call '${formatCallId(call.callId)}' is answered twice.`)
    answered.add(call.callId)
    return createAnswer(kind, call, rest, refuse)
  })
}

function createAnswer(kind: AnswerKind, call: PendingCall, text: string | undefined, refuse: Refuse): Answer {
  const word = formatCallWord(call)
  if (kind === 'reject') return { type: 'reject', ...toTarget(call), why: text ?? '' }
  if (kind === 'approve') {
    const editedInput = text === undefined ? undefined : parseArguments(call, text, refuse)
    return { type: 'approve', ...toTarget(call), editedInput }
  }
  if (text === undefined)
    throw refuse(`the result is missing. Write ${formatShellOption('output', `${word}=TEXT`)}.`)
  try {
    if (call.elicitation !== undefined) readElicitationAnswer(call.elicitation, text)
  } catch (cause) {
    const example = formatShellOption('output', `${word}=${formatExample(call)}`)
    throw refuse(`${describeError(cause)} Write ${example}.`, cause)
  }
  return { type: 'toolOutput', ...toTarget(call), value: text }
}

function parseArguments(call: PendingCall, json: string, refuse: Refuse): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch (cause) {
    const example = formatShellOption('approve', `${formatCallWord(call)}={"key": "value"}`)
    const problem = `the arguments for call '${formatCallId(call.callId)}' are not valid JSON.`
    throw refuse(`${problem} Write ${example}.`, cause)
  }
}

/** Without the fingerprint, an answer could apply to arguments that the user has not seen. */
function describeOtherCall(kind: AnswerKind, { call, kind: match }: CallMatch): string {
  const id = formatCallId(call.callId)
  const problem =
    match === 'bare'
      ? `'${id}' names the call without its fingerprint. The call is`
      : `call '${id}' has different arguments now:`
  const remedy = formatShellOption(kind, formatCallWord(call) + (kind === 'output' ? '=TEXT' : ''))
  return `${problem} ${describeCall(call)}. To answer it: ${remedy}`
}

function describeUnknownCall(text: string, state: string, pending: readonly PendingCall[]): string {
  const waiting =
    pending.length === 0
      ? `No call is waiting for an answer (the run is ${state})`
      : `Pending: ${pending.map(describeNeed).join('; ')}`
  return `no call '${shorten(text, 64)}' is pending. ${waiting}.`
}

function describeWrongKind(call: PendingCall): string {
  const word = formatCallWord(call)
  const remedy =
    call.needs === 'approval'
      ? `${formatShellOption('approve', word)} or ${formatShellOption('reject', word)}`
      : formatShellOption('output', `${word}=${call.elicitation ? formatExample(call) : 'TEXT'}`)
  return `this does not answer call '${formatCallId(call.callId)}'. Use ${remedy}.`
}
