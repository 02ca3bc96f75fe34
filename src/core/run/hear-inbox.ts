import type { PublicEvent } from '../../../machines/agent/events.js'
import { describeError } from '../base/describe-error.js'
import { readMessage } from '../sessions/inbox/message.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import { refuseUnfit } from './fits.js'
import type { RunActor } from './run-actor.js'

/**
 * What is left in the session's inbox is said to the run, in order. What comes too late is taken out of it, and a `warning`
 * tells of it: two pages may have answered the same question.
 */
export function hearInbox(
  log: SessionLog | undefined,
  actor: RunActor,
  send: (event: PublicEvent) => void,
): void {
  log?.inbox.onMessage(({ message, text }) => {
    const event = readMessage(text)
    try {
      const run = actor.ahead
      if (event === null || run === undefined) return log.inbox.refuse(message)
      refuseUnfit(event, run, log.sessionId)
      send({ ...event, inbox: message })
    } catch (error) {
      log.inbox.refuse(message)
      actor.warn('message_refused', describeError(error))
    }
  })
}
