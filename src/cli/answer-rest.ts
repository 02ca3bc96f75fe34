import type { RunResult } from '../../machines/agent/outcome.js'
import type { Run } from '../runtime/run.js'
import type { Ask } from './ask.js'
import { printable, shorten, shownArguments } from './render/words.js'

/**
 * Asks the person for what the run waits for, and hands the answer over. False when it goes on waiting: a call that
 * only a program can answer, or nobody answered.
 */
export async function answerRest(run: Run, result: RunResult, ask: Ask): Promise<boolean> {
  if (result.state === 'PAUSED') return askToResume(run, ask)
  const call = result.pending?.find(({ needs }) => needs === 'approval')
  if (!call) return false
  const name = shorten(call.name, 64)
  for (;;) {
    const shown = shownArguments(call.arguments, 2_000)
    const hint = shown.endsWith('…') ? ' (shortened; edit shows all of it)' : ''
    const answer = (await ask(`Run ${name}(${shown})${hint}? (y)es, (n)o, (e)dit: `))?.toLowerCase()
    if (answer === undefined) return false
    if (answer === 'y' || answer === 'yes') {
      run.approve(call.callId)
      return true
    }
    if (answer === 'n' || answer === 'no') {
      const why = await ask('Why not? The model reads it (Enter for no reason): ')
      run.reject(call.callId, why ?? '')
      return true
    }
    if (answer === 'e' || answer === 'edit') {
      const edited = await askForArguments(call.arguments, ask)
      if (edited === undefined) continue
      run.approve(call.callId, edited)
      return true
    }
  }
}

/** New arguments as a value; undefined when the person thinks better of it. */
async function askForArguments(present: string, ask: Ask): Promise<unknown> {
  let question = `Now: ${printable(present)}\nNew arguments as JSON (Enter to go back): `
  for (;;) {
    const text = await ask(question)
    if (text === null || text === '') return undefined
    try {
      return JSON.parse(text) as unknown
    } catch {
      question = 'That is not JSON. New arguments as JSON (Enter to go back): '
    }
  }
}

async function askToResume(run: Run, ask: Ask): Promise<boolean> {
  for (;;) {
    const answer = (await ask('The run is paused. Go on? (y)es, (n)o: '))?.toLowerCase()
    if (answer === 'y' || answer === 'yes') {
      run.resume()
      return true
    }
    if (answer === undefined || answer === 'n' || answer === 'no') return false
  }
}
