import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentConfig } from '../../machines/agent/config.js'
import { isRestState, type RunResult } from '../../machines/agent/run-result.js'
import type { LocalInspector } from '../studio/index.js'
import { UsageError } from '../core/base/errors.js'
import { stripControls } from '../core/format/format-words.js'
import type { ResumeOptions } from '../core/agent/agent-options.js'
import type { Run } from '../core/run/run.js'
import { whenAborted } from '../core/base/abort.js'
import { askForAnswer } from './ask-for-answer.js'
import { type Ask, openTerminalPrompt, canAsk } from './terminal-prompt.js'
import type { CliIO } from './command.js'
import type { CommonOptions } from './commands/common-options.js'
import { type Answer, Conversation } from './conversation.js'
import { type ExitCode, toExitCode, exitCodes } from './exit-codes.js'
import { formatResumeHint, formatResumeCommand, describeWait } from './resume-hints.js'
import { RunDrain, ReleasedRunError } from './drain.js'
import { createRenderer } from './render/create-renderer.js'

export interface FollowOptions {
  start: (given: Pick<ResumeOptions, 'signal' | 'inspect'>) => Run | Promise<Run>
  /** Answers for the run's rests, in order, before the user is asked. */
  answers?: readonly Answer[]
  limits: AgentConfig['limits']
  view: Pick<CommonOptions, 'output' | 'inspect'>
  /** A text for the user before the run. */
  opening?: string | undefined
  /** The options that a later command needs; null when the session is not stored. */
  carried: string | null
  /** Whether the studio shows the run, too: the first answer counts, from the page or the terminal. */
  isWatched?: boolean
  /** How long the run goes on after SIGTERM, if its session is stored. */
  drainMs: number
  io: CliIO
}

/** Shows a run from its start to the rest without an answer. Rejects when the run is refused. */
export async function followRun(options: FollowOptions): Promise<ExitCode> {
  const { view, opening, carried, drainMs, io } = options
  const drain = carried === null ? null : new RunDrain(io, drainMs)
  let inspector: LocalInspector | undefined
  try {
    if (view.inspect) inspector = await openInspector(io)
    if (opening !== undefined) (view.output === 'human' ? io.stdout : io.stderr).write(`${opening}\n`)
    const result = await watchRun(options, { inspector, drain })
    await drain?.finish()
    showRest(result, { isHuman: view.output === 'human', carried, io })
    return toExitCode(result)
  } catch (error) {
    if (!(error instanceof ReleasedRunError)) throw error
    const next = formatResumeCommand(error.sessionId, { state: 'RUNNING' })
    io.stderr.write(
      `statewright: the run was released and can be resumed.\nGo on with: ${next}${carried ?? ''}\n`,
    )
    return exitCodes.left
  } finally {
    await drain?.finish()
    await inspector?.close()
  }
}

async function watchRun(
  options: FollowOptions,
  { inspector, drain }: { inspector: LocalInspector | undefined; drain: RunDrain | null },
): Promise<RunResult> {
  const { start, answers = [], isWatched = false, limits, view, io } = options
  const renderer = createRenderer(view.output, limits, io)
  const gone = new AbortController()
  // The reader has closed the pipe (`| head`): stop the run.
  const onGone = () => {
    gone.abort(new Error('The reader of stdout has gone.'))
  }
  io.stdout.on('error', onGone)
  let stop = (): void => undefined
  const work = new RunInterrupts(io.signal)
  try {
    const signal = AbortSignal.any([isWatched ? work.signal : io.signal, gone.signal])
    const run = await start({ signal, ...(inspector && { inspect: inspector.inspect }) })
    drain?.follow(run)
    const events = run.events$.subscribe({
      next: (event) => {
        // The first event of a refused run: the command prints the reason itself.
        if (view.output === 'human' && event.type === 'warning' && event.seq === 1) return
        const text = renderer.renderEvent(event)
        if (text !== '') io.stdout.write(text)
      },
      // A refused run rejects `result` too.
      error: () => undefined,
    })
    stop = () => {
      events.unsubscribe()
    }
    const conversation = new Conversation(run, drain?.released)
    let result = await conversation.waitForRest()
    for (const answer of answers) {
      if (!isRestState(result.state) || drain?.hasBegun) break
      // oxlint-disable-next-line no-await-in-loop -- each is said at a rest
      result = await conversation.sendAnswer(answer)
    }
    if (isWatched) result = await answerBesideStudio(conversation, result, { work, drain, view, io })
    else if (canAsk(view, io)) result = await answerAtTerminal(conversation, result, { signal, drain, io })
    io.stdout.write(renderer.renderResult(result))
    return result
  } finally {
    stop()
    work.disable()
    io.stdout.off('error', onGone)
  }
}

/** Asks at each rest, until a final state or until there is no answer. */
async function answerAtTerminal(
  conversation: Conversation,
  rest: RunResult,
  { signal, drain, io }: { signal: AbortSignal; drain: RunDrain | null; io: CliIO },
): Promise<RunResult> {
  if (!isRestState(rest.state)) return rest
  const { ask: askAtTerminal, close } = openTerminalPrompt(io)
  const ask: Ask = (question) => askAtTerminal(question, drain?.sigtermArrived)
  try {
    let result: RunResult = rest
    const goesOn = (): boolean => isRestState(result.state) && drain?.hasBegun !== true
    while (goesOn()) {
      // oxlint-disable no-await-in-loop -- one question at a time
      const answer = await askForAnswer(result, ask)
      // The run may have been cancelled meanwhile.
      if (signal.aborted) return await conversation.run.result
      if (answer === null || drain?.hasBegun) return result
      try {
        result = await conversation.sendAnswer(answer)
      } catch (error) {
        // The edit is invalid: show why, and ask again.
        if (!(error instanceof UsageError)) throw error
        io.stdout.write(`${stripControls(error.message)}\n`)
      }
      // oxlint-enable no-await-in-loop
    }
    return result
  } finally {
    close()
  }
}

