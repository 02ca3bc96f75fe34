import { expectArgument, objectRule } from '../core/base/values.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { isRestState, isActiveState } from '../../machines/agent/run-result.js'
import { createTicker, systemClock } from '../core/base/clock.js'
import { describeError, StatewrightError, optionError } from '../core/base/errors.js'
import type { SessionAnswer } from '../core/drive/drive-answers.js'
import type { Agents } from '../core/drive/define-agents.js'
import type { SessionRunnerOptions } from '../core/drive/driver.js'
import { type RunSessionOptions, checkDriveOptions } from '../core/drive/drive-options.js'
import type { SessionResult } from '../core/drive/drive-rest.js'
import {
  addHostValues,
  type HostFunctions,
  type HostOptionsFor,
  openHost,
  sendToSession,
} from '../core/drive/host-functions.js'
import type { Receipt } from '../core/sessions/inbox/session-message.js'
import { wakeSleepers } from '../core/drive/wake-sleepers.js'
import { listOpenSessions } from '../core/drive/stranded-sessions.js'
import { getListedDefinition } from '../core/sessions/agent-definition.js'
import type { ListedSession, SessionStore } from '../core/sessions/store/store.js'
import { isQueuedText, isSteeringText } from '../core/sessions/inbox/queued-message.js'
import { listUnread } from '../core/sessions/inbox/inbox-owners.js'

/** Options for `dbosSessions`. */
export interface DbosSessionsOptions<Context = unknown> extends SessionRunnerOptions, HostFunctions<Context> {
  /** Concurrency and rate limits of the queue. Defaults to 50 concurrent sessions in each process. */
  queue?: DbosQueueOptions
  /** The maximum time in milliseconds that a session waits for people before it is cancelled. Unlimited by default. */
  answerTimeoutMs?: number
  /** The interval in milliseconds at which a process looks for sessions of dead processes. Defaults to 10,000. */
  sweepMs?: number
  /** The `applicationVersion` of the DBOS configuration, if set. It must stay the same across deploys. */
  appVersion?: string
}

/** This process's sessions in DBOS. */
export interface DbosSessions {
  /**
   * Registers the queue, and starts looking for sessions of dead processes. Call it after `DBOS.launch()`.
   * @throws {StatewrightError} `engine_unavailable` if DBOS refuses. `enqueue` and `answer` throw it too
   */
  start(): Promise<void>
  /** Queues a session for any process. A repeated request for the same turn has no effect. */
  enqueue(request: DbosEnqueueRequest): Promise<void>
  /**
   * Answers a resting session, and queues it. An answer to a call needs either the call's `fingerprint` or `at`, the
   * `head` of the log to which the answer refers. Requests with the same `id` count once. Returns the receipts.
   * @throws {StoreError} `unknown_session`
   * @throws {UsageError} `unbound_answer`, `unknown_call`, `already_answered`, `stale_answer`, `run_ended`, `not_waiting`,
   * `invalid_input`
   */
  answer(
    session: string,
    answers: readonly SessionAnswer[],
    options?: { at?: number; id?: string },
  ): Promise<Receipt[]>
  /** Stops starting sessions; see `SessionRunner`. Call `DBOS.shutdown()` afterwards. */
  drain: () => Promise<void>
}

const known = ['queue', 'answerTimeoutMs', 'sweepMs', 'appVersion'] satisfies (keyof DbosSessionsOptions)[]
const workflowName = 'statewright.drive'
const queueName = 'statewright.sessions'
const maxRetryWaitMs = 10_000
const maxDriveBytes = 1000
/** Poll interval for messages to resting sessions. */
const inboxPollMs = 1000
/** Retry delay for a request received by a draining process. */
const drainedRetryMs = 100
/** The maximum delay before the next attempt of a refused request. */
const mostRetryMs = 30_000

/**
 * Runs sessions in a DBOS queue. Each call to `runSession` is a workflow with one step. A session that waits has no
 * workflow until it continues. Sessions of dead processes are found by their leases and queued again.
 *
 * @example
 * const host = (DBOS: DbosLike) => dbosSessions(DBOS, defineAgents({ support: createAgent({ model, store: memoryStore() }) }))
 * @throws {ConfigError} `invalid_config`
 */
