import { type Message, type UserMessage, parseMessageNumber } from '../../../machines/agent/messages.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { NewMessage } from '../../../machines/agent/context.js'
import { addRequester, type Principal } from '../../../machines/agent/principal.js'
import type { TurnEnd } from '../../../machines/agent/run-result.js'
import { optionError, UsageError } from '../base/errors.js'
import { createId } from '../base/platform.js'
import { expectArgument, optionsRule } from '../base/values.js'
import type { BudgetsOption } from '../budgets/shared-budget.js'
import { overrideLimits } from '../config/resolve-config.js'
import { checkTokenizerInstalled } from '../effects/check-run-start.js'
import { isLostSpeaker } from '../live/agent-parts.js'
import { deleteSessions, type SessionOwner } from '../run/delete-sessions.js'
import { editFork, type ForkOptions } from '../run/edit-fork.js'
import { bindStoredRun, endLeftChildren, endStoredRun, releaseOnError } from '../run/stored-run.js'
import { Run } from '../run/run.js'
import type { Inspector } from '../run/safe-listeners.js'
import type { ChildHost } from '../sub-agents/open-child.js'
import type { RunOrigin, RunParts } from '../run/run-parts.js'
import { watchSession, type WatchOptions } from '../run/watch-session.js'
import { acceptsDefinition, type AgentDefinition, type AgentLabel } from '../sessions/agent-definition.js'
import { addBranch, type BranchStart, getBranch, maxBranches, unbranched } from '../sessions/branch-tree.js'
import { deleteSession, renameSession } from '../sessions/delete-session.js'
import { findClientId, findTurnIndex, isTurnOpening } from '../sessions/find-turn.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import { forkSession } from '../sessions/fork-session.js'
import { isQueueStopped, type QueuedMessage } from '../sessions/inbox/queued-message.js'
import { type InputConversation, sessionNotEmptyError, addHistory } from '../sessions/input-history.js'
import { openSession, type AcquiredSession, type StoreParts } from '../sessions/open-session.js'
import { toRequesters } from '../sessions/principal.js'
import { readSession, readSessionAt, type SessionSnapshot } from '../sessions/replay-session.js'
import { listBranches, replayBranch, selectBranch } from '../sessions/select-branch.js'
import {
  lostSpeakerError,
  nothingToResumeError,
  refuseSubAgentSession,
  refuseUnfinishedRun,
  strandedError,
} from '../sessions/session-errors.js'
import { Session } from '../sessions/session.js'
import { cutState } from '../sessions/session-state.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import type { SessionTags } from '../sessions/store/session-tags.js'
import { nullIfBusy, unknownSessionError } from '../sessions/store/store-error.js'
import type { SessionStore } from '../sessions/store/store.js'
import { toMessages, type UserInput } from '../sessions/user-input.js'
import type { BranchOptions, RunOptions } from './agent-options.js'
import { checkModels, checkRunOptions, withAttachments } from './read-parts.js'

export interface RunStart {
  runId: string
  session: Session
  conversation: InputConversation
  config: AgentConfig
  context: unknown
  queued?: QueuedMessage | undefined
  tags: SessionTags | undefined
  /** The author of the input. Queued messages have their own author. */
  requesters?: readonly Principal[] | undefined
  budgets?: BudgetsOption | undefined
  branch?: BranchStart | undefined
}

type RunResumption = Pick<RunOptions, 'context'> &
  Partial<Pick<RunParts, 'signal' | 'inspect'>> & { budgets?: BudgetsOption | undefined }

export interface QueuedRunOptions {
  /** The app's context and tags from the message's sender. Undefined if the message must not be processed here. */
  findSender: (messageId: string) => Pick<RunStart, 'context' | 'tags'> | undefined
  /** Whether the run may start after a run that was stopped. */
  afterStop: boolean
}

export interface StoredAgent {
  host: ChildHost
  /** Set by `defineAgents`. */
  label: AgentLabel | undefined
  inspect: Inspector | undefined
}

export type StoredRuns = ReturnType<typeof createStoredRuns>

