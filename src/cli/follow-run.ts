import type { AgentConfig } from '../../machines/agent/config.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { isRestState, isWorkState, type RunResult } from '../../machines/agent/run-result.js'
import { toRunResult } from '../../machines/agent/to-result.js'
import { type CliIO, writeNotice } from './command.js'
import { type ExitCode, exitCodes, toExitCode } from './exit-codes.js'
import type { CommonOptions } from './options.js'
import { type Answer, askForAnswer, canAsk, openTerminalPrompt } from './prompt.js'
import { createRenderer } from './renderer.js'
import { describeWait, formatResumeCommand, formatResumeHint } from './resume-hints.js'
import type { ResumeOptions } from '../core/agent/agent-options.js'
import { createNap, whenAborted } from '../core/base/abort.js'
import { systemClock } from '../core/base/clock.js'
import { UsageError } from '../core/base/errors.js'
import { stripControls } from '../core/format/format-words.js'
import { runControls } from '../core/live/run-controls.js'
import { applyMessage } from '../core/run/apply-message.js'
import type { Run } from '../core/run/run.js'
import type { LocalInspector } from '../studio/index.js'

/** The error for a run that was released while active, so that another process can resume it. */
class ReleasedRunError extends Error {
  constructor(readonly sessionId: string) {
    super('The run was released and can be resumed.')
  }
}

type Drain = ReturnType<typeof drainAtSigterm>

/** Drains a run after SIGTERM. The run asks no more questions, and stops at its next durable point after `drainMs`. */
function drainAtSigterm(io: Pick<CliIO, 'sigterm' | 'stderr'>, drainMs: number) {
  let resolveSigterm = (): void => undefined
  let rejectReleased: (error: unknown) => void = () => undefined
  const sigtermArrived = new Promise<void>((resolve) => (resolveSigterm = resolve))
  const released = new Promise<never>((_, reject) => (rejectReleased = reject))
  released.catch(() => undefined)
  let followed: Run | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  async function release(run: Run): Promise<void> {
    await run.started
    followed = undefined
    await runControls.release(run)
    throw new ReleasedRunError(run.sessionId)
  }

  function scheduleRelease(run: Run): void {
    const ms = isWorkState(run.state) ? drainMs : 0
    if (ms > 0)
      writeNotice(
        io,
        `the process is shutting down: the run continues for at most ${ms / 1000} s, then it can be resumed.`,
      )
    timer = setTimeout(() => void release(run).catch(rejectReleased), ms)
  }

  const removeListener = io.sigterm.setListener(() => {
    resolveSigterm()
    if (followed) scheduleRelease(followed)
  })
  return {
    sigtermArrived,
    /** Rejects with a `ReleasedRunError` when the session is released. Never resolves. */
    released,
    get hasBegun(): boolean {
      return io.sigterm.hasArrived
    },
    follow(run: Run): void {
      followed = run
      if (io.sigterm.hasArrived) scheduleRelease(run)
    },
    /** Releases the session of a run that rests or has ended, even if the run is interactive. */
    async finish(): Promise<void> {
      removeListener()
      clearTimeout(timer)
      const run = followed
      followed = undefined
      if (io.sigterm.hasArrived && run) await runControls.release(run)
    },
  }
}

interface FollowOptions {
  start: (options: Pick<ResumeOptions, 'signal' | 'inspect'>) => Run | Promise<Run>
  /** Answers to give when the run rests, in order, before the user is asked. */
  answers?: readonly Answer[]
  limits: AgentConfig['limits']
  view: Pick<CommonOptions, 'output' | 'inspect' | 'by'>
  opening?: string | undefined
  /** The options that a later command needs. Null if the session is not stored. */
  carried: string | null
  /** Whether the studio also shows the run. The first answer applies, from the page or the terminal. */
  isWatched?: boolean
  /** How long the run continues after SIGTERM if its session is stored. */
  drainMs: number
  io: CliIO
}

/** Shows a run until it ends, or rests without an answer. Rejects if the run is refused. */
export async function followRun(options: FollowOptions): Promise<ExitCode> {
  const { view, opening, carried, drainMs, io } = options
  const drain = carried === null ? null : drainAtSigterm(io, drainMs)
  let inspector: LocalInspector | undefined
  try {
    if (view.inspect) inspector = await openInspector(io)
    if (opening !== undefined) (view.output === 'human' ? io.stdout : io.stderr).write(`${opening}\n`)
    const result = await watchRun(options, { inspector, drain })
    await drain?.finish()
    showRest(result, { isHuman: view.output === 'human', isAsked: canAsk(view, io), carried, io })
    return toExitCode(result)
  } catch (error) {
    if (!(error instanceof ReleasedRunError)) throw error
    const next = formatResumeCommand(error.sessionId, { state: 'RUNNING' })
    writeNotice(io, 'the run was released and can be resumed.')
    io.stderr.write(`Continue with: ${next}${carried ?? ''}\n`)
    return exitCodes.released
  } finally {
    await drain?.finish()
    await inspector?.close()
  }
}