export function dbosSessions<Context = unknown>(
  DBOS: DbosLike,
  agents: Agents<Context>,
  ...options: HostOptionsFor<DbosSessionsOptions<NoInfer<Context>>, NoInfer<Context>>
): DbosSessions
export function dbosSessions(
  DBOS: DbosLike,
  agents: Agents,
  options: DbosSessionsOptions = {},
): DbosSessions {
  expectArgument(
    'dbosSessions(DBOS)',
    DBOS,
    objectRule(['registerWorkflow'], "the DBOS class: import { DBOS } from '@dbos-inc/dbos-sdk'"),
  )
  const { runner, store } = openHost(['dbosSessions', 'DBOS'], agents, options, known)
  const { queue = { workerConcurrency: 50 }, answerTimeoutMs, sweepMs = 10_000, appVersion } = options
  let isPolling = false
  const createPoll = (ms: number, look: () => Promise<void>) =>
    createTicker(systemClock, {
      getMs: () => ms,
      isNeeded: () => isPolling,
      // The store or queue may be temporarily unavailable.
      work: async () => look().catch(() => undefined),
    })

  const put = async (queued: QueuedDrive, delayMs = 0): Promise<void> => {
    const size = new TextEncoder().encode(JSON.stringify(queued)).length
    if (size > maxDriveBytes)
      throw new StatewrightError(
        'payload_too_large',
        `The enqueue payload for session '${queued.session}' has ${size} bytes. DBOS stores each payload, so the limit is ${maxDriveBytes}. ` +
          'Omit the input, and return it from the option loadInput.',
        'input',
      )
    const isBeginning = (queued.input !== undefined || queued.begins === true) && queued.attempt === 0
    await DBOS.enqueueWorkflowWithOptions(
      {
        queueName,
        workflowName,
        workflowID: `${queued.base}.${queued.attempt}`,
        ...(delayMs > 0 && { delaySeconds: delayMs / 1000 }),
        // Sessions that have started come before new ones.
        priority: queued.priority ?? (isBeginning ? 10 : 5),
        ...(appVersion !== undefined && { appVersion }),
      },
      queued,
    )
  }

  const workflow = async (queued: QueuedDrive): Promise<SessionResult | RefusedDrive> => {
    checkDrive(queued)
    const outcome = await DBOS.runStep(() => attempt(queued), { name: 'drive' })
    if ('later' in outcome) {
      const { later, refused } = outcome
      await put({ ...queued, attempt: queued.attempt + 1, refused }, later)
    } else if (outcome.waitMs !== undefined) {
      await put(createDriveAfterWait(queued, outcome), outcome.waitMs)
    } else if (outcome.stopped)
      await put({ ...toResumingDrive(queued, outcome), attempt: queued.attempt + 1 })
    else if (outcome.wakeMs !== undefined) await put(createDriveAfterSleep(queued, outcome), outcome.wakeMs)
    else if (answerTimeoutMs !== undefined && isRestState(outcome.state)) {
      const { session, head } = outcome
      const answers: SessionAnswer[] = [{ type: 'cancel', why: 'No answer arrived in time.' }]
      await put({ session, answers, at: head, base: `late:${session}:${head}`, attempt: 0 }, answerTimeoutMs)
    }
    return outcome
  }

  const attempt = async (queued: QueuedDrive): Promise<SessionResult | RefusedDrive> => {
    const { session, input, turn, agent, answers, at, begins = false, refused = 0 } = queued
    try {
      const given = omitUndefined({ input, turn, agent, answers, at })
      const driveOptions: RunSessionOptions = { session, maxRetryWaitMs, ...given }
      return await runner.runSession(await addHostValues(options, driveOptions, begins))
    } catch (error) {
      if (!(error instanceof StatewrightError)) throw error
      // A later deploy may add the agent.
      if (!error.retryable && error.code !== 'unknown_agent') throw error
      // A draining process passes the request on, which is not a refusal.
      const isPassed = error.code === 'draining'
      return {
        later: isPassed ? drainedRetryMs : Math.min(mostRetryMs, 500 * 2 ** Math.min(refused, 10)),
        refused: refused + (isPassed ? 0 : 1),
      }
    }
  }

  const found = (session: string, head: number): Promise<void> =>
    put({ session, base: `found:${session}:${head}:${Math.floor(Date.now() / sweepMs)}`, attempt: 0 })

  DBOS.registerWorkflow(workflow, { name: workflowName })

  const polls = [
    createPoll(sweepMs, () => sweepSessions(DBOS, agents, store, { now: Date.now(), found })),
    createPoll(inboxPollMs, createInboxPoll(agents, store, { againMs: sweepMs, found })),
    // Other programs can put sessions to sleep. A session that DBOS drives is already awake.
    createPoll(inboxPollMs, async () => {
      await wakeSleepers(agents, store, async ({ session, at }) => {
        await put({ session, base: `alarm:${session}:${at}`, attempt: 0 })
        return null
      })
    }),
  ]

  return {
    start: async () => {
      await translateEngineErrors(() =>
        DBOS.registerQueue(queueName, { minPollingIntervalMs: 200, ...queue }),
      )
      isPolling = true
      for (const poll of polls) poll.start()
    },
    enqueue: async (drive) => {
      checkDrive(drive)
      if (drive.agent !== undefined) agents.get(drive.agent)
      const base = `drive:${drive.session}:${drive.turn ?? 1}`
      // The process that takes the request checks whether `loadInput` has its input.
      const begins = drive.input === undefined
      await translateEngineErrors(() =>
        put({ turn: 1, ...drive, base, attempt: 0, ...(begins && { begins }) }),
      )
    },
    answer: async (session, answers, { at, id } = {}) => {
      checkDrive({ session, answers, ...(at !== undefined && { at }) })
      const receipts: Receipt[] = []
      try {
        for (const [i, answer] of answers.entries()) {
          const key = id === undefined ? undefined : `${id}.${i}`
          // Answers keep their order.
          receipts.push(await sendToSession(agents, store, session, answer, { at, key }))
        }
      } finally {
        // A process that holds the session reads the answer, and an ended session needs no workflow.
        const last = receipts.findLast(({ status }) => status === 'waiting')
        if (last)
          await translateEngineErrors(() =>
            put({ session, base: `answer:${session}:${last.message}`, attempt: 0 }),
          )
      }
      return receipts
    },
    drain: () => {
      isPolling = false
      for (const poll of polls) poll.stop()
      return runner.drain()
    },
  }
}