/** The sessions of an agent in its store. Loaded on first use, so that pages and programs without a store never load it. */
export function createStoredRuns(agent: StoredAgent, store: SessionStore) {
  const { host } = agent
  const { parts } = host
  const { clock } = parts
  const storeParts: StoreParts = { store, clock }
  const getDefinition = (): AgentDefinition => host.definitionAs(agent.label)

  /**
   * Acquires a session and ends unfinished sub-agent runs from earlier processes.
   * @throws as `openSession`
   */
  async function acquire(
    id: string,
    request: { holder: string; name?: string | undefined; definition?: () => AgentDefinition },
  ): Promise<AcquiredSession> {
    const { interpreter } = parts
    const options = { clock, definition: getDefinition, interpreter, ...request }
    const acquired = await openSession(store, id, options)
    await endLeftChildren(storeParts, acquired.folded)
    return acquired
  }

  const acquireForRun = ({ runId, session }: Pick<RunStart, 'runId' | 'session'>): Promise<AcquiredSession> =>
    acquire(session.id, { holder: `run ${runId}`, name: session.name })

  /** Starts a run in an acquired session, which is released if the run cannot start. */
  const beginAcquired = (
    { log, folded }: AcquiredSession,
    { runId, session, conversation, config, context, tags, requesters, budgets, queued, branch }: RunStart,
  ): Promise<RunOrigin> =>
    releaseOnError(log, async () => {
      refuseSubAgentSession(session.id, folded.parent)
      refuseUnfinishedRun(folded, session.id)
      if (folded.head > 0 && conversation.history.length > 0) throw sessionNotEmptyError(session.id)
      if (tags !== undefined) log.addTags(tags)
      await log.inbox.discard()
      const stateBefore =
        folded.head === 0 ? addHistory(session.state, conversation, session.id) : folded.state
      const state = branch ? cutState(stateBefore, branch) : stateBefore
      const tagsNow = (): SessionTags => log.facts.tags
      const binding = { context, journal: log, store, budgets, tags: tagsNow }
      const undelivered = branch ? [] : (folded.run?.context.steering ?? [])
      const authors = undelivered.length > 0 ? folded.run?.context.requesters : []
      const by = addRequester(authors, queued ? queued.by : requesters?.[0])
      // The latest run had read this steering when it ended, but its model had not received it.
      const carried = undelivered.map((content) => ({ content, data: { reason: 'undelivered' } }))
      const input = [...carried, ...conversation.newMessages]
      // A queued message that cannot start would block all later messages.
      const request = {
        runId,
        sessionId: session.id,
        config,
        input,
        ...by,
        mayLackAuthor: queued !== undefined,
      }
      const bound = host.bind(request, state, binding)
      await host.ready(bound)
      log.addInitialState(state)
      if (branch) {
        const tree = folded.branches ?? unbranched
        log.setBranch(branch, (seq) => addBranch(tree, branch, { messages: stateBefore.messages, seq }))
      }
      if (queued === undefined) return { input: bound, log }
      log.setQueued(queued.message)
      return { input: bound, log, queuedId: queued.messageId }
    })

  /** Begins a run in an acquired session. The run starts when the returned function is called. */
  const prepareRun = async (
    acquired: AcquiredSession,
    start: Omit<RunStart, 'runId' | 'session' | 'config'>,
    runId = createId(),
  ): Promise<() => Run> => {
    const session = new Session(acquired.log.sessionId, acquired.folded.name)
    const origin = await beginAcquired(acquired, { ...start, runId, session, config: parts.config })
    return () => new Run({ ...host.runParts, runId, session, origin, inspect: agent.inspect })
  }

  /**
   * Resumes the run of an acquired session. If the session has no run, or another agent started the run, the session is
   * released. A run that was resumed too often is ended.
   * @throws {UsageError} `unknown_session`, `nothing_to_resume`, `stranded`
   */
  const resumeAcquired = (
    acquired: AcquiredSession,
    id: string,
    { context, budgets, signal, inspect = agent.inspect }: RunResumption,
  ): Promise<Run> =>
    releaseOnError(acquired.log, async () => {
      const { label } = agent
      const { log } = acquired
      if (acquired.folded.run?.status === 'active' && !acceptsDefinition(label, acquired.folded.definition))
        throw strandedError(id, acquired.folded.definition, [label])
      const folded = await endPoisonedRun(storeParts, acquired)
      if (folded.run === null) throw folded.head === 0 ? unknownSessionError(id) : nothingToResumeError(id)
      // A run that has ended needs no model.
      if (folded.run.status === 'active') {
        checkModels(parts)
        const { speaker } = folded.run.context
        if (isLostSpeaker(parts.tools, speaker)) throw lostSpeakerError(speaker)
        await checkTokenizerInstalled(parts, folded.run.context.config)
      }
      await log.inbox.readFirst()
      const tags = (): SessionTags => log.facts.tags
      const bound = bindStoredRun(host.bindings, log, folded, folded.run, { context, store, budgets, tags })
      const session = new Session(id, folded.name)
      session.update(folded.run.context)
      return new Run({ ...host.runParts, ...bound, session, signal, inspect })
    })

  return {
    getDefinition,
    acquire,
    prepareRun,
    resumeAcquired,
    begin: async (start: RunStart): Promise<RunOrigin> => beginAcquired(await acquireForRun(start), start),

    branch: async (
      options: BranchOptions,
      handle: Pick<RunStart, 'runId' | 'session'>,
    ): Promise<RunOrigin> => {
      const { from: _from, edit: _edit, key: _key, ...rest } = checkBranchOptions(options)
      const { context, tags, limits, budgets, by } = checkRunOptions(rest)
      parts.model.check?.()
      const config = overrideLimits(host.config, limits)
      const requesters = toRequesters({ by }, 'branch()')
      const acquired = await acquireForRun(handle)
      const plan = await releaseOnError(acquired.log, async () =>
        planBranch(acquired.folded, options, handle.session.id),
      )
      return beginAcquired(acquired, { ...handle, config, context, tags, budgets, ...requesters, ...plan })
    },

    /**
     * Acquires a session whose next run starts with a queued message. The run starts when the returned function is
     * called, so that a subscriber can attach first. Returns null if no message waits, if the session is active or
     * waiting, or if another process holds it.
     */
    beginQueued: async (
      id: string,
      { findSender, afterStop }: QueuedRunOptions,
    ): Promise<(() => Run) | null> => {
      const runId = createId()
      const acquired = await acquire(id, { holder: `run ${runId}` }).catch(nullIfBusy)
      if (acquired === null) return null
      const { log, folded } = acquired
      return releaseOnError(log, async () => {
        const mayBegin =
          folded.run?.status !== 'active' && (afterStop || !folded.run || !isQueueStopped(folded.run.context))
        const queued = mayBegin
          ? await log.inbox.findNext((folded.run?.context ?? folded.state).messages)
          : null
        const found = queued && findSender(queued.messageId)
        if (!queued || !found) {
          await log.close()
          return null
        }
        parts.model.check?.()
        const { context, tags } = found
        const conversation = { history: [], newMessages: queued.messages }
        return prepareRun(acquired, { conversation, context, tags, queued }, runId)
      })
    },

    readFolded: (id: string) => readSessionAt(store, id),
    read: (id: string) => readSession(store, checkSessionId(id)),
    replay: (id: string, options?: { branch?: number; to?: number }): Promise<SessionSnapshot> => {
      expectArgument('agent.replay(id, options)', options, optionsRule)
      return replayBranch(store, checkSessionId(id), options)
    },
    rename: (id: string, title: string | null) => renameSession(store, checkSessionId(id), title),
    fork: async (id: string, seq?: number, options: ForkOptions = {}): Promise<string> => {
      expectArgument('agent.fork(id, seq, options)', options, optionsRule)
      const folded = await readSessionAt(store, checkSessionId(id), seq)
      const isEdited = options.edit !== undefined || options.askFirst === true
      const edited = isEdited && { start: await editFork(parts, folded, options) }
      return forkSession(storeParts, { sessionId: id, folded, ...edited })
    },
    listBranches: (id: string) => listBranches(store, id),
    selectBranch: (id: string, branch: number) => selectBranch(storeParts, id, branch),
    watch: (id: string, options: WatchOptions | undefined, left: AbortSignal) =>
      watchSession(storeParts, id, options, left),
    delete: async (id: string): Promise<boolean> => {
      const deleted = await deleteSession(store, clock, id)
      await store.purge?.()
      return deleted > 0
    },
    deleteAll: (owner: SessionOwner) => deleteSessions(storeParts, owner),
  }
}

