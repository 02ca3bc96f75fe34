import { parseInboxMessage, type Receipt } from '../sessions/inbox/session-message.js'
import { setAlarm } from '../sessions/alarm.js'
import { openSession } from '../sessions/open-session.js'
import { StoreError } from '../sessions/store/store-error.js'
import { takeEvent } from '../sessions/take-event.js'
import type { StoreParts } from './end-stored-run.js'

/**
 * Carries out the `resume` with a date that lies in the inbox of a session that no process holds, with nothing but the store: the
 * run sleeps from now on. Where other messages came before it, or its date is over, the session is woken at that date, and
 * hears all of them then.
 */
export async function postponeStoredRun(
  { store, clock }: StoreParts,
  sessionId: string,
  message: number,
): Promise<Receipt['status']> {
  try {
    const { log, folded } = await openSession(store, sessionId, {
      clock,
      holder: 'a process that postpones it',
    })
    try {
      const waiting = (await store.inbox?.read(sessionId)) ?? []
      const found = waiting.find((one) => one.message === message)
      const resume = found && parseInboxMessage(found)
      if (resume?.type !== 'RESUME' || resume.at === undefined) return 'waiting'
      const { run, lastEventNumber } = folded
      const event = { ...resume, now: Math.max(clock.now(), folded.at), inbox: message }
      const next = run?.status === 'active' && waiting[0] === found ? takeEvent(run, event) : null
      if (next?.[0].context.state !== 'PAUSED') {
        await setAlarm(store, sessionId, resume.at, folded.definition)
        return 'waiting'
      }
      const told = next[1].filter(({ type }) => (type as string) === 'xstate.emit').length
      log.setEventCounter(() => (lastEventNumber ?? 0) + told)
      log.append({ type: 'event', event })
      await log.rest(next[0].context)
      return 'applied'
    } finally {
      await log.close()
    }
  } catch (error) {
    if (error instanceof StoreError && error.code === 'session_busy') return 'sent'
    throw error
  }
}