/** Converts errors thrown outside workflows. Inside, DBOS must see its own errors. */
async function translateEngineErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StatewrightError) throw error
    throw new StatewrightError(
      'engine_unavailable',
      `DBOS refuses: ${describeError(error).replace(/\.?$/, '.')} Await DBOS.launch() first, and check that DBOS can reach its Postgres.`,
      'DBOS',
      { cause: error },
    )
  }
}

type Found = (session: string, head: number) => Promise<void>

const waitPrefix = 'wait:'

const createWaitId = (session: string, head: number): string => `${waitPrefix}${session}:${head}:`

/** A process that just took a request may not have acquired its session yet. */
const graceMs = 3000
const pageSize = 200

/**
 * Finds the work of dead processes: active sessions without a lease owner, and requests that a process took without
 * reaching their session. Two processes that sweep at once queue the same work once.
 */
export async function sweepSessions(
  DBOS: DbosLike,
  agents: Agents,
  store: SessionStore,
  { now, found }: { now: number; found: Found },
): Promise<void> {
  const left: { id: string; head: number }[] = []
  for await (const listed of listOpenSessions(store, ['RUNNING', 'WAITING_FOR_TOOL'])) {
    const { id, head, holder, updatedAt, summary } = listed
    if (holder !== null || isRecent(updatedAt, now) || summary?.unresumed) continue
    if (isOwn(agents, listed)) left.push({ id, head })
  }
  // Workflows that run after a provider's wait. Their sessions have no lease owner.
  const waiting = { status: 'DELAYED', workflow_id_prefix: waitPrefix } as const
  const waits = left.length > 0 ? await listAllWorkflows(DBOS, waiting) : []
  for (const { id, head } of left)
    if (!waits.some(({ workflowID }) => workflowID.startsWith(createWaitId(id, head)))) await found(id, head)
  const taken = await listAllWorkflows(DBOS, { status: 'PENDING', loadInput: true })
  for (const { workflowID, executorId, input, dequeuedAt, updatedAt } of taken) {
    const { session } = (input?.[0] ?? {}) as { session?: unknown }
    if (executorId === DBOS.executorID || typeof session !== 'string') continue
    if (isRecent(dequeuedAt ?? updatedAt ?? 0, now)) continue
    const listed = await store.get(session)
    if (!listed?.holder) await DBOS.resumeWorkflow(workflowID, { queueName })
  }
}