/** Maximum number of resumes without progress. */
const maxResumes = 5

/** Ends a run that crashes every process that resumes it. Returns the resulting state of the session. */
function endPoisonedRun(
  parts: StoreParts,
  acquired: AcquiredSession,
): Promise<FoldedSession> | FoldedSession {
  const { log, folded } = acquired
  if (folded.run?.status !== 'active' || folded.resumeCount < maxResumes) return folded
  const message =
    `The session was resumed ${maxResumes} times without a new record, so its next step seems to crash the process. Read its ` +
    `last records. agent.fork('${log.sessionId}') creates a session that continues from there.`
  return endStoredRun(parts, acquired, { type: 'STORE_FAILED', failure: { code: 'poisoned', message } })
}

/** @throws {UsageError} `invalid_option` */
function checkBranchOptions(options: BranchOptions): BranchOptions {
  const { from, key } = options ?? {}
  const rule = "branch() needs { from }: the id of the message to edit or answer again, such as 'm3'."
  if (typeof from !== 'string' || from === '') throw optionError(rule, 'from')
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 500))
    throw optionError('key must be a string of 1 to 500 characters.', 'key')
  for (const name of ['session', 'journal', 'inspect'])
    if (Object.hasOwn(options, name)) throw optionError(`branch() has no option '${name}'.`, name)
  return options
}

