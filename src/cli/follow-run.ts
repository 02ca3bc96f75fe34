import type { RunResult } from '../../machines/agent/outcome.js'
import type { Run } from '../runtime/run.js'
import { answerRest } from './answer-rest.js'
import { asker } from './ask.js'
import type { CliIO } from './command.js'
import { type ExitCode, exitCodeOf } from './exit-codes.js'
import type { Renderer } from './render/renderer.js'
import { shorten, shownArguments } from './render/words.js'

export interface FollowOptions {
  start: (signal: AbortSignal) => Run
  renderer: Renderer
  io: CliIO
  /** Whether there is a person at the terminal who can answer what the run asks. */
  canAsk: boolean
}

/** Shows a run from its start to the rest at which nobody answers any more. Rejects when the run is refused. */
export async function followRun({ start, renderer, io, canAsk }: FollowOptions): Promise<ExitCode> {
  const gone = new AbortController()
  // Nobody reads any more (`| head`): no reason to spend more on it.
  const onGone = () => {
    gone.abort(new Error('The reader of stdout has gone.'))
  }
  io.stdout.on('error', onGone)
  const run = start(AbortSignal.any([io.signal, gone.signal]))
  const events = run.events$.subscribe({
    next: (event) => {
      const text = renderer.event(event)
      if (text !== '') io.stdout.write(text)
    },
    // A refused run rejects `result` too.
    error: () => undefined,
  })
  try {
    let result = await run.result
    if (canAsk && result.resumable) result = await talk(run, result, io)
    io.stdout.write(renderer.result(result))
    if (result.resumable) io.stderr.write(`statewright: ${whatItWaitsFor(result)}\n`)
    return exitCodeOf(result)
  } finally {
    events.unsubscribe()
    io.stdout.off('error', onGone)
  }
}

/** Asks and goes on until a final state, or until there is no answer. */
async function talk(run: Run, rest: RunResult, io: CliIO): Promise<RunResult> {
  const { ask, close } = asker(io)
  let result = rest
  let isAnswered = true
  try {
    while (isAnswered && result.resumable) {
      isAnswered = await answerRest(run, result, ask)
      // In either case: a run that was cancelled meanwhile has come to another rest.
      result = await run.result
    }
    return result
  } finally {
    close()
  }
}

function whatItWaitsFor({ state, pending = [] }: RunResult): string {
  if (state === 'PAUSED') return 'the run is paused, and nobody said that it may go on.'
  const calls = pending.map(
    ({ callId, name, arguments: json, needs }) =>
      `${shorten(name, 64)}(${shownArguments(json, 200)}) [${callId}] needs ${needs === 'approval' ? 'approval' : 'the client to run it'}`,
  )
  return `the run waits: ${calls.join('; ') || 'for a message'}. Approvals are asked for when stdin and stdout are a terminal.`
}
