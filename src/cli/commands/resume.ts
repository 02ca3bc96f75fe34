import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { RunInProgress, RunResult, PendingCall } from '../../../machines/agent/run-result.js'
import { describeError } from '../../core/base/errors.js'
import { readElicitationAnswer } from '../../core/sessions/elicitation-answer.js'
import { nothingToResumeError } from '../../core/sessions/session-errors.js'
import { replaySession } from '../../core/sessions/replay-session.js'
import { sessionBusyError } from '../../core/sessions/store/store-refusals.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { stripControls, shorten } from '../../core/format/format-words.js'
import { formatCallId } from '../../core/format/format-call.js'
import { badUsageError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import type { Answer } from '../conversation.js'
import { type ExitCode, toExitCode } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { canAsk } from '../terminal-prompt.js'
import { followRun, showRest } from '../follow-run.js'
import { formatExample, isWorking, describeCall, describeNeed } from '../resume-hints.js'
import { loadConfig } from '../load-config.js'
import { withSessionStore } from '../open-session-store.js'
import { readPiped } from '../prompt.js'
import { formatErrorLine, createPaint, wantsColor } from '../render/paint.js'
import { createRenderer } from '../render/create-renderer.js'
import { formatShellOption, quoteShellWord } from '../../core/format/shell-words.js'
import { rejectImplicitRehearsal } from '../model-setup.js'
import { withAgent } from '../with-agent.js'
import { type CallMatch, matchCall, formatQuestionWord } from '../question-word.js'
import { type OptionSpecs, parseOptions } from '../parse-options.js'
import {
  formatCarriedOptions,
  agentOptionSpecs,
  type CommonOptions,
  drainOptionSpec,
  outputOptionSpecs,
  readCommonOptions,
  inlineScenario,
  storeOptionSpec,
} from './common-options.js'

const resumeOptionSpecs = {
  approve: {
    value: 'CALL@FP[=JSON]',
    about: 'let a call run, with other arguments if given; may be repeated',
  },
  reject: { value: 'CALL@FP[=WHY]', about: 'refuse a call; the model reads why; may be repeated' },
  output: { value: 'CALL@FP=TEXT', about: 'the result of a call that you carried out; may be repeated' },
  ...agentOptionSpecs,
  ...storeOptionSpec,
  ...drainOptionSpec,
  ...outputOptionSpecs,
} satisfies OptionSpecs

type AnswerKind = 'approve' | 'reject' | 'output'

/** An answer as it was typed. The pending calls decide where the call's id ends. */
interface GivenAnswer {
  kind: AnswerKind
  text: string
}

interface ResumeCommandOptions extends CommonOptions {
  id: string
  /** Undefined: not given. `-`: stdin. */
  message: string | undefined
  answers: readonly GivenAnswer[]
}

export const resumeCommand: Command = {
  name: 'resume',
  about: 'Resumes the latest run of a session.',
  positional: 'ID [MESSAGE]',
  options: resumeOptionSpecs,
  notes: [
    'A run that was interrupted or paused goes on; the model reads MESSAGE (- is stdin). A run that waits for calls goes\n' +
      'on when all are answered, a run that waits for a message goes on with MESSAGE. At a terminal, you are asked.\n' +
      'Answers name a call with its fingerprint, CALL@FP, as the command prints it, because arguments may change. A run that has\n' +
      'ended is shown. Give the model, tools and instructions of the run; its limits stay as they were.',
    'Exit codes: 0 completed, 1 error, 2 bad usage or configuration, 3 stopped by a limit or guardrail,\n' +
      '4 waits for input, 130 cancelled, 143 released at SIGTERM, to be resumed.',
    'Examples:\n' +
      '  statewright resume 6f1c… --tools ./tools.mjs\n' +
      "  statewright resume 6f1c… --tools ./tools.mjs --approve call_1@9f3c… --reject 'call_2@01ab…=Not on a Friday.'\n" +
      '  statewright resume 6f1c… --approve \'call_1@9f3c…={"to":"bob@example.com"}\'\n' +
      '  statewright resume 6f1c… "Use the newer file."',
  ],
  execute: async (args, io) => {
    const options = readResumeOptions(args)
    return withSessionStore(options.store, io, (store) => resumeSession(store, options, io))
  },
}

async function resumeSession(
  store: SessionStore,
  options: ResumeCommandOptions,
  io: CliIO,
): Promise<ExitCode> {
  const { id, holder } = await findSession(store, options.id)
  if (holder !== null) throw sessionBusyError(id, holder)
  const { run: result, snapshot } = await replaySession(store, id)
  if (result === null || snapshot === null) throw nothingToResumeError(id)
  const { limits } = (snapshot.context as AgentContext).config
  const carried = formatCarriedOptions(options)
  const message = await readMessage(options, io)
  const answers = collectAnswers(result, message, options)
  if (!isWorking(result) && answers.length === 0 && !(result.resumable && canAsk(options, io))) {
    showResult(result, { limits, carried, options, io })
    return toExitCode(result)
  }

  const file = await loadConfig(options.config, io.cwd)
  rejectImplicitRehearsal(options, file, io)
  return withAgent({ options, file, store }, io, (agent, setup) =>
    followRun({
      start: async (given) => {
        const run = await agent.resume(id, given)
        // A run at work reads it at the next safe point.
        if (isWorking(result) && message !== undefined) run.steer(message)
        return run
      },
      answers,
      limits,
      view: options,
      opening: setup.opening,
      carried,
      drainMs: options.drainMs,
      io,
    }),
  )
}

async function readMessage({ message }: ResumeCommandOptions, io: CliIO): Promise<string | undefined> {
  const text = message === '-' ? await readPiped(io) : message
  if (text?.trim() === '')
    throw badUsageError('The message is empty: give a text, or leave MESSAGE out.', 'MESSAGE')
  return text
}

/** The answers for the run at its rest, in order. */
function collectAnswers(
  result: RunResult | RunInProgress,
  message: string | undefined,
  { answers }: ResumeCommandOptions,
): Answer[] {
  const toCalls = createAnswers(result, answers)
  if (message === undefined) return result.state === 'PAUSED' ? [resumeAnswer] : toCalls
  if (isWorking(result)) return []
  if (!result.resumable) {
    throw badUsageError(
      `The run has ended (${result.state}), so it takes no message. Start another run in its session: ` +
        `statewright run --session ${result.sessionId} ${quoteShellWord(shorten(message, 60))}`,
      'MESSAGE',
    )
  }
  if (result.reason === 'message')
    return [
      (run) => {
        run.reply(message)
      },
    ]
  return [
    (run) => {
      run.steer(message)
    },
    ...toCalls,
  ]
}

const resumeAnswer: Answer = (run) => {
  run.resume()
}

/** Shows the state of a run that does not go on now. */
function showResult(
  result: RunResult,
  {
    limits,
    carried,
    options,
    io,
  }: {
    limits: AgentConfig['limits']
    carried: string
    options: ResumeCommandOptions
    io: CliIO
  },
): void {
  const isHuman = options.output === 'human'
  if (isHuman && result.output !== '') io.stdout.write(`${stripControls(result.output)}\n`)
  if (isHuman) io.stdout.write(formatErrorLine(result, createPaint(wantsColor(io.stdout, io.env))))
  io.stdout.write(createRenderer(options.output, limits, io).renderResult(result))
  showRest(result, { isHuman, carried, io })
}

/**
 * Reads the command line's answers to pending calls. All answers are checked before the first one is applied.
 * @throws {CliError} `bad_usage` for a call that is not pending, for other arguments, for the wrong kind of answer, and for a
 * second answer to one call
 */
function createAnswers(
  { state, pending = [] }: RunResult | RunInProgress,
  given: readonly GivenAnswer[],
): Answer[] {
  const answered = new Set<string>()
  return given.map(({ kind, text }) => {
    const match = matchCall(text, pending)
    if (match === undefined) throw unknownCallError(kind, text, state, pending)
    const { call, rest } = match
    if ((call.needs !== 'approval') !== (kind === 'output')) throw wrongKindError(kind, call)
    if (match.kind !== 'asked') throw wrongQuestionError(kind, match)
    if (answered.has(call.callId))
      throw badUsageError(`Call '${formatCallId(call.callId)}' is answered twice.`, `--${kind}`)
    answered.add(call.callId)
    return createAnswer(kind, call, rest)
  })
}

function createAnswer(kind: AnswerKind, call: PendingCall, text: string | undefined): Answer {
  switch (kind) {
    case 'approve': {
      const edited = text === undefined ? undefined : parseArguments(call, text)
      return (run) => {
        run.approve(call, edited)
      }
    }
    case 'reject':
      return (run) => {
        run.reject(call, text ?? '')
      }
    default:
      if (text === undefined)
        throw badUsageError(
          `--output needs the result, too: ${formatShellOption('output', `${formatQuestionWord(call)}=TEXT`)}.`,
          '--output',
        )
      checkElicitationAnswer(call, text)
      return (run) => {
        run.addToolOutput(call, text)
      }
  }
}

/** Before the first answer is applied. */
function checkElicitationAnswer(call: PendingCall, text: string): void {
  if (call.elicitation === undefined) return
  try {
    readElicitationAnswer(call.elicitation, text)
  } catch (cause) {
    const example = formatShellOption('output', `${formatQuestionWord(call)}=${formatExample(call)}`)
    const message = `--output: ${describeError(cause)} Write ${example}.`
    throw badUsageError(message, '--output', { cause })
  }
}

function parseArguments(call: PendingCall, json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch (cause) {
    const example = formatShellOption('approve', `${formatQuestionWord(call)}={"key": "value"}`)
    const message = `--approve: the arguments for call '${formatCallId(call.callId)}' are not JSON. Write ${example}.`
    throw badUsageError(message, '--approve', { cause })
  }
}

/** An answer needs the fingerprint: without it, the answer could apply to arguments that the user has not seen. */
function wrongQuestionError(kind: AnswerKind, match: CallMatch): Error {
  const { call } = match
  const id = formatCallId(call.callId)
  const problem =
    match.kind === 'bare'
      ? `--${kind}: '${id}' names the call without its fingerprint. The call is`
      : `--${kind}: call '${id}' has other arguments now:`
  const remedy = formatShellOption(kind, formatQuestionWord(call) + (kind === 'output' ? '=TEXT' : ''))
  return badUsageError(`${problem} ${describeCall(call)}. To answer that: ${remedy}`, `--${kind}`)
}

function unknownCallError(kind: string, text: string, state: string, pending: readonly PendingCall[]): Error {
  const waiting =
    pending.length === 0
      ? `no call waits for an answer: the run is ${state}`
      : `pending: ${pending.map(describeNeed).join('; ')}`
  return badUsageError(
    `--${kind}: there is no call '${shorten(text, 64)}' that waits; ${waiting}.`,
    `--${kind}`,
  )
}

function wrongKindError(kind: AnswerKind, call: PendingCall): Error {
  const word = formatQuestionWord(call)
  const remedy =
    call.needs === 'approval'
      ? `${formatShellOption('approve', word)} or ${formatShellOption('reject', word)}`
      : formatShellOption('output', `${word}=${call.elicitation ? formatExample(call) : 'TEXT'}`)
  return badUsageError(
    `--${kind} does not fit call '${formatCallId(call.callId)}': answer it with ${remedy}.`,
    `--${kind}`,
  )
}

/** Reads the arguments of `statewright resume`. Throws a CliError for invalid or contradictory ones. */
function readResumeOptions(args: readonly string[]): ResumeCommandOptions {
  const given = parseOptions(inlineScenario(args), resumeOptionSpecs)
  const [id, ...words] = given.positionals
  if (id === undefined) {
    throw badUsageError("Which session? Give its id: 'statewright sessions list' shows them.", 'ID')
  }
  const answers = (['approve', 'reject', 'output'] as const).flatMap((kind) =>
    given.all(kind).map((text): GivenAnswer => ({ kind, text })),
  )
  return {
    ...readCommonOptions(given),
    id,
    message: words.length === 0 ? undefined : words.join(' '),
    answers,
  }
}