async function watchRun(
  options: FollowOptions,
  { inspector, drain }: { inspector: LocalInspector | undefined; drain: Drain | null },
): Promise<RunResult> {
  const { start, answers = [], isWatched = false, limits, view, io } = options
  const renderer = createRenderer(view.output, limits, io, answers.length > 0)
  const gone = new AbortController()
  // If the reader closes the pipe (`| head`), the run stops.
  const onGone = (): void => gone.abort(new Error('The reader of stdout has closed it.'))
  io.stdout.on('error', onGone)
  // The terminal echoes ^C on the current line.
  const unfollow = whenAborted(io.signal, () => {
    if (canAsk(view, io)) io.stdout.write('\n')
  })
  let stop = (): void => undefined
  const work = followInterrupts(io.signal)
  try {
    const signal = AbortSignal.any([isWatched ? work.signal : io.signal, gone.signal])
    const run = await start({ signal, ...(inspector && { inspect: inspector.inspect }) })
    drain?.follow(run)
    const events = run.events$.subscribe({
      next: (event) => {
        // A refused run starts with this event, but the command itself prints the reason.
        if (view.output === 'human' && event.type === 'warning' && event.seq === 1) return
        const text = renderer.renderEvent(event)
        if (text !== '') io.stdout.write(text)
      },
      // A refused run also rejects `result`.
      error: () => undefined,
    })
    stop = () => events.unsubscribe()
    const conversation = createConversation(run, view.by, drain?.released)
    let result = await conversation.waitForRest()
    for (const answer of answers) {
      if (!isRestState(result.state) || drain?.hasBegun) break
      // An answer is given only after the run waits for it.
      result = await conversation.sendAnswer(answer, result)
    }
    if (isWatched || canAsk(view, io))
      result = await answerRests(conversation, result, {
        signal,
        work: isWatched ? work : null,
        drain,
        view,
        io,
      })
    io.stdout.write(renderer.renderResult(result))
    return result
  } finally {
    stop()
    work.disable()
    unfollow()
    io.stdout.off('error', onGone)
  }
}

const pollMs = 50

type Conversation = ReturnType<typeof createConversation>

/** `released` rejects if the run is released to another process, because the run then no longer rests here. */
function createConversation(
  run: Run,
  by: string | undefined,
  released: Promise<never> = new Promise(() => undefined),
) {
  const waitForRest = (): Promise<RunResult> => Promise.race([run.result, released])

  function sendAnswer(answer: Answer, rest: RunResult): Promise<RunResult> {
    const messages = typeof answer === 'function' ? answer(rest) : [answer]
    for (const message of messages) applyMessage(run, { ...message, by })
    return waitForRest()
  }

  /** Shows why an answer is refused: its edit is invalid, or the page answered first. */
  async function tryAnswer(answer: Answer, rest: RunResult, { stdout }: CliIO): Promise<RunResult> {
    try {
      return await sendAnswer(answer, rest)
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      stdout.write(`${stripControls(error.message)}\n`)
      return waitForRest()
    }
  }

  function describeState(): string {
    const { context } = run.snapshot() as { context: AgentContext }
    const { state, pending = [] } = toRunResult(context)
    const counts = [context.messages.length, context.steering.length]
    return [state, ...counts, ...pending.map(({ callId }) => callId)].join(' ')
  }

  /** `moved` resolves when the run receives an answer from elsewhere, because only answers change a resting run. */
  function watchForChange(): { moved: Promise<true>; hasMoved: () => boolean; stop: () => void } {
    const before = describeState()
    const hasMoved = (): boolean => describeState() !== before
    let timer: ReturnType<typeof setInterval> | undefined
    const moved = new Promise<true>((resolve) => {
      // An answer to one of several calls emits no event, so the state is polled.
      timer = setInterval(() => {
        if (!hasMoved()) return
        clearInterval(timer)
        resolve(true)
      }, pollMs)
    })
    return { moved, hasMoved, stop: () => clearInterval(timer) }
  }

  return { run, waitForRest, sendAnswer, tryAnswer, watchForChange }
}

type RestView = Pick<FollowOptions, 'carried' | 'io'> & { isHuman: boolean; isAsked?: boolean }