function planBranch(
  folded: FoldedSession,
  { from, edit, attachments, key }: BranchOptions,
  sessionId: string,
): Pick<RunStart, 'conversation' | 'branch'> {
  if (folded.head === 0) throw unknownSessionError(sessionId)
  refuseSubAgentSession(sessionId, folded.parent)
  const tree = folded.branches ?? unbranched
  if (key !== undefined && getBranch(tree).key === key) {
    const text = `The session is already on the branch that was created with the key '${key}'.`
    throw new UsageError('already_branched', text, key)
  }
  refuseUnfinishedRun(folded, sessionId)
  // Uses the messages of the run, because the session's unscreened messages are masked.
  const messages: readonly Message[] = folded.run?.context.messages ?? folded.state.messages
  const at = findTurnIndex(messages, from)
  const message = messages[at]
  if (message?.role !== 'user') throw notThereError(folded, from, sessionId)
  if (tree.branches.length >= maxBranches) {
    const text =
      `Session '${sessionId}' already has ${maxBranches} branches, the maximum. agent.fork('${sessionId}') creates a session that ` +
      'continues from here.'
    throw new UsageError('too_many_branches', text, sessionId)
  }
  const { turnEnds = [] } = folded.run?.context ?? folded.state
  const newMessages = edit === undefined ? sayAgain(messages, at, turnEnds) : sayInstead(message, edit)
  const branch: BranchStart = {
    keep: at,
    ...(edit === undefined && { regenerate: true as const }),
    ...(key !== undefined && { key }),
  }
  return { conversation: { history: [], newMessages: withAttachments(newMessages, attachments) }, branch }
}

/** Repeats the message with its client id. Shields screen it like a new message. */
function sayAgain(messages: readonly Message[], at: number, ends: readonly TurnEnd[]): NewMessage[] {
  const message = messages[at] as UserMessage
  const next = messages[at + 1]
  // A run may have ended before it answered.
  const hasTurn = ends.some(({ messageId }) => messageId === message.id)
  if (next && isTurnOpening(next) && !hasTurn) {
    const text = `Message '${message.id}' was not answered, because another message follows it. Branch from the message that was answered.`
    throw new UsageError('not_answered', text, message.id)
  }
  const { screened: _screened, withheld, ...data } = message.data ?? {}
  if (withheld === true) {
    const text = `A shield refused message '${message.id}', so the session does not contain its text. Pass new content in edit.`
    throw new UsageError('refused_by_shield', text, message.id)
  }
  return [{ content: message.content, data: { ...data, clientId: findClientId(message) ?? message.id } }]
}

function sayInstead(message: UserMessage, edit: UserInput): NewMessage[] {
  const messages = toMessages(edit)
  const id = findClientId(message) ?? message.id
  return messages.map((one, i) =>
    i === messages.length - 1 && findClientId(one) === undefined
      ? { ...one, data: { ...one.data, clientId: id } }
      : one,
  )
}

function notThereError(folded: FoldedSession, from: string, sessionId: string): UsageError {
  const { run, branches, state } = folded
  const number = parseMessageNumber(from.replace(/\.answer$/, ''))
  const numbered = run?.context.lastMessageNumber ?? state.messages.length
  const isOfBranch =
    branches !== null &&
    ((number !== null && number <= numbered) ||
      branches.branches.some(({ clientIds }) => clientIds.includes(from)))
  const text = `Message '${from}' of session '${sessionId}' is on another branch. Select that branch first.`
  return isOfBranch
    ? new UsageError('other_branch', text, from)
    : new UsageError('unknown_message', `Session '${sessionId}' has no message '${from}'.`, from)
}
