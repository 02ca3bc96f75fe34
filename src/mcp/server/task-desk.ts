import { isActiveState, isRestState } from '../../../machines/agent/run-result.js'
import type { ControlEvent, AgentContext } from '../../../machines/agent/context.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import { internalsByAgent } from '../../core/agent/agent-internals.js'
import { createNap } from '../../core/base/abort.js'
import { systemClock, wait } from '../../core/base/clock.js'
import { createId } from '../../core/base/platform.js'
import { runInTurn, valueOr } from '../../core/base/maybe-promise.js'
import { isObject } from '../../core/base/values.js'
import { describeError, inputError, StatewrightError, UsageError } from '../../core/base/errors.js'
import { createSessionRunner } from '../../core/drive/driver.js'
import type { RunSessionOptions } from '../../core/drive/drive-options.js'
import { sendToSession } from '../../core/drive/host-functions.js'
import { findClientId, isTurnOpening } from '../../core/sessions/find-turn.js'
import type { FoldedSession } from '../../core/sessions/fold-session.js'
import { parseInboxMessage, type SessionMessage } from '../../core/sessions/inbox/session-message.js'
import { readSessionAt } from '../../core/sessions/replay-session.js'
import { isSessionBusy } from '../../core/sessions/store/store-error.js'
import { type AccessGrant, toSessionId } from '../../web/authorize.js'
import { isSameCall } from '../../web/call-answers.js'
import { nullIfUnknown } from '../../web/chat-sessions.js'
import { hasCode } from '../../web/error-response.js'
import { type ToolRequest, createCallName, formatClientId, listCalls } from './agent-tools.js'
import type { CheckedOptions } from './options.js'
import { type Question, readFormAnswer, listQuestions } from './questions.js'
import { findDueTime } from '../../../machines/agent/due-times.js'
import { isDue } from '../../core/drive/wake-sleepers.js'
import { readRunTime } from '../../core/sessions/open-session.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { listPendingCalls } from '../../../machines/agent/questions.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { formatToolName } from '../../core/format/format-call.js'
import type { Agents } from '../../core/drive/define-agents.js'
import { type CheckedExpose, createPageView } from '../../web/exposure.js'

/** A turn of a session, which is the task of one call. */
export interface Task {
  /** The client's id for the session, with a number for later turns, such as `order-17~2`. */
  id: string
  /** The client's id for the session. */
  named: string
  /** The id of the session in the store. */
  session: string
  turn: number
}

interface TaskCall extends ToolRequest {
  agent: string
  /** The idempotency key of the request. */
  key: string | undefined
}

/** The codes of errors for an answer that came too late to change anything. */
const tooLate = [
  'unknown_call',
  'already_answered',
  'stale_answer',
  'run_ended',
  'wrong_state',
  'not_waiting',
]

/** Poll interval for a session that another process runs, in milliseconds. */
const lookMs = 250
/** Poll interval until a started run appears in the store, in milliseconds. */
const beginLookMs = 10

export type TaskHost = ReturnType<typeof createTaskHost>

export function createTaskHost(options: CheckedOptions) {
  const { agents, drainMs } = options
  const [first = ''] = agents.names
  return {
    options,
    runner: createSessionRunner(agents, omitUndefined({ drainMs })),
    clock: internalsByAgent.get(agents.get(first).agent)?.parts.clock ?? systemClock,
    working: new Map<string, Promise<void>>(),
  }
}

export type TaskDesk = ReturnType<typeof openTaskDesk>

export type StandingTask = NonNullable<Awaited<ReturnType<TaskDesk['look']>>>

