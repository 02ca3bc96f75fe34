import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Message } from '../../machines/agent/messages.js'
import type { SessionView } from '../web/chat-service.js'
import type { Subscription } from '../web/subscription.js'
import { createSseResponse } from '../web/sse.js'
import { toFrames, type EncodedStream, encodeEvents } from '../web/encode-stream.js'
import { AGUIEventFold, type RunStatus } from './agui-fold.js'
import type { AGUIEvent } from './protocol.js'

/** The page that reads an answer, and its ids. */
export interface PageRequest {
  threadId: string
  runId: string
  /** The messages that the page shows; null when it shows none. */
  shown: readonly { id: string; role: string; subagentRunId?: string }[] | null
  state: unknown
}

/**
 * Streams a subscription as one AG-UI run. A page whose messages differ from the log gets a snapshot. `read` returns the
 * session at the rest.
 */
export function createAguiResponse(
  subscription: Subscription,
  page: PageRequest,
  read: () => Promise<SessionView | null>,
): Response {
  const leave = (): void => subscription.unsubscribe?.()
  return createSseResponse(toFrames(encodeAguiEvents(subscription, page, read), { leave }))
}

function encodeAguiEvents(
  { before, turn, reader }: Subscription,
  { threadId, runId, shown, state }: PageRequest,
  read: () => Promise<SessionView | null>,
): EncodedStream<AGUIEvent> {
  const history: readonly Message[] = [...before, ...(turn?.messages ?? [])]
  const fold = new AGUIEventFold({
    threadId,
    runId,
    history,
    ...(shown === null ? { restate: true } : { shown }),
    ...(turn && { status: turn }),
    state: isObjectOrAbsent(state),
  })
  const encode = (event: AgentEvent): AGUIEvent[] => fold.handleEvent(event)
  const finish = async (): Promise<AGUIEvent[]> => fold.end(await readStatusAtRest(fold, read))
  return encodeEvents(reader, { encode, finish }, fold.begin())
}

/** Reads the open interrupts from the log: events do not say what was answered before the page subscribed. */
async function readStatusAtRest(
  fold: AGUIEventFold,
  read: () => Promise<SessionView | null>,
): Promise<RunStatus> {
  const { status } = fold
  const session = await read().catch(() => null)
  if (session?.state !== status.state) return status
  return { ...status, pending: [...session.pending], messages: session.messages }
}

function isObjectOrAbsent(state: unknown): boolean {
  return state === undefined || (typeof state === 'object' && state !== null && !Array.isArray(state))
}
