import type { PendingAnswer, RunResult } from '../../machines/agent/outcome.js'
import { badUsage } from './cli-error.js'
import type { AnswerKind, GivenAnswer } from './commands/resume-options.js'
import type { Answer } from './conversation.js'
import { whatItNeeds } from './going-on.js'
import { shorten } from '../format/words.js'

/**
 * The answers that were given on the command line to the calls that wait. All are checked before the first is said.
 * @throws {CliError} `bad_usage` for a call that does not wait, an answer of the wrong kind, and a second one
 */
export function answersTo({ state, pending = [] }: RunResult, given: readonly GivenAnswer[]): Answer[] {
  const answered = new Set<string>()
  return given.map(({ kind, text }) => {
    const [call, rest] = calledIn(text, pending) ?? [undefined, undefined]
    if (call === undefined) throw unknownCall(kind, text, state, pending)
    if ((call.needs === 'client') !== (kind === 'output')) throw wrongKind(kind, call)
    if (answered.has(call.callId))
      throw badUsage(`Call '${shorten(call.callId, 64)}' is answered twice.`, `--${kind}`)
    answered.add(call.callId)
    return answerOf(kind, call, rest)
  })
}

/** The call that an answer begins with, and what follows its `=`. An id may have a `=` in it, too. */
function calledIn(
  text: string,
  pending: readonly PendingAnswer[],
): [PendingAnswer, string | undefined] | undefined {
  const fitting = pending.filter(({ callId }) => text === callId || text.startsWith(`${callId}=`))
  const call = fitting.sort((a, b) => b.callId.length - a.callId.length)[0]
  if (call === undefined) return undefined
  return [call, text === call.callId ? undefined : text.slice(call.callId.length + 1)]
}

function answerOf(
  kind: AnswerKind,
  { callId, fingerprint }: PendingAnswer,
  text: string | undefined,
): Answer {
  switch (kind) {
    case 'approve': {
      const edited = text === undefined ? undefined : parsed(callId, text)
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
        throw badUsage(`--output needs the result, too: --output '${callId}=TEXT'.`, '--output')
      return (run) => {
        run.toolOutput(callId, text)
      }
  }
}

function parsed(callId: string, json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch (cause) {
    const id = shorten(callId, 64)
    const message = `--approve: the arguments for call '${id}' are not JSON. Write --approve '${id}={"key": "value"}'.`
    throw badUsage(message, '--approve', { cause })
  }
}

function unknownCall(kind: string, text: string, state: string, pending: readonly PendingAnswer[]): Error {
  const waiting =
    pending.length === 0
      ? `no call waits for an answer: the run is ${state}`
      : `what waits: ${pending.map(whatItNeeds).join('; ')}`
  return badUsage(`--${kind}: there is no call '${shorten(text, 64)}' that waits; ${waiting}.`, `--${kind}`)
}

function wrongKind(kind: AnswerKind, { callId, needs }: PendingAnswer): Error {
  const id = shorten(callId, 64)
  const remedy = needs === 'approval' ? `--approve ${id} or --reject ${id}` : `--output '${id}=TEXT'`
  return badUsage(`--${kind} does not fit call '${id}': answer it with ${remedy}.`, `--${kind}`)
}
