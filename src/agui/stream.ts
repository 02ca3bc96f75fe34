import type { Message } from '../../machines/agent/messages.js'
import type { Conversation } from '../web/chats.js'
import type { Joined } from '../web/joined.js'
import { sseFrame, sseResponse } from '../web/sse.js'
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
  const events = eventsOf(joined, page, read)
  return sseResponse({
    next: async () => {
      const next = await events.next()
      return next === null ? null : next.map((event) => sseFrame(event)).join('')
    },
    cancel: () => joined.leave?.(),
  })
}

function eventsOf(
  { before, turn, reader }: Joined,
  { threadId, runId, shown, state }: Reader,
  read: () => Promise<Conversation | null>,
): { next(): Promise<AGUIEvent[] | null> } {
  const history: readonly Message[] = [...before, ...(turn?.messages ?? [])]
  const fold = new Fold({
    threadId,
    runId,
    history,
    ...(shown === null ? { restate: true } : { shown }),
    ...(turn && { stands: turn }),
    state: isObject(state),
  })
  let told: AGUIEvent[] = fold.begin()
  let isOver = false
  return {
    next: async () => {
      while (told.length === 0 && !isOver) {
        const events = reader.take()
        if (events === null) {
          isOver = true
          told.push(...fold.end(await restOf(fold, read)))
        } else if (events.length === 0) await reader.news()
        else for (const event of events) told.push(...fold.hear(event))
      }
      const news = told
      told = []
      return news.length === 0 && isOver ? null : news
    },
  }
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
