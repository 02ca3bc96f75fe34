import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Message } from '../../machines/agent/messages.js'
import type { Conversation } from '../web/chats.js'
import type { Joined } from '../web/joined.js'
import { sseResponse } from '../web/sse.js'
import { framesOf, type Telling, tellingOf } from '../web/telling.js'
import { Fold, type Standing } from './fold.js'
import type { AGUIEvent } from './protocol.js'

/** Who reads an answer, and what it is called there. */
export interface Reader {
  threadId: string
  runId: string
  /** What the page shows; null for one that shows nothing. */
  shown: readonly { id: string; role: string; subagentRunId?: string }[] | null
  state: unknown
}

/**
 * An answer that somebody looks at, as one run of AG-UI. A page that shows something else than what the log has is told the
 * conversation anew. `read`: the session as it stands once the answer rests.
 */
export function aguiResponse(
  joined: Joined,
  page: Reader,
  read: () => Promise<Conversation | null>,
): Response {
  const leave = (): void => joined.leave?.()
  return sseResponse(framesOf(eventsOf(joined, page, read), { leave }))
}

function eventsOf(
  { before, turn, reader }: Joined,
  { threadId, runId, shown, state }: Reader,
  read: () => Promise<Conversation | null>,
): Telling<AGUIEvent> {
  const history: readonly Message[] = [...before, ...(turn?.messages ?? [])]
  const fold = new Fold({
    threadId,
    runId,
    history,
    ...(shown === null ? { restate: true } : { shown }),
    ...(turn && { stands: turn }),
    state: isObject(state),
  })
  const hear = (event: AgentEvent): AGUIEvent[] => fold.hear(event)
  const end = async (): Promise<AGUIEvent[]> => fold.end(await restOf(fold, read))
  return tellingOf(reader, { hear, end }, fold.begin())
}

/** What is asked at a rest is in the log; events do not tell what has been answered before they came. */
async function restOf(fold: Fold, read: () => Promise<Conversation | null>): Promise<Standing> {
  const { standing } = fold
  const now = await read().catch(() => null)
  if (now?.state !== standing.state) return standing
  return { ...standing, pending: [...now.pending], messages: now.messages }
}

function isObject(state: unknown): boolean {
  return state === undefined || (typeof state === 'object' && state !== null && !Array.isArray(state))
}
