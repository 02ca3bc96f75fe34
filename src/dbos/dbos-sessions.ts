import { expectArgument, objectRule } from '../core/base/values.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { createTicker, systemClock } from '../core/base/clock.js'
import { describeError, StatewrightError } from '../core/base/errors.js'
import type { SessionAnswer } from '../core/drive/drive-answers.js'
import type { Agents } from '../core/drive/define-agents.js'
import type { SessionRunnerOptions } from '../core/drive/driver.js'
import type { RunSessionOptions } from '../core/drive/drive-options.js'
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
import {
  createDriveAfterSleep,
  createDriveAfterWait,
  createInboxPoll,
  sweepSessions,
  toResumingDrive,
  checkDrive,
  type DbosEnqueueRequest,
  getRetryDelay,
  type QueuedDrive,
  type RefusedDrive,
} from './sweep-sessions.js'
import type { DbosLike, DbosQueueOptions } from './dbos-sdk.js'

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
    checkDrive(queued)
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
      if (!(error instanceof StatewrightError) || !canSucceedLater(error)) throw error
      // A draining process passes the request on, which is not a refusal.
      const isPassed = error.code === 'draining'
      return {
        later: isPassed ? drainedRetryMs : getRetryDelay(refused),
        refused: refused + (isPassed ? 0 : 1),
      }
    }
  }

  const found = (session: string, head: number): Promise<void> =>
    put({ session, base: `found:${session}:${head}:${Math.floor(Date.now() / sweepMs)}`, attempt: 0 })

  DBOS.registerWorkflow(workflow, { name: workflowName })

  const polls = [
    createPoll(sweepMs, () =>
      sweepSessions(DBOS, agents, store, { workflowName, queueName, now: Date.now(), found }),
    ),
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
          // oxlint-disable-next-line no-await-in-loop -- answers keep their order
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

/** Whether a retry may succeed, here or after a deploy that adds the agent. */
function canSucceedLater({ code, retryable }: StatewrightError): boolean {
  return retryable || code === 'unknown_agent'
}
