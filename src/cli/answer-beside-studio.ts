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

/** Nobody reads a question and answers it in less, in milliseconds. */
const minReadingMs = 1_000

/**
 * Goes on from rest to rest while a page shows the run, too: whoever answers first, there or at the terminal, is heard,
 * and the question at the terminal is taken back when the page was faster. Ends at a final state, or with Ctrl-C at a rest.
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
  /** What was typed for a question that was taken back must not answer the next one. */
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
        // The page was faster than we.
        result = await conversation.waitForRest()
        continue
      }
      work.disable()
      const { moved, hasMoved, stop } = conversation.watchForChange()
      const where = terminal ? 'Answer it here, or in the studio.' : 'Answer it in the studio.'
      io.stderr.write(`statewright: ${describeWait(result)} ${where}\n`)
      const answer = terminal && (await askForAnswer(result, (question) => ask(question, moved)))
      // Without an answer from here it goes on waiting for one of the page's.
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
        // What was edited does not fit, or the page was faster: the person hears why, and is asked again.
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
