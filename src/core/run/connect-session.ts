import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import { describeError } from '../base/errors.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import { checkMessageFits } from './check-message.js'
import { type ConnectedRun, publishSession } from './live-sessions.js'

/**
 * Connects a run with its session: other code of this process can listen to it, and the run receives the session's
 * inbox, in order. A message that no longer applies is removed with a `warning`: two pages may have answered the same
 * question.
 */
export function connectSession(
  log: SessionLog | undefined,
  run: ConnectedRun,
  send: (event: ControlEvent) => void,
): void {
  if (!log) return
  const { actor } = run
  publishSession(log, run)
  log.inbox.onQueued(({ messageId }) => actor.emit({ type: 'message_queued', messageId }))
  log.inbox.onMessage((message, event) => {
    try {
      const standing = actor.forecast
      if (event === null || standing === undefined) {
        log.inbox.refuse(message)
        return
      }
      checkMessageFits(event, standing, log.sessionId)
      send({ ...event, inbox: message })
    } catch (error) {
      if (log.inbox.refuse(message)) actor.warn('message_refused', describeError(error))
    }
  })
}
