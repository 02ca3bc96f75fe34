import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { maskMessages } from '../../machines/agent/mask-uncleared.js'
import { systemClock } from '../core/base/clock.js'
import { describeError, StatewrightError } from '../core/base/errors.js'
import { isObject } from '../core/base/values.js'
import type { Run } from '../core/run/run.js'
import type { Chat } from '../web/chat-service.js'
import type { AnswerProtocol } from '../web/sse.js'
import { expectRun, findStartedContext } from '../web/subscription.js'
import { createAGUIFold } from './agui-fold.js'
import { matchClientIds } from './agui-messages.js'
import type { AGUIEvent } from './protocol.js'
import type { AgentInput } from './read-input.js'

/** The part of an AG-UI input that affects the events. */
export interface AGUIRunInput {
  threadId: string
  runId: string
  /** Only the ids of user messages are read, so that the events use the page's ids. */
  messages?: readonly { id: string; role: string; content?: unknown }[]
  /** The state of the page. `STATE_DELTA` is sent only if the state is an object or absent. */
  state?: unknown
}

export interface AGUIOptions {
  /** The input that the run answers. Defaults to the ids of the session and the run. */
  input?: AGUIRunInput
  /** Whether to start with a `MESSAGES_SNAPSHOT`, for a page without messages. Defaults to false. */
  restate?: boolean
}

/**
 * Converts a run into AG-UI 1.0 events, up to its next rest. `RUN_STARTED` is the first event, `RUN_FINISHED` or
 * `RUN_ERROR` the last. If the run waits for a person, the outcome is `interrupt`. Call the function again after the
 * answers. Events from before the call are not included. The run continues if the consumer stops reading.
 *
 * @example
 * for await (const event of toAGUI(agent.run('What is 19 + 23?'))) console.log(event.type)
 */
export function toAGUI(run: Run, options: AGUIOptions = {}): AsyncIterableIterator<AGUIEvent> {
  expectRun('toAGUI', run, options)
  const events = run[Symbol.asyncIterator]()
  // A working run is joined in its current state. A new run has no events yet.
  return encodeRun(run, events, findStartedContext(run), options)
}

async function* encodeRun(
  run: Run,
  events: AsyncIterator<AgentEvent, undefined>,
  contextAtStart: AgentContext | undefined,
  { input, restate = false }: AGUIOptions,
): AsyncGenerator<AGUIEvent, undefined> {
  const { threadId = run.sessionId, runId = run.id, messages, state } = input ?? {}
  let fold = createAGUIFold({ threadId, runId, history: [] })
  let hasStarted = false
  try {
    if (!contextAtStart) await run.started
    const context = contextAtStart ?? findStartedContext(run)
    const history: readonly Message[] = context ? maskMessages(context) : []
    fold = createAGUIFold({
      threadId,
      runId,
      history,
      ends: context?.turnEnds ?? [],
      ...(restate && { shown: null }),
      getMessageId: matchClientIds(history, messages ?? []),
      state: isObjectOrAbsent(state),
    })
    hasStarted = true
    yield* fold.begin()
    for (let next = await events.next(); !next.done; next = await events.next())
      yield* fold.handleEvent(next.value)
    yield* fold.end(await run.result)
  } catch (error) {
    if (!hasStarted) yield* fold.begin()
    const code = error instanceof StatewrightError ? error.code : 'internal'
    yield* fold.fail({ message: describeError(error), code })
  } finally {
    await events.return?.()
  }
  return undefined
}

/** The page that reads an answer. `shown` lists the messages on the page, or is null if the page shows none. */
export type AGUIPage = Pick<AgentInput, 'threadId' | 'runId' | 'state'> & {
  shown: AgentInput['shown'] | null
}

/** A page whose messages differ from the log receives a snapshot. */
export function createAGUIProtocol(
  { threadId, runId, shown, state }: AGUIPage,
  chat: Pick<Chat, 'readSession'>,
): AnswerProtocol<AGUIEvent> {
  return {
    createEncoder: ({ readPast, turn }) => {
      const { before, ends } = readPast()
      const fold = createAGUIFold({
        threadId,
        runId,
        history: [...before, ...(turn?.messages ?? [])],
        ends,
        shown,
        ...(turn && { status: turn }),
        state: isObjectOrAbsent(state),
      })
      return {
        ...fold,
        end: async () => {
          const status = fold.getStatus()
          // The log records the open interrupts. The events do not contain answers given before the page subscribed.
          const session = await chat.readSession().catch(() => null)
          if (session?.state !== status.state) return fold.end(status)
          return fold.end({ ...status, pending: [...session.pending], messages: session.messages })
        },
      }
    },
    toErrorChunk: (message) => {
      const timestamp = systemClock.now()
      return { type: 'RUN_ERROR', message, code: 'internal', timestamp }
    },
  }
}

const isObjectOrAbsent = (state: unknown): boolean => state === undefined || isObject(state)
