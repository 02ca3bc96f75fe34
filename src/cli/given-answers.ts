import type { PendingCall, RunInProgress, RunResult } from '../../machines/agent/run-result.js'
import { badUsageError } from './cli-error.js'
import type { AnswerKind, GivenAnswer } from './commands/resume-options.js'
import type { Answer } from './conversation.js'
import { formatCallId } from '../core/format/format-call.js'
import { shorten } from '../core/format/format-words.js'
import { describeCall, describeNeed } from './resume-hints.js'
import { type CallMatch, matchCall, formatQuestionWord } from './question-word.js'
import { quoteShellWord } from './shell-words.js'

/**
 * Reads the command line's answers to pending calls. All answers are checked before the first one is applied.
 * @throws {CliError} `bad_usage` for a call that is not pending, for other arguments, for the wrong kind of answer, and for a
 * second answer to one call
 */
export function createAnswers(
  { state, pending = [] }: RunResult | RunInProgress,
  given: readonly GivenAnswer[],
): Answer[] {
  const answered = new Set<string>()
  return given.map(({ kind, text }) => {
    const match = matchCall(text, pending)
    if (match === undefined) throw unknownCallError(kind, text, state, pending)
    const { call, rest } = match
    if ((call.needs === 'client') !== (kind === 'output')) throw wrongKindError(kind, call)
    if (match.kind !== 'asked') throw wrongQuestionError(kind, match)
    if (answered.has(call.callId))
      throw badUsageError(`Call '${formatCallId(call.callId)}' is answered twice.`, `--${kind}`)
    answered.add(call.callId)
    return createAnswer(kind, call, rest)
  })
}

function createAnswer(kind: AnswerKind, call: PendingCall, text: string | undefined): Answer {
  const { callId, fingerprint } = call
  switch (kind) {
    case 'approve': {
      const edited = text === undefined ? undefined : parseArguments(call, text)
      return (run) => {
        run.approve(callId, edited, { fingerprint })
      }
    }
    case 'reject':
      return (run) => {
        run.reject(callId, text ?? '', { fingerprint })
      }
    default:
      if (text === undefined)
        throw badUsageError(
          `--output needs the result, too: --output ${quoteShellWord(`${formatQuestionWord(call)}=TEXT`)}.`,
          '--output',
        )
      return (run) => {
        run.addToolOutput(callId, text, { fingerprint })
      }
  }
}

function parseArguments(call: PendingCall, json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch (cause) {
    const example = quoteShellWord(`${formatQuestionWord(call)}={"key": "value"}`)
    const message = `--approve: the arguments for call '${formatCallId(call.callId)}' are not JSON. Write --approve ${example}.`
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
  const remedy = quoteShellWord(formatQuestionWord(call) + (kind === 'output' ? '=TEXT' : ''))
  return badUsageError(`${problem} ${describeCall(call)}. To answer that: --${kind} ${remedy}`, `--${kind}`)
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
      ? `--approve ${quoteShellWord(word)} or --reject ${quoteShellWord(word)}`
      : `--output ${quoteShellWord(`${word}=TEXT`)}`
  return badUsageError(
    `--${kind} does not fit call '${formatCallId(call.callId)}': answer it with ${remedy}.`,
    `--${kind}`,
  )
}