/** The tasks of one principal. All state is in the store, so any process can serve a task. */
export function openTaskDesk({ options, runner, clock, working }: TaskHost, grant: AccessGrant) {
  const { agents, store } = options

  const read = async (session: string): Promise<FoldedSession | null> =>
    nullIfUnknown(readSessionAt(store, session))

  /** Runs a session until it rests, unless this process is already running it. Never rejects. */
  function work(
    session: string,
    more: Partial<RunSessionOptions> = {},
    refused?: (error: unknown) => void,
  ): Promise<void> {
    const before = working.get(session)
    if (before && refused === undefined) return before
    return runInTurn(working, session, async () => {
      try {
        await runner.runSession({ session, context: grant.context, ...more })
      } catch (error) {
        if (refused) return refused(error)
        if (!isSessionBusy(error) && !hasCode(error, 'draining')) options.onError(error)
        // Callers that wait for the task check it again only after this delay.
        await wait(clock, lookMs)
      }
    })
  }

  /** Resolves when the store has the turn. Rejects if the turn cannot start, or if the caller has left. */
  async function start(
    { id, named, session, turn }: Task,
    begin: Partial<RunSessionOptions>,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      let refusal: unknown
      const running = work(session, { ...begin, turn }, (error) => (refusal = error)).then(() => true)
      let hasEnded = false
      do {
        hasEnded = await Promise.race([running, wait(clock, beginLookMs).then(() => false)])
        if (((await store.get(session))?.summary?.runs ?? 0) >= turn) return
      } while (!hasEnded)
      const why = `The task '${id}' could not start. Call the tool again.`
      if (!isSessionBusy(refusal)) throw refusal ?? new StatewrightError('not_begun', why, id)
      // Another process may be starting this turn, or may have died with the session's lease.
      await wait(clock, lookMs)
    }
    throw sessionInUseError(named, 'is in use by another process. Try again.')
  }

  /** Returns false if the answer came too late to change anything. */
  async function send(session: string, message: SessionMessage, question?: Question): Promise<boolean> {
    try {
      // A repeated answer counts once.
      await sendToSession(agents, store, session, message, { key: question && `mcp ${question.key}` })
      return true
    } catch (error) {
      // The process that continues the run also ends the expired question.
      if (hasCode(error, 'approval_expired')) return true
      if (hasCode(error, ...tooLate)) return false
      throw error
    }
  }

  async function find(id: string) {
    const parsed = parseTaskId(id)
    // An id that no session can have belongs to no task.
    const session = parsed && valueOr(() => toSessionId(grant, parsed.named), null)
    if (parsed === null || session === null) return null
    const { named, turn } = parsed
    // Read before the log, because a message that leaves the inbox in the meantime is then in the log.
    const inbox = (await store.inbox?.read(session)) ?? []
    const folded = await read(session)
    // The session of a sub-agent belongs to the run that called it.
    if (folded === null || folded.parent !== undefined || turn > folded.runs) return null
    const task = toTask(named, session, turn)
    if (turn < folded.runs) {
      const starts = (await store.read(session)).filter(({ type }) => type === 'start')
      const ended = await readSessionAt(store, session, (starts[turn]?.seq ?? 1) - 1)
      return { task, folded: ended, isLatest: false, unread: [] }
    }
    const unread = inbox
      .filter(({ message }) => message > folded.inbox)
      .flatMap((found) => parseInboxMessage(found) ?? [])
    return { task, folded, isLatest: true, unread }
  }

  /** Whether a run without a lease owner has pending work, a question has expired, or a sleep is over. */
  async function canGoOn(folded: FoldedSession, unread: readonly ControlEvent[]): Promise<boolean> {
    if (folded.run?.status !== 'active') return false
    const { context } = folded.run
    if (isActiveState(context.state) || unread.length > 0) return true
    return findDueTime(context) !== null && isDue(context, await readRunTime(store, folded, clock))
  }

  /** Null if this principal has no such task. With `continues`, continues a task that no process runs. */
  async function look(id: string, { continues }: { continues: boolean }) {
    const found = await find(id)
    if (found === null) return null
    const { task, folded, isLatest, unread } = found
    const listed = await store.get(task.session)
    const isIdle = isLatest && listed?.holder === null && !working.has(task.session)
    const mayWork = grant.mayContinue || grant.context === undefined
    const isWaiting = isIdle && (await canGoOn(folded, unread))
    if (isWaiting && mayWork && continues) void work(task.session)
    const current = withoutAnswered(await viewTask(folded, task.named, options), unread)
    const { createdAt = 0, updatedAt = 0 } = listed ?? {}
    /** No process runs the task, and this principal may not continue it. */
    const isLeft = isWaiting && !mayWork
    return { ...task, ...current, createdAt, updatedAt, isLeft, seal: createSeal(found) }
  }

  return {
    look,

    /**
     * Starts the task of a call, or finds the task of an earlier identical call. Resolves when the store has the task.
     * @throws {UsageError} `session_in_use`, `key_reused`, `invalid_session`, `invalid_input`
     */
    async begin(call: TaskCall, signal: AbortSignal): Promise<Task> {
      const { agent, message, key } = call
      const named = call.session ?? (key === undefined ? createId() : createKeyedId(agent, key))
      const session = toSessionId(grant, named)
      const folded = await read(session)
      if (folded !== null) checkOwner(folded, call, named)
      const known = folded && findTurn(folded, call, session)
      if (known !== null) return toTask(named, session, known)
      if (folded?.run?.status === 'active') {
        const why = 'is still working on another message. Request its task, or wait for it to finish.'
        throw sessionInUseError(named, why)
      }
      const turn = (folded?.runs ?? 0) + 1
      const input = [{ content: message, clientId: formatClientId(createCallName(session, call), turn) }]
      const { by, tags } = grant
      await start(toTask(named, session, turn), { input, agent, by, ...(tags && { tags }) }, signal)
      // Another call may have started this turn in the meantime.
      const begun = await read(session)
      const own = begun && findTurn(begun, call, session)
      if (own === null)
        throw sessionInUseError(named, 'has started another message in the meantime. Try again.')
      return toTask(named, session, own)
    },

    /**
     * The task of an identical call that returns the server's state. Null if it does not belong to this principal.
     * @throws {UsageError} `other_call`
     */
    async recall(state: CallState, call: TaskCall): Promise<Task | null> {
      const found = await find(state.task)
      if (found === null || createSeal(found) !== state.seal) return null
      const { session, turn, id } = found.task
      const { key, words } = createCallName(session, call)
      const isSame = listCalls(found.folded).some(
        (one) => one.turn === turn && one.words === words && (call.key === undefined || one.key === key),
      )
      const isNamed = call.session === undefined || toTask(call.session, session, turn).id === id
      if (isSame && isNamed) return found.task
      throw new UsageError(
        'other_call',
        'This requestState belongs to another call. Send it with the same tool, arguments and key.',
        'requestState',
      )
    },

    /**
     * Resolves when the task waits for a person, has ended, or cannot be continued. `signal` stops waiting. `report`
     * receives descriptions of the task while it works.
     */
    async settle(id: string, signal: AbortSignal, report?: (about: string) => void) {
      const nap = createNap(clock)
      for (;;) {
        const task = await look(id, { continues: true })
        if (task === null || task.status !== 'working' || task.isLeft || signal.aborted) return task
        report?.(task.about)
        const running = working.get(task.session)
        // A run in this process ends the wait itself. Its progress, and other processes, are polled.
        const poll = nap.sleep(running && !report ? Infinity : lookMs, signal)
        try {
          await (running ? Promise.race([running, poll]) : poll)
        } finally {
          nap.wake()
        }
      }
    },

    /** Ignores answers to closed questions. Returns the errors by key, and the keys that stay open. */
    async answer(
      { session, questions }: Pick<Task & TaskView, 'session' | 'questions'>,
      responses: Readonly<Record<string, unknown>>,
    ): Promise<{ faults: Map<string, string>; left: Set<string> }> {
      const faults = new Map<string, string>()
      const left = new Set<string>()
      let isSent = false
      for (const question of questions) {
        const { key, fitsForm } = question
        if (!fitsForm || !Object.hasOwn(responses, key)) continue
        const answer = readFormAnswer(question, responses[key])
        if (answer === 'left') left.add(key)
        else if ('fault' in answer) faults.set(key, answer.fault)
        else {
          try {
            isSent = (await send(session, { ...answer.message, by: grant.by }, question)) || isSent
          } catch (error) {
            if (!hasCode(error, 'not_an_approver')) throw error
            faults.set(key, describeError(error))
          }
        }
      }
      if (isSent) void work(session)
      return { faults, left }
    },

    async cancel(
      { session, status }: Pick<Task & TaskView, 'session' | 'status'>,
      why?: string,
    ): Promise<void> {
      if (status === 'completed' || status === 'cancelled') return
      await send(session, { type: 'cancel', ...omitUndefined({ why }), by: grant.by })
      // No process runs the session, so its inbox has to be read here.
      void work(session)
    },
  }
}

