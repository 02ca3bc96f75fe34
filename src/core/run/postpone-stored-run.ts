import { parseInboxMessage, type Receipt } from '../sessions/inbox/session-message.js'
import { setAlarm } from '../sessions/alarm.js'
import { takeEvent } from '../sessions/take-event.js'
import { readInbox, type StoreParts, withFreeSession, writeRest } from './end-stored-run.js'

/**
 * Carries out the `resume` with a date that lies in the inbox of a session that no process holds, with nothing but the store: the
 * run sleeps from now on. Where other messages came before it, or its date is over, the session is woken at that date, and
 * hears all of them then.
 */
export async function postponeStoredRun(
  parts: StoreParts,
  sessionId: string,
  message: number,
): Promise<Receipt['status']> {
  const { store, clock } = parts
  return withFreeSession(parts, sessionId, 'a process that postpones it', async (taken) => {
    const { folded } = taken
    const waiting = await readInbox(store, sessionId)
    const found = waiting.find((one) => one.message === message)
    const resume = found && parseInboxMessage(found)
    if (resume?.type !== 'RESUME' || resume.at === undefined) return 'waiting'
    const { run } = folded
    const event = { ...resume, now: Math.max(clock.now(), folded.at), inbox: message }
    const moved = run?.status === 'active' && waiting[0] === found ? takeEvent(run, event) : null
    if (moved?.[0].context.state !== 'PAUSED') {
      await setAlarm(store, sessionId, resume.at, folded.definition)
      return 'waiting'
    }
    await writeRest(taken, event, moved)
    return 'applied'
  })
}
