import type { AgentContext } from '../../machines/agent/context.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import { isActiveState, isFinalState, isWorkState } from '../../machines/agent/run-result.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { internalsByAgent } from '../core/agent/agent-internals.js'
import { wait } from '../core/base/clock.js'
import { configError } from '../core/base/errors.js'
import { runInTurn } from '../core/base/maybe-promise.js'
import { memoize } from '../core/base/values.js'
import { acceptsDefinition } from '../core/sessions/agent-definition.js'
import { isQueuedText, type QueuedMessage, sortQueue } from '../core/sessions/inbox/queued-message.js'
import { type AnswerMessage, parseInboxMessage } from '../core/sessions/inbox/session-message.js'
import type { WatchedEvent, WatchOptions } from '../core/run/watch-session.js'
import type { SessionBranches } from '../core/sessions/replay-session.js'
import { isAnswerTo, isSameCall } from './call-answers.js'
import { type Turn, toTurn } from './chat-turn.js'
import { hasCode } from './error-response.js'
import { createFailureFinder } from './exposure.js'
import { createReplayBuffer, type ReplayBuffer } from './replay-buffer.js'
import {
  type AnyRun,
  type Caller,
  type ChatAgent,
  createFinishedSubscription,
  findTurn,
  type LiveRun,
  subscribeFromStart,
  subscribeToNew,
  subscribeToTurn,
  type Subscription,
} from './subscription.js'

/** The chats of one agent in this process, by session. @throws {ConfigError} `invalid_config` for an agent without a store */
export const getChatHost = memoize((agent: ChatAgent) => {
  if (typeof agent?.run !== 'function')
    throw configError('agent must be an agent created by createAgent().', 'agent')
  const internals = internalsByAgent.get(agent)
  if (internals?.store === undefined)
    throw configError(
      'The agent has no store, but chat pages need one. Add one: createAgent({ store: fileStore({ dir }) }).',
      'agent',
    )
  const { store, parts, openStored } = internals
  return {
    agent,
    store,
    clock: parts.clock,
    getLabel: () => internals.label,
    openStored,
    inputShields: parts.shields.input.length > 0,
    tasks: new Map<string, Promise<unknown>>(),
    /** The active runs in this process. Runs in other processes are followed through the log. */
    runs: new Map<string, LiveRun>(),
    /** The requests that queued messages here, by message id. */
    senders: new Map<string, Map<string, Caller>>(),
    /** The sessions that requests here wait for, so that they do not each read a long log. */
    awaited: new Map<string, AwaitedSession>(),
  }
})

export type ChatHost = ReturnType<typeof getChatHost>

/** A session with queued messages, for whose answers requests wait in this process. */
export interface AwaitedSession {
  requests: number
  log: string | null
  stored: StoredContext | null
}

export interface StoredContext {
  /** The branches of the session. Absent if the session has only one branch. */
  branches?: SessionBranches | undefined
  seq: number
  context: AgentContext
}

/** Attempts to acquire a session that another process is about to release, over three seconds in total. */
export const maxAttempts = 30

export const isSessionTaken = (error: unknown): boolean => hasCode(error, 'session_busy', 'unfinished_run')

/** How often a watching page checks whether a process still holds the session, in milliseconds. */
const pollMs = 5000

interface FollowOptions {
  clientId?: string | undefined
  sender?: Caller
  apply?: (run: AnyRun) => void
}

export type ChatSession = ReturnType<typeof createChatSession>