/** Removes questions with an answer in the inbox, because they are no longer open. */
function withoutAnswered(view: TaskView, unread: readonly ControlEvent[]): TaskView {
  if (view.status !== 'input_required' || unread.length === 0) return view
  const answers = unread.flatMap((event) => ('callId' in event ? [event] : []))
  const questions = view.questions.filter(
    (question) => question.kind === 'call' && !answers.some((event) => isSameCall(event, question.call)),
  )
  // Other messages resume or end the run.
  if (questions.length > 0 && answers.length === unread.length) return { ...view, questions }
  return { status: 'working', about: 'It is reading the answers.', questions: [], result: null }
}

/** Derives the session id from the key, so that no mapping has to be stored. */
function createKeyedId(agent: string, key: string): string {
  if (key === '' || key.length > 200)
    throw inputError('_meta["statewright/key"] must have 1 to 200 characters.', 'statewright/key')
  return `key-${sha256(`${agent}\n${key}`).slice(0, 40)}`
}

/**
 * The turn that an earlier identical call started. With a key, any turn can match; otherwise only the latest one can.
 * Null if none matches.
 * @throws {UsageError} `key_reused`
 */
function findTurn(folded: FoldedSession, call: TaskCall, session: string): number | null {
  const { key, words } = createCallName(session, call)
  const calls = listCalls(folded)
  const known = calls.filter((one) => (key === '' ? one.turn === folded.runs : one.key === key))
  const same = known.findLast((one) => one.words === words && one.turn <= folded.runs)
  if (same !== undefined) return same.turn
  if (key === '' && known.length === 0) return isOpenedBy(folded, call.message) ? folded.runs : null
  if (key === '' || known.length === 0) return null
  throw new UsageError(
    'key_reused',
    'This key was used for another message. Send a new key with each new message.',
    'statewright/key',
  )
}

