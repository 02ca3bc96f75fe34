import { optionsRule, expectArgument, objectRule } from '../core/base/values.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AgentContext } from '../../machines/agent/context.js'
import type { Message } from '../../machines/agent/messages.js'
import { maskMessages } from '../../machines/agent/uncleared-input.js'
import { describeError, StatewrightError } from '../core/base/errors.js'
import type { Run } from '../core/run/run.js'
import { AGUIEventFold } from './agui-fold.js'
import { matchClientIds } from './client-message-ids.js'
import type { AGUIEvent } from './protocol.js'

/** The part of the AG-UI input that the events depend on: its ids. */
export interface AGUIRunInput {
  threadId: string
  runId: string
  /** Only the ids of user messages are read: the events use the page's ids. */
  messages?: readonly { id: string; role: string; content?: unknown }[]
  /** `STATE_DELTA` is sent only when this is an object or absent. */
  state?: unknown
}

/** The options of `toAGUI`. */
export interface AGUIOptions {
  /** The input that the run answers. Default: the ids of the session and the run. */
  input?: AGUIRunInput
  /** Begin with a `MESSAGES_SNAPSHOT`, for a page without messages. Default: false. */
  restate?: boolean
}

/**
 * Converts a run into events of AG-UI 1.0, up to its next rest: `RUN_STARTED` first, `RUN_FINISHED` or `RUN_ERROR` last. A
 * rest that waits for a person ends with the outcome `interrupt`; after the answers, call it again. Events count from the
 * call of this function. The run goes on when the consumer stops reading.
 *
 * @example
 * for await (const event of toAGUI(agent.run('What is 19 + 23?'))) console.log(event.type)
 */
export function toAGUI(run: Run, options: AGUIOptions = {}): AsyncIterableIterator<AGUIEvent> {
  expectArgument(
    'toAGUI(run)',
    run,
    objectRule(['events$', Symbol.asyncIterator], 'a run: what agent.run(…) returned'),
  )
  expectArgument('toAGUI(run, options)', options, optionsRule)
  const events = run[Symbol.asyncIterator]()
  // A run at work is joined in its current state; a new run has no events yet.
  const context = findContext(run)
  return encodeRun(run, events, context, options)
}

async function* encodeRun(
  run: Run,
  events: AsyncIterator<AgentEvent, undefined>,
  contextAtStart: AgentContext | null,
  { input, restate = false }: AGUIOptions,
): AsyncGenerator<AGUIEvent, undefined> {
  const { threadId = run.sessionId, runId = run.id, messages, state } = input ?? {}
  let fold = new AGUIEventFold({ threadId, runId, history: [] })
  let hasBegun = false
  try {
    if (!contextAtStart) await run.started
    const context = contextAtStart ?? findContext(run)
    const history: readonly Message[] = context ? maskMessages(context) : []
    fold = new AGUIEventFold({
      threadId,
      runId,
      history,
      ends: context?.ends ?? [],
      restate,
      getMessageId: matchClientIds(history, messages ?? []),
      state: state === undefined || (typeof state === 'object' && state !== null && !Array.isArray(state)),
    })
    hasBegun = true
    yield* fold.begin()
    for (let next = await events.next(); !next.done; next = await events.next())
      yield* fold.handleEvent(next.value)
    yield* fold.end(await run.result)
  } catch (error) {
    if (!hasBegun) yield* fold.begin()
    yield* fold.fail({
      message: describeError(error),
      code: error instanceof StatewrightError ? error.code : 'internal',
    })
  } finally {
    await events.return?.()
  }
  return undefined
}

/** Null before the run has begun. */
function findContext(run: Run): AgentContext | null {
  try {
    return (run.snapshot() as { context: AgentContext }).context
  } catch {
    return null
  }
}