/** Whether a time is recent. The two times come from different clocks, so a time far in the future is not recent. */
function isRecent(at: number, now: number): boolean {
  const age = now - at
  return age >= 0 && age < graceMs
}

/** Whether this process has the session's agent. Other processes run the remaining sessions. */
function isOwn(agents: Agents, { summary }: ListedSession): boolean {
  const begun = getListedDefinition(summary)
  return begun === null || agents.findAgentFor(begun) !== undefined
}

/** Reads all pages, because a dead process can be on any of them. */
async function listAllWorkflows(
  DBOS: DbosLike,
  filter: Omit<DbosListOptions, 'limit' | 'offset' | 'workflowName'>,
) {
  const found: DbosWorkflow[] = []
  for (let page: readonly DbosWorkflow[] | undefined; page === undefined || page.length === pageSize; ) {
    page = await DBOS.listWorkflows({ workflowName, ...filter, limit: pageSize, offset: found.length })
    found.push(...page)
  }
  return found
}

/** Queues resting sessions with unread messages, again after `againMs` milliseconds. */
export function createInboxPoll(
  agents: Agents,
  store: SessionStore,
  { againMs, found }: { againMs: number; found: Found },
): () => Promise<void> {
  let tried = new Map<string, { inbox: number; at: number }>()
  return async () => {
    const now = performance.now()
    const before = tried
    tried = new Map()
    const resting = listOpenSessions(store, ['WAITING_FOR_INPUT', 'PAUSED'])
    for (const { sessionId, inbox } of await listUnread(store, resting)) {
      const last = before.get(sessionId)
      if (last?.inbox === inbox && now - last.at < againMs) {
        tried.set(sessionId, last)
        continue
      }
      tried.set(sessionId, { inbox, at: now })
      const listed = await store.get(sessionId)
      if (!listed || listed.holder !== null || !(await canContinue(store, listed))) continue
      if (isOwn(agents, listed)) await found(sessionId, listed.head)
    }
  }
}

/** An answer continues a waiting session, a queued message an ended one, but not after a cancelled run. */
async function canContinue(store: SessionStore, { id, summary }: ListedSession): Promise<boolean> {
  const state = summary?.state ?? null
  if (isActiveState(state) || state === 'CANCELLED') return false
  const found = (await store.inbox?.read(id)) ?? []
  return found.some(({ text }) =>
    isRestState(state) ? !isQueuedText(text) || isSteeringText(text) : isQueuedText(text),
  )
}

/** A request to run a session, including its answers: at most 1,000 bytes of JSON. */
export interface DbosEnqueueRequest {
  session: string
  /** Input of the run. Defaults to the result of `loadInput`, which may be longer. */
  input?: string
  /** The turn to run; see `runSession`. Defaults to the first. */
  turn?: number
  agent?: string
  /** The priority, of which 0 is the highest. Defaults to 10 for new sessions and 5 for started ones. */
  priority?: number
}

