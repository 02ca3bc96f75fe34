import { isRestState, type RunResult } from '../../machines/agent/run-result.js'
import { whenAborted } from '../core/base/abort.js'
import { UsageError } from '../core/base/errors.js'
import { stripControls } from '../core/format/format-words.js'
import { askForAnswer } from './ask-for-answer.js'
import { openTerminalPrompt, canAsk } from './terminal-prompt.js'
import type { CliIO } from './command.js'
import type { CommonOptions } from './commands/common-options.js'
import type { Conversation } from './conversation.js'
import { describeWait } from './resume-hints.js'
import type { RunInterrupts } from './run-interrupts.js'
import type { RunDrain } from './drain.js'

/** An answer within this time, in milliseconds, cannot be an answer to a question that has just appeared. */
const minReadingMs = 1_000

/**
 * Answers a run from rest to rest while the studio shows it, too. The first answer counts, from the page or the terminal; when
 * the page is faster, the question at the terminal is withdrawn. Ends at a final state, or with Ctrl-C at a rest.
 */
export async function answerBesideStudio(
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
