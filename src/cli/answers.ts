import type { PendingCall, RunInProgress, RunResult } from '../../machines/agent/run-result.js'
import { badUsage } from './cli-error.js'
import type { AnswerKind, GivenAnswer } from './commands/resume-options.js'
import type { Answer } from './conversation.js'
import { callWord } from '../core/format/call-words.js'
import { shorten } from '../core/format/words.js'
import { whatItAsks, whatItNeeds } from './going-on.js'
import { type Named, namedIn, questionWord } from './question-word.js'
import { shellWord } from './shell-words.js'

/**
 * The answers that were given on the command line to the calls that wait. All are checked before the first is said.
 * @throws {CliError} `bad_usage` for a call that does not wait, or not for this, an answer of the wrong kind, and a second one
 */
export function answersTo(
  { state, pending = [] }: RunResult | RunInProgress,
  given: readonly GivenAnswer[],
): Answer[] {
  const answered = new Set<string>()
  return given.map(({ kind, text }) => {
    const named = namedIn(text, pending)
    if (named === undefined) throw unknownCall(kind, text, state, pending)
    const { call, rest } = named
    if ((call.needs === 'client') !== (kind === 'output')) throw wrongKind(kind, call)
    if (named.for !== 'asked') throw unasked(kind, named)
    if (answered.has(call.callId))
      throw badUsage(`Call '${callWord(call.callId)}' is answered twice.`, `--${kind}`)
    answered.add(call.callId)
    return answerOf(kind, call, rest)
  })
}

function answerOf(kind: AnswerKind, call: PendingCall, text: string | undefined): Answer {
  const { callId, fingerprint } = call
  switch (kind) {
    case 'approve': {
      const edited = text === undefined ? undefined : parsed(call, text)
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
        throw badUsage(
          `--output needs the result, too: --output ${shellWord(`${questionWord(call)}=TEXT`)}.`,
          '--output',
        )
      return (run) => {
        run.addToolOutput(callId, text, { fingerprint })
      }
  }
}

function parsed(call: PendingCall, json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch (cause) {
    const example = shellWord(`${questionWord(call)}={"key": "value"}`)
    const message = `--approve: the arguments for call '${callWord(call.callId)}' are not JSON. Write --approve ${example}.`
    throw badUsage(message, '--approve', { cause })
  }
}

/** An answer that does not say what it answers could meet a call that nobody has read. */
function unasked(kind: AnswerKind, named: Named): Error {
  const { call } = named
  const id = callWord(call.callId)
  const asks =
    named.for === 'bare'
      ? `--${kind}: '${id}' says which call, but not for what. It asks for`
      : `--${kind}: call '${id}' asks for something else by now:`
  const remedy = shellWord(questionWord(call) + (kind === 'output' ? '=TEXT' : ''))
  return badUsage(`${asks} ${whatItAsks(call)}. To answer that: --${kind} ${remedy}`, `--${kind}`)
}

function unknownCall(kind: string, text: string, state: string, pending: readonly PendingCall[]): Error {
  const waiting =
    pending.length === 0
      ? `no call waits for an answer: the run is ${state}`
      : `what waits: ${pending.map(whatItNeeds).join('; ')}`
  return badUsage(`--${kind}: there is no call '${shorten(text, 64)}' that waits; ${waiting}.`, `--${kind}`)
}

function wrongKind(kind: AnswerKind, call: PendingCall): Error {
  const word = questionWord(call)
  const remedy =
    call.needs === 'approval'
      ? `--approve ${shellWord(word)} or --reject ${shellWord(word)}`
      : `--output ${shellWord(`${word}=TEXT`)}`
  return badUsage(
    `--${kind} does not fit call '${callWord(call.callId)}': answer it with ${remedy}.`,
    `--${kind}`,
  )
}