interface QueuedDrive extends DbosEnqueueRequest {
  answers?: readonly SessionAnswer[]
  at?: number
  /** The id of the first attempt, and the number of attempts. */
  base: string
  attempt: number
  begins?: boolean
  refused?: number
}

/** A request that another process must run, or this process after a delay. */
interface RefusedDrive {
  /** Delay in milliseconds. */
  later: number
  refused: number
}

/**
 * Validates a request that enters or leaves the queue, because other programs can write to the queue.
 * @throws {UsageError} `invalid_session`, `invalid_option`, naming the key
 */
function checkDrive(drive: unknown): void {
  if (typeof drive !== 'object' || drive === null)
    throw optionError('enqueue takes { session, input, … }.', 'session')
  const { session, turn, agent, answers, at, input, priority } = drive as Partial<QueuedDrive>
  checkDriveOptions({ session, turn, agent, answers, at })
  if (input !== undefined && typeof input !== 'string')
    throw optionError('The input of enqueue must be a string, because DBOS stores it.', 'input')
  if (priority !== undefined && !(Number.isSafeInteger(priority) && priority >= 0))
    throw optionError('The priority of enqueue must be a non-negative integer.', 'priority')
}

/** The single request after a wait, whatever arrives in the meantime. Answers are queued separately. */
function createDriveAfterWait(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const next = toResumingDrive(queued, rest)
  const base = next.answers ? queued.base : `${createWaitId(rest.session, rest.head)}${rest.waitUntil}`
  const attempt = base === queued.base ? queued.attempt + 1 : 0
  return { ...next, base, attempt }
}

/** The request that wakes a sleeping session: one for each sleep, and a second one if that came too early. */
function createDriveAfterSleep(queued: QueuedDrive, rest: SessionResult): QueuedDrive {
  const base = `sleep:${rest.session}:${rest.head}:${rest.wakeAt}`
  return { session: rest.session, base, attempt: base === queued.base ? queued.attempt + 1 : 0 }
}

/** Does not start a deleted session again, and omits answers that the run has read. */
function toResumingDrive(
  { input: _input, begins: _begins, refused: _refused, answers, ...queued }: QueuedDrive,
  { undelivered: unsaid }: Pick<SessionResult, 'undelivered'>,
): QueuedDrive {
  return { ...queued, ...(unsaid && answers && { answers }) }
}

/** The part of the `DBOS` class from `@dbos-inc/dbos-sdk` (version 5) that is used. The class is passed in, not imported. */
export interface DbosLike {
  readonly executorID: string
  readonly workflowID: string | undefined
  registerWorkflow<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
    config: { name: string },
  ): (...args: Args) => Promise<Result>
  registerQueue(name: string, options: DbosQueueOptions): Promise<unknown>
  runStep<Result>(step: () => Promise<Result>, config: { name: string }): Promise<Result>
  enqueueWorkflowWithOptions(options: DbosEnqueueOptions, ...args: unknown[]): Promise<unknown>
  listWorkflows(options: DbosListOptions): Promise<readonly DbosWorkflow[]>
  resumeWorkflow(id: string, options: { queueName: string }): Promise<unknown>
}

/** Concurrency and rate limits of the DBOS queue. */
export interface DbosQueueOptions {
  /** The limit for each process. */
  workerConcurrency?: number
  /** The limit for all processes together. */
  globalConcurrency?: number
  /** Maximum number of workflow starts per period. */
  rateLimit?: { limitPerPeriod: number; periodSec: number }
  /** Poll interval for an idle queue, in milliseconds. */
  minPollingIntervalMs?: number
}

interface DbosEnqueueOptions {
  queueName: string
  workflowName: string
  workflowID: string
  delaySeconds?: number
  priority?: number
  appVersion?: string
}

interface DbosListOptions {
  workflowName: string
  status: 'PENDING' | 'DELAYED'
  workflow_id_prefix?: string
  limit: number
  offset: number
  loadInput?: boolean
}

interface DbosWorkflow {
  readonly workflowID: string
  readonly executorId?: string
  readonly input?: unknown[]
  readonly updatedAt?: number
  readonly dequeuedAt?: number
}
