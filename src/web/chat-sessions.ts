import type { AgentContext } from '../../machines/agent/context.js'
import { isActiveState } from '../../machines/agent/run-result.js'
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
import type { SessionBranches } from '../core/sessions/replay-session.js'
import { isAnswerTo, isSameCall } from './call-answers.js'
import { hasCode } from './error-response.js'
import type { AnyRun, Caller, ChatAgent, LiveRun } from './subscription.js'

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

export type ChatSession = ReturnType<typeof createChatSession>

export function createChatSession(host: ChatHost, sessionId: string, caller: Caller) {
  const { agent, store, clock, tasks } = host

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

  return {
    host,
    sessionId,
    caller,
    hasInbox: store.inbox !== undefined,
    /** Runs the tasks of a session one at a time, so that each sees the effects of the previous one. */
    runTask: <Value>(task: () => Promise<Value>): Promise<Value> => runInTurn(tasks, sessionId, task),
    waitForAttempt,
    retryWhileTaken,
    readStored,
    readContext,
    readQueue,
    resume,
    getListed: async () => store.get(sessionId),
    isHeld: async (): Promise<boolean> => (await store.get(sessionId))?.holder !== null,

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
          // oxlint-disable-next-line no-await-in-loop -- answers keep their order
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

    /** Whether a resting run has an answer in its inbox that no process has read. */
    async hasUnreadAnswer(context: AgentContext): Promise<boolean> {
      const open = isActiveState(context.state) ? [] : listAnswerableCalls(context)
      if (open.length === 0) return false
      const unread = await readUnread()
      return unread.some((event) => 'callId' in event && open.some((call) => isSameCall(event, call)))
    },

    /** The turn in which a run received a steering message. `last` is the id of the message that started the current turn. */
    async findSteeredTurn(key: string, last: string | undefined): Promise<'current' | 'past' | null> {
      const keys = (await readFolded())?.keys ?? []
      const at = keys.lastIndexOf(key)
      if (at < 0) return null
      return last !== undefined && keys.lastIndexOf(last) > at ? 'past' : 'current'
    },

    /** Resumes a resting run. Retries while the process that recorded the rest still holds the session. */
    resumeWhenReleased: (): Promise<AnyRun> =>
      retryWhileTaken(resume, async (error) => {
        const context = hasCode(error, 'session_busy') ? await readContext() : undefined
        return context !== undefined && !(context && isActiveState(context.state))
      }),
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