/** The session of a chat and its run, for one request. `onEnd` is called with each run that has ended here. */
export function createChatSession(
  host: ChatHost,
  sessionId: string,
  caller: Caller,
  onEnd: (live: LiveRun) => void,
) {
  const { agent, store, clock, tasks, runs } = host

  const waitForAttempt = (): Promise<void> => wait(clock, 100)

  /** Retries with a short delay while another process holds the session. Other errors are rethrown. */
  async function retryWhileTaken<Value>(
    task: () => Promise<Value>,
    isTaken: (error: unknown) => boolean | Promise<boolean> = isSessionTaken,
  ): Promise<Value> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await task()
      } catch (error) {
        if (!(await isTaken(error)) || attempt >= maxAttempts) throw error
        await waitForAttempt()
      }
    }
  }

  async function readStored(): Promise<StoredContext | null> {
    const replayed = await nullIfUnknown(agent.replay(sessionId))
    if (!replayed?.snapshot) return null
    const { seq, snapshot, branches } = replayed
    return { seq, context: snapshot.context as AgentContext, branches }
  }

  const readContext = async (): Promise<AgentContext | null> => (await readStored())?.context ?? null
  const readInbox = async () => (await store.inbox?.read(sessionId)) ?? []
  const readUnread = async () => (await readInbox()).flatMap((message) => parseInboxMessage(message) ?? [])
  const readFolded = async () => nullIfUnknown((await host.openStored()).readFolded(sessionId))

  async function readQueue(): Promise<QueuedMessage[]> {
    const found = (await readInbox()).filter(({ text }) => isQueuedText(text))
    const folded = found.length === 0 ? null : await readFolded()
    if (folded === null) return []
    const { run, state, queued, keys } = folded
    // A message in the log is no longer queued.
    return sortQueue(found, { queued, messages: (run?.context ?? state).messages, keys }).waiting
  }

  const resume = (): Promise<AnyRun> => agent.resume(sessionId, { context: caller.context } as never)

  /** Runs the tasks of a session one at a time, so that each sees the effects of the previous one. */
  const runTask = <Value>(task: () => Promise<Value>): Promise<Value> => runInTurn(tasks, sessionId, task)

  const isHeld = async (): Promise<boolean> => (await store.get(sessionId))?.holder !== null

  /** Whether a resting run has an answer in its inbox that no process has read. */
  async function hasUnreadAnswer(context: AgentContext): Promise<boolean> {
    const open = isActiveState(context.state) ? [] : listAnswerableCalls(context)
    if (open.length === 0) return false
    const unread = await readUnread()
    return unread.some((event) => 'callId' in event && open.some((call) => isSameCall(event, call)))
  }

  /** Resumes a resting run. Retries while the process that recorded the rest still holds the session. */
  const resumeWhenReleased = (): Promise<AnyRun> =>
    retryWhileTaken(resume, async (error) => {
      const context = hasCode(error, 'session_busy') ? await readContext() : undefined
      return context !== undefined && !(context && isActiveState(context.state))
    })

  /**
   * Buffers the events of a run, before `apply` lets the run work. Removes the run at its next rest, and calls its hooks
   * unless the run only recorded an answer and is still waiting.
   */
  function follow(
    run: AnyRun,
    turn: Turn | null,
    { clientId, sender = caller, apply = ignore }: FollowOptions = {},
  ): LiveRun {
    const buffer = createReplayBuffer()
    const findFailure = createFailureFinder()
    const clientIds = new Set(clientId === undefined ? [] : [clientId])
    const live: LiveRun = { run, buffer, turn, clientIds, caller: sender, hasWorked: false }
    runs.set(sessionId, live)
    let hasStarted = turn !== null
    run.events$.subscribe({
      next: (event) => {
        hasStarted ||= event.type === 'state_changed'
        if (event.type === 'state_changed' && isWorkState(event.to) && !live.hasWorked) {
          live.hasWorked = true
          run.started.then(() => sender.hooks.start(run), ignore)
        }
        const failure = findFailure(event)
        // If a run is refused before it starts, the request that started it is rejected.
        if (failure && hasStarted && !buffer.isOver) sender.report(failure, run)
        buffer.push(event)
      },
      // The call that started the run rejects with this error.
      error: () => buffer.end(),
    })
    const end = (): void => {
      buffer.end()
      if (runs.get(sessionId) === live) runs.delete(sessionId)
    }
    const rest = ({ resumable }: { resumable: boolean }): void => {
      end()
      if (!resumable) onEnd(live)
    }
    try {
      apply(run)
    } finally {
      run.result.then(rest, end)
      // The process that ended an earlier run has already called its hooks.
      if (turn === null || !isFinalState(turn.state))
        live.closing = run.result.then(
          (result) => (live.hasWorked || !result.resumable ? sender.hooks.settle(run, result) : undefined),
          ignore,
        )
    }
    return live
  }

  /** Reads the log. `resumes`: this request resumes the run once no process holds it; `isAnswered`: answers are unread. */
  function followRemote(
    { seq, context }: StoredContext,
    { resumes = false, showsTurn = true, isAnswered = false } = {},
  ): Subscription {
    const buffer = createReplayBuffer()
    const abort = new AbortController()
    let timer: unknown
    const scheduleResume = (): void => {
      timer = clock.setTimeout(() => {
        // A failed attempt is repeated. The next request that must resume the run will report the error.
        void resumeAbandoned()
          .catch(ignore)
          .finally(() => {
            if (!abort.signal.aborted) scheduleResume()
          })
      }, pollMs)
    }
    const unsubscribe = (): void => {
      abort.abort()
      clock.clearTimeout(timer as never)
    }
    if (resumes) scheduleResume()
    const watch = (options: WatchOptions) => agent.watch(sessionId, options)
    const options = { after: seq, signal: abort.signal }
    const events = isAnswered ? watchFromNextRecord(watch, options) : watch(options)
    void copyEvents(events, buffer).finally(unsubscribe)
    return { ...subscribeToTurn(toTurn(context), buffer, showsTurn), unsubscribe }
  }

  const resumeAbandoned = (): Promise<void> =>
    runTask(async () => {
      if (runs.has(sessionId) || (await isHeld())) return
      const context = await readContext()
      if (context === null) return
      if (isActiveState(context.state) || (await hasUnreadAnswer(context))) await resumeInterrupted()
    })

  /** Resumes a run whose process died while it was active, or whose answers no process has read. */
  async function resumeInterrupted(): Promise<Subscription> {
    const context = await readContext()
    const isAnswered = context !== null && (await hasUnreadAnswer(context))
    const run = await resumeWhenReleased()
    const turn = findTurn(run)
    if (turn && !isActiveState(turn.state) && !isAnswered) return createFinishedSubscription(turn)
    return subscribeFromStart(follow(run, turn, { clientId: turn?.clientId }))
  }

  const getLive = (): LiveRun | undefined => runs.get(sessionId)

  /** Resumes an interrupted run. Follows the run if another process holds it or another agent started it. */
  async function resumeOrFollow(): Promise<Subscription> {
    try {
      return await resumeInterrupted()
    } catch (error) {
      const isStranded = hasCode(error, 'stranded')
      const isTaken = isStranded || hasCode(error, 'session_busy')
      const stored = isTaken ? await readStored() : null
      if (stored === null) throw error
      const isAnswered = !isStranded && (await hasUnreadAnswer(stored.context))
      return isActiveState(stored.context.state) || isAnswered
        ? followRemote(stored, { resumes: !isStranded, isAnswered })
        : createFinishedSubscription(toTurn(stored.context))
    }
  }

  return {
    host,
    sessionId,
    caller,
    hasInbox: store.inbox !== undefined,
    runTask,
    waitForAttempt,
    retryWhileTaken,
    readStored,
    readContext,
    readQueue,
    resume,
    getListed: async () => store.get(sessionId),
    isHeld,
    hasUnreadAnswer,
    resumeWhenReleased,
    follow,
    followRemote,
    getLive,
    resumeOrFollow,

    /** Whether answers can go through the inbox. Requires a store with an inbox, and a session of this agent. */
    async canUseInbox(): Promise<boolean> {
      if (store.inbox === undefined) return false
      const { agent: name, version } = (await store.get(sessionId))?.summary ?? {}
      const definition = name === undefined ? null : { name, ...omitUndefined({ version }) }
      return acceptsDefinition(host.getLabel(), definition)
    },

    /**
     * Adds answers to the inbox of a session. An answer that is already there is a retry by its sender and counts as sent.
     * @throws {UsageError} `already_answered`, `run_ended` if none of the answers is in the inbox afterwards
     */
    async sendAnswers(answers: readonly AnswerMessage[]): Promise<void> {
      let refusal: unknown = null
      let sent = 0
      for (const answer of answers) {
        try {
          // Answers keep their order.
          await agent.send(sessionId, answer)
          sent += 1
        } catch (error) {
          // Another page may just have answered the call.
          if (!hasCode(error, 'already_answered', 'run_ended')) throw error
          refusal ??= error
        }
      }
      if (sent > 0 || refusal === null) return
      const unread = await readUnread()
      if (!answers.some((answer) => unread.some((event) => isAnswerTo(event, answer)))) throw refusal
    },

    /** The turn in which a run received a steering message. `last` is the id of the message that started the current turn. */
    async findSteeredTurn(key: string, last: string | undefined): Promise<'current' | 'past' | null> {
      const keys = (await readFolded())?.keys ?? []
      const at = keys.lastIndexOf(key)
      if (at < 0) return null
      return last !== undefined && keys.lastIndexOf(last) > at ? 'past' : 'current'
    },

    /** The answer of the session's latest turn. Continues a run that has been interrupted. */
    async showAnswer(context: AgentContext): Promise<Subscription> {
      const live = getLive()
      if (live) return subscribeFromStart(live)
      return isActiveState(context.state) ? resumeOrFollow() : createFinishedSubscription(toTurn(context))
    },

    /** Resumes a resting run here, and applies a message or answers. `isNewTurn` means that they start a turn. */
    async resumeWith(
      apply: (run: AnyRun) => void,
      { clientId, isNewTurn = false }: { clientId?: string | undefined; isNewTurn?: boolean } = {},
    ): Promise<Subscription> {
      const run = await resumeWhenReleased()
      const live = follow(run, isNewTurn ? null : findTurn(run), { clientId, apply })
      return subscribeToNew(live)
    },
  }
}

export async function nullIfUnknown<Value>(read: Promise<Value>): Promise<Value | null> {
  try {
    return await read
  } catch (error) {
    if (hasCode(error, 'unknown_session')) return null
    throw error
  }
}

/** Like `watch`, but starts when the log grows. */
async function* watchFromNextRecord(
  watch: (options: WatchOptions) => AsyncIterable<WatchedEvent>,
  options: WatchOptions,
): AsyncGenerator<WatchedEvent> {
  for await (const _ of watch({ ...options, until: 'never' })) break
  yield* watch(options)
}

async function copyEvents(events: AsyncIterable<WatchedEvent>, buffer: ReplayBuffer): Promise<void> {
  let restRecord: number | null = null
  try {
    for await (const event of events) {
      // Events that were recorded after a rest may arrive together with the rest.
      if (restRecord !== null && event.record > restRecord) break
      buffer.push(event as AgentEvent)
      if (event.type === 'state_changed') restRecord = isWorkState(event.to) ? null : event.record
    }
    buffer.end()
  } catch (error) {
    buffer.fail(error)
  }
}

const ignore = (): void => undefined
