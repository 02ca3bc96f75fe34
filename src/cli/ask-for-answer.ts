import { formatWakeTime } from '../core/base/clock.js'
import type { RunResult } from '../../machines/agent/run-result.js'
import type { Ask } from './terminal-prompt.js'
import type { Answer } from './conversation.js'
import { askElicitation } from './ask-elicitation.js'
import { formatArgumentsJson } from '../core/format/format-call.js'
import { describeCall } from './resume-hints.js'

/**
 * Asks the user for what the run waits for. Null when there is no answer, or when only a program can answer the call.
 */
export async function askForAnswer(result: RunResult, ask: Ask): Promise<Answer | null> {
  if (result.state === 'PAUSED') return askToResume(result.wakeAt, ask)
  if (result.reason === 'message') return askForMessage(ask)
  const call = result.pending?.find(({ needs }) => needs === 'approval')
  if (!call) {
    const asked = result.pending?.find((one) => one.needs === 'elicitation')
    return asked ? askElicitation(asked, ask) : null
  }
  const doubt = call.interrupted ? 'The process ended while it ran, so it may have had its effect. ' : ''
  for (;;) {
    const answer = (await ask(`${doubt}Run ${describeCall(call)}? (y)es, (n)o, (e)dit: `))?.toLowerCase()
    if (answer === undefined) return null
    if (answer === 'y' || answer === 'yes') {
      return (run) => {
        run.approve(call)
      }
    }
    if (answer === 'n' || answer === 'no') {
      const why = await ask('Why not? The model reads it (Enter for no reason): ')
      return (run) => {
        run.reject(call, why ?? '')
      }
    }
    if (answer === 'e' || answer === 'edit') {
      const edited = await askForArguments(call.arguments, ask)
      if (edited === undefined) continue
      return (run) => {
        run.approve(call, edited)
      }
    }
  }
}

/** The new arguments; undefined when the user goes back. */
async function askForArguments(present: string, ask: Ask): Promise<unknown> {
  let question = `Now: ${formatArgumentsJson(present)}\nNew arguments as JSON (Enter to go back): `
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

async function askToResume(wakeAt: number | undefined, ask: Ask): Promise<Answer | null> {
  const how = wakeAt === undefined ? 'is paused' : `sleeps until ${formatWakeTime(wakeAt)}`
  for (;;) {
    const answer = (await ask(`The run ${how}. Go on now? (y)es, (n)o: `))?.toLowerCase()
    if (answer === 'y' || answer === 'yes') {
      return (run) => {
        run.resume()
      }
    }
    if (answer === undefined || answer === 'n' || answer === 'no') return null
  }
}

/** The next message. An empty line or the end of input leaves the conversation. */
async function askForMessage(ask: Ask): Promise<Answer | null> {
  const message = await ask('Your message (Enter to leave): ')
  if (message === null || message === '') return null
  return (run) => {
    run.reply(message)
  }
}