/** Prints the session of a result, the pending calls, and the command that continues it. */
export function showRest(result: RunResult, { isHuman, isAsked = false, carried, io }: RestView): void {
  if (isHuman && carried !== null) io.stdout.write(`Session ${result.sessionId}\n`)
  if (isRestState(result.state)) writeNotice(io, describeWait(result, isAsked))
  const next = formatResumeHint(result, carried)
  if (next !== null && (isHuman || result.resumable))
    (result.resumable ? io.stderr : io.stdout).write(`${next}\n`)
}

/** Maximum time to wait for a browser to open the page, in milliseconds. */
const viewerTimeoutMs = 60_000

/** Waits for a browser, because a run is often over before one opens. @throws {StatewrightError} */
async function openInspector({ stderr, signal }: CliIO): Promise<LocalInspector> {
  const { startInspector } = await import('../studio/index.js')
  const inspector = await startInspector()
  stderr.write(
    `Stately's inspector: ${inspector.url}\n` +
      `Open it in a browser: the run starts then, or after ${viewerTimeoutMs / 1000} seconds.\n`,
  )
  const nap = createNap(systemClock)
  void inspector.viewed.then(nap.wake)
  await nap.sleep(viewerTimeoutMs, signal)
  return inspector
}

/** An answer that arrives within this time, in milliseconds, cannot be for a question that has just appeared. */
const minReadingMs = 1_000

interface Rests extends Pick<FollowOptions, 'view' | 'io'> {
  signal: AbortSignal
  /** With the studio, whose page may answer too. */
  work: ReturnType<typeof followInterrupts> | null
  drain: Drain | null
}

/**
 * Asks until the run ends or nobody answers. If the studio's page answers first, the question at the terminal is
 * withdrawn. With the studio, Ctrl-C ends the question while the run rests.
 */
async function answerRests(
  conversation: Conversation,
  rest: RunResult,
  { signal, work, drain, view, io }: Rests,
): Promise<RunResult> {
  if (!isRestState(rest.state)) return rest
  const { run, waitForRest, tryAnswer, watchForChange } = conversation
  const terminal = canAsk(view, io) ? openTerminalPrompt(io) : null
  const interrupted = new Promise<null>((resolve) => {
    if (work) whenAborted(io.signal, () => resolve(null))
    void drain?.sigtermArrived.then(() => resolve(null))
  })
  let result = rest
  const continues = (): boolean => isRestState(result.state) && drain?.hasBegun !== true
  let isWithdrawn = false
  /** Input for a withdrawn question must not answer the next one. */
  async function ask(question: string, withdrawn: Promise<unknown>): Promise<string | null> {
    const startedAt = performance.now()
    const line = (await terminal?.ask(question, Promise.race([withdrawn, interrupted]))) ?? null
    const isForPrevious = isWithdrawn && line !== null && performance.now() - startedAt < minReadingMs
    isWithdrawn = false
    if (!isForPrevious) return line
    io.stdout.write('The question has changed in the meantime.\n')
    return (await terminal?.ask(question, withdrawn)) ?? null
  }
  try {
    while (continues()) {
      // A state that the run has left was answered in the studio.
      if (work && run.state !== result.state) {
        result = await waitForRest()
        continue
      }
      work?.disable()
      const change = work && watchForChange()
      const where = terminal ? 'Answer here, or in the studio.' : 'Answer in the studio.'
      if (work) writeNotice(io, `${describeWait(result, terminal !== null)} ${where}`)
      const moved = change?.moved ?? interrupted
      const answer = terminal && (await askForAnswer(result, (question) => ask(question, moved)))
      // The run may have been cancelled in the meantime.
      if (!work && signal.aborted) return await run.result
      // Without an answer here, waits for one from the page.
      const isUnanswered = answer === null && (!change || (await Promise.race([moved, interrupted])) === null)
      change?.stop()
      if ((isUnanswered && !change?.hasMoved()) || drain?.hasBegun) return result
      work?.enable()
      if (answer === null) {
        if (terminal) io.stdout.write('\nAnswered in the studio.\n')
        isWithdrawn = true
      }
      result = answer === null ? await waitForRest() : await tryAnswer(answer, result, io)
    }
    return result
  } finally {
    terminal?.close()
  }
}

/** With `--studio`, Ctrl-C cancels an active run, but leaves a resting run so that it can be resumed. */
function followInterrupts(interrupt: AbortSignal) {
  const abort = new AbortController()
  const follow = () => whenAborted(interrupt, (why) => abort.abort(new Error(why)))
  let disable = follow()
  return {
    signal: abort.signal,
    enable: (): void => {
      disable()
      disable = follow()
    },
    disable: (): void => disable(),
  }
}