/** Prints below a result the session, what it waits for, and the command that continues it. */
export function showRest(
  result: RunResult,
  { isHuman, carried, io }: { isHuman: boolean; carried: string | null; io: CliIO },
): void {
  if (isHuman && carried !== null) io.stdout.write(`Session ${result.sessionId}\n`)
  if (isRestState(result.state)) io.stderr.write(`statewright: ${describeWait(result)}\n`)
  const next = formatResumeHint(result, carried)
  if (next !== null && (isHuman || result.resumable))
    (result.resumable ? io.stderr : io.stdout).write(`${next}\n`)
}

/** How long a run waits until a browser opens the page, in milliseconds. */
const viewerTimeoutMs = 60_000

/**
 * Starts the inspector, says where to look, and waits until a browser does: a run is often over before a browser has
 * opened. Throws a StatewrightError when its packages are not installed.
 */
async function openInspector({ stderr, signal }: CliIO): Promise<LocalInspector> {
  const { startInspector } = await import('../studio/index.js')
  const inspector = await startInspector()
  stderr.write(
    `Stately's inspector: ${inspector.url}\n` +
      `Open it in a browser: the run starts then, or after ${viewerTimeoutMs / 1000} seconds.\n`,
  )
  const enough = new AbortController()
  const waiting = AbortSignal.any([signal, enough.signal])
  await Promise.race([
    inspector.viewed,
    sleep(viewerTimeoutMs, undefined, { signal: waiting }).catch(() => undefined),
  ])
  enough.abort()
  return inspector
}

/** An answer within this time, in milliseconds, cannot be an answer to a question that has just appeared. */
const minReadingMs = 1_000

/**
 * Answers a run from rest to rest while the studio shows it, too. The first answer counts, from the page or the terminal; when
 * the page is faster, the question at the terminal is withdrawn. Ends at a final state, or with Ctrl-C at a rest.
 */
async function answerBesideStudio(
  conversation: Conversation,
  rest: RunResult,
  {
    work,
    drain,
    view,
    io,
  }: { work: RunInterrupts; drain: RunDrain | null; view: Pick<CommonOptions, 'output'>; io: CliIO },
): Promise<RunResult> {
  const terminal = canAsk(view, io) ? openTerminalPrompt(io) : null
  const interrupted = new Promise<null>((resolve) => {
    whenAborted(io.signal, () => {
      resolve(null)
    })
    void drain?.sigtermArrived.then(() => resolve(null))
  })
  let result: RunResult = rest
  const goesOn = (): boolean => isRestState(result.state) && drain?.hasBegun !== true
  let isTakenBack = false
  /** Input for a withdrawn question must not answer the next one. */
  const ask = async (question: string, moved: Promise<true>): Promise<string | null> => {
    const began = performance.now()
    const line = (await terminal?.ask(question, Promise.race([moved, interrupted]))) ?? null
    const isForBefore = isTakenBack && line !== null && performance.now() - began < minReadingMs
    isTakenBack = false
    if (!isForBefore) return line
    io.stdout.write('The question has changed in the meantime.\n')
    return (await terminal?.ask(question, moved)) ?? null
  }
  try {
    while (goesOn()) {
      // oxlint-disable no-await-in-loop -- one rest after the other
      if (conversation.run.state !== result.state) {
        // The page has answered.
        result = await conversation.waitForRest()
        continue
      }
      work.disable()
      const { moved, hasMoved, stop } = conversation.watchForChange()
      const where = terminal ? 'Answer it here, or in the studio.' : 'Answer it in the studio.'
      io.stderr.write(`statewright: ${describeWait(result)} ${where}\n`)
      const answer = terminal && (await askForAnswer(result, (question) => ask(question, moved)))
      // Without an answer here, wait for one from the page.
      const isLeft = answer === null && (await Promise.race([moved, interrupted])) === null
      stop()
      if ((isLeft && !hasMoved()) || drain?.hasBegun) return result
      work.enable()
      if (answer === null) {
        if (terminal) io.stdout.write('\nThat was answered in the studio.\n')
        isTakenBack = true
        result = await conversation.waitForRest()
        continue
      }
      try {
        result = await conversation.sendAnswer(answer)
      } catch (error) {
        // The edit is invalid, or the page was faster: show why, and ask again.
        if (!(error instanceof UsageError)) throw error
        io.stdout.write(`${stripControls(error.message)}\n`)
        result = await conversation.waitForRest()
      }
      // oxlint-enable no-await-in-loop
    }
    return result
  } finally {
    terminal?.close()
  }
}

/**
 * The first Ctrl-C of a run with `--studio`: it cancels a run that works, and at a rest it ends the command, so that the session
 * can be resumed. Without `--studio`, main.ts aborts the signal that runs are started with; a second Ctrl-C ends the process there.
 */
class RunInterrupts {
  readonly #abort = new AbortController()
  readonly #interrupt: AbortSignal
  #unfollow: () => void = () => undefined

  constructor(interrupt: AbortSignal) {
    this.#interrupt = interrupt
    this.enable()
  }

  /** The run's signal. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The run works: Ctrl-C cancels it. */
  enable(): void {
    this.#unfollow()
    this.#unfollow = whenAborted(this.#interrupt, (why) => {
      this.#abort.abort(new Error(why))
    })
  }

  /** The run rests: Ctrl-C does not cancel it. */
  disable(): void {
    this.#unfollow()
  }
}