/** A turn from another interface or an earlier version contains only the message. */
function isOpenedBy({ run }: FoldedSession, message: string): boolean {
  const opening = run?.context.messages.findLast(isTurnOpening)
  return opening !== undefined && findClientId(opening) === undefined && opening.content === message
}

/** @throws {UsageError} `session_in_use` */
function checkOwner({ definition, parent }: FoldedSession, { agent }: TaskCall, named: string): void {
  if (parent !== undefined) throw sessionInUseError(named, 'belongs to a sub-agent. Choose another id.')
  if (definition?.name !== undefined && definition.name !== agent)
    throw sessionInUseError(named, `belongs to the agent '${definition.name}'. Choose another id.`)
}

function sessionInUseError(named: string, why: string): UsageError {
  return new UsageError('session_in_use', `The session '${named}' ${why}`, 'session')
}

export interface CallState {
  task: string
  seal: string
}

/** A digest of the run's random id. A client that returns it has seen the task. */
function createSeal({ task, folded }: { task: Task; folded: FoldedSession }): string {
  return sha256(`${task.session}\n${task.turn}\n${folded.run?.context.runId ?? ''}`).slice(0, 32)
}

function toTask(named: string, session: string, turn: number): Task {
  return { id: turn === 1 ? named : `${named}~${turn}`, named, session, turn }
}

function parseTaskId(id: string): { named: string; turn: number } | null {
  const [named = '', number, ...more] = id.split('~')
  if (more.length > 0) return null
  if (number === undefined) return { named, turn: 1 }
  return /^[1-9]\d{0,8}$/.test(number) && number !== '1' ? { named, turn: Number(number) } : null
}

/** A session's turn, as the protocol shows it. */
interface TaskView {
  status: 'working' | 'input_required' | 'completed' | 'cancelled'
  about: string
  /** The open questions. Empty except in `input_required`. */
  questions: readonly Question[]
  /** The result of the call. Set only in `completed` and `cancelled`. */
  result: ToolResult | null
}

export interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

/** `session` is the client's session id. */
async function viewTask(
  { run, head, definition }: FoldedSession,
  session: string,
  { agents, expose }: { agents: Agents; expose: CheckedExpose },
): Promise<TaskView> {
  const none = { questions: [], result: null }
  if (run === null) return { status: 'working', about: 'It has not started.', ...none }
  const { context } = run
  const { state } = context
  if (isActiveState(state)) return { status: 'working', about: describeWork(context), ...none }
  const page = createPageView(expose, session)
  const failure = context.error && page.maskFailure(context.error)
  if (isRestState(state)) {
    const pending = listPendingCalls(context)
    const questions = listQuestions({ state, pending, why: failure?.message ?? '' }, head)
    const about = questions.map((question) => question.about).join('\n')
    return { ...none, status: 'input_required', about, questions }
  }
  const end = (
    status: 'completed' | 'cancelled',
    about: string,
    { text, isError = true, ...structured }: Omit<ToolResult, 'content'> & { text: string },
  ): TaskView => ({
    status,
    about,
    questions: [],
    result: {
      content: [{ type: 'text', text }],
      ...structured,
      isError,
      _meta: { 'statewright/session': session, 'statewright/state': state },
    },
  })
  if (state === 'CANCELLED') return end('cancelled', 'Cancelled.', { text: 'The run was cancelled.' })
  const { output, reason } = context
  if (state === 'COMPLETED') {
    const agent = context.features.structuredOutput && agents.findAgentFor(definition)?.agent
    const { object } = agent ? await (agent as Agent).withObject(toRunResult(context)) : { object: undefined }
    // Converted to JSON, because a schema may have created values such as dates.
    const json = object === undefined ? undefined : (JSON.parse(JSON.stringify(object)) as unknown)
    const structured = isObject(json) && { structuredContent: json }
    return end('completed', 'Completed.', { text: output, ...structured, isError: false })
  }
  const about = failure?.message ?? `The run ended: ${reason ?? state}.`
  const text = output === '' ? about : `${output}\n\n[The answer is incomplete. ${about}]`
  return end('completed', about, { text })
}

function describeWork({ calls, steps, state }: AgentContext): string {
  const open = state === 'WAITING_FOR_TOOL' ? calls.filter(({ result }) => result === undefined) : []
  const names = [...new Set(open.map(({ name }) => formatToolName(name)))]
  const shown = names.length > 5 ? [...names.slice(0, 5), '…'] : names
  return shown.length > 0 ? `Step ${steps}: ${shown.join(', ')}.` : `Step ${steps + 1}.`
}
