import { transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import { parseInboxMessage } from '../sessions/inbox/session-message.js'
import type { FoldedRun, FoldedSession } from '../sessions/fold-session.js'
import type { SessionStore } from '../sessions/store/store.js'
import { checkMessageFits } from './check-message.js'

/** What the messages of an inbox will make of a run. */
export interface InboxForecast {
  run: FoldedRun
  /** The last message that was looked at. */
  message: number
  /** The idempotency keys of those messages, with their numbers. */
  keys: Map<string, number>
}

/** Of the record with this number and checksum. */
interface KeptForecast extends InboxForecast {
  head: number
  check: string
}

/** Sessions of one store whose inboxes a process remembers. */
const mostKept = 200

const keptForecasts = new WeakMap<SessionStore, Map<string, KeptForecast>>()

/**
 * The run of a session as what lies in its inbox will leave it; with `until`, as the messages before that number will. Each
 * message is looked at once, however many others are told before a process takes up the session.
 */
export async function forecastInbox(
  store: SessionStore,
  sessionId: string,
  { run, head, check, inbox }: FoldedSession & { run: FoldedRun },
  until = Infinity,
): Promise<InboxForecast> {
  const all = keptForecasts.get(store) ?? new Map<string, KeptForecast>()
  keptForecasts.set(store, all)
  const kept = all.get(sessionId)
  const isPart = kept?.head === head && kept.check === check && kept.message < until
  let foreseen: InboxForecast = isPart ? kept : { run, message: inbox, keys: new Map() }
  const { message: from } = foreseen
  for (const { message, text } of (await store.inbox?.read(sessionId, from)) ?? []) {
    // A store of one's own may know nothing of where to begin.
    if (message <= from || message >= until) continue
    const event = parseInboxMessage(text)
    if (event?.key !== undefined) foreseen.keys.set(event.key, message)
    foreseen = { ...foreseen, run: applyMessage(foreseen.run, event, sessionId), message }
  }
  rememberForecast(all, sessionId, { ...foreseen, head, check })
  return foreseen
}

function rememberForecast(all: Map<string, KeptForecast>, sessionId: string, kept: KeptForecast): void {
  all.delete(sessionId)
  all.set(sessionId, kept)
  for (const oldest of all.keys()) {
    if (all.size <= mostKept) return
    all.delete(oldest)
  }
}

function applyMessage(run: FoldedRun, event: ControlEvent | null, id: string): FoldedRun {
  try {
    if (event === null) return run
    checkMessageFits(event, run, id)
    return transition(agentMachine, run, event)[0]
  } catch {
    // It will come to nothing.
    return run
  }
}
