import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { RunInProgress, RunResult } from '../../../machines/agent/run-result.js'
import { nothingToResumeError } from '../../core/sessions/session-errors.js'
import { replaySession } from '../../core/sessions/replay-session.js'
import { sessionBusyError } from '../../core/sessions/store/store-refusals.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import { createAnswers } from '../given-answers.js'
import { badUsageError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import type { Answer } from '../conversation.js'
import { type ExitCode, toExitCode } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { canAsk } from '../terminal-prompt.js'
import { followRun, showRest } from '../follow-run.js'
import { isWorking } from '../resume-hints.js'
import { loadConfig } from '../load-config.js'
import { withSessionStore } from '../open-session-store.js'
import { readPiped } from '../prompt.js'
import { formatErrorLine, createPaint, wantsColor } from '../render/paint.js'
import { createRenderer } from '../render/create-renderer.js'
import { stripControls, shorten } from '../../core/format/format-words.js'
import { quoteShellWord } from '../shell-words.js'
import { rejectImplicitRehearsal } from '../model-setup.js'
import { withAgent } from '../with-agent.js'
import { formatCarriedOptions } from './common-options.js'
import { readResumeOptions, type ResumeCommandOptions, resumeOptionSpecs } from './resume-options.js'

export const resumeCommand: Command = {
  name: 'resume',
  about: 'Resumes the latest run of a session.',
  positional: 'ID [MESSAGE]',
  options: resumeOptionSpecs,
  notes: [
    'A run that was interrupted or paused goes on; the model reads MESSAGE (- is stdin). A run that waits for calls goes\n' +
      'on when all are answered, a run that waits for a message goes on with MESSAGE. At a terminal, you are asked.\n' +
      'Answers name a call with its fingerprint, CALL@FP, as the command prints it, because ids may repeat. A run that has\n' +
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
