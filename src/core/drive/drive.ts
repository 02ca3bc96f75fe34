import { toRequesters } from '../sessions/principal.js'
import { runControls } from '../live/run-controls.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { type RunResult, isWorkState, isFinalState } from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { type AgentInternals, getStore, internalsByAgent } from '../agent/agent-internals.js'
import { checkModels } from '../agent/read-parts.js'
import { createStoredRuns, type StoredRuns } from '../agent/stored-runs.js'
import type { AgentParts } from '../live/agent-parts.js'
import { whenAborted } from '../base/abort.js'
import { type Clock, RunClock } from '../base/clock.js'
import { UsageError, optionError } from '../base/errors.js'
import { isObject } from '../base/values.js'
import type { WithContext } from '../tools/tool.js'
import type { Run } from '../run/run.js'
import { isQueueStopped, type QueuedMessage } from '../sessions/inbox/queued-message.js'
import { readConversation } from '../sessions/input-history.js'
import type { FoldedSession } from '../sessions/fold-session.js'
import type { AcquiredSession } from '../sessions/open-session.js'
import { strandedError } from '../sessions/session-errors.js'
import {
  nullIfBusy,
  StoreError,
  type StoreErrorCode,
  unknownSessionError,
} from '../sessions/store/store-error.js'
import { applyAnswers, type SessionAnswer } from './drive-answers.js'
import { type Agents, type AnyAgent, listLabels } from './define-agents.js'
import { checkDriveOptions, type RunSessionOptions } from './drive-options.js'
import { type RestParts, type SessionResult, createDriveRest } from './drive-rest.js'
import { isAsleep, isDue, wakeRun } from './wake-sleepers.js'

const heartbeatMs = 10_000

/**
 * Runs a session to its next rest: starts the session's run, continues the run, or reports its state. A queue or an
 * engine can call `runSession` any number of times for the same session, because finished work is not repeated.
 *
 * - The first call for a session starts it with `input`. Later calls ignore `input`. `turn` selects the run.
 * - A sleeping run continues if it is due according to this process's clock. Otherwise the result has `wakeAt`.
 * - When the run has ended, each message queued by `agent.send` starts a run. The result belongs to the last run. After a
 *   cancelled or poisoned run the messages wait until `turn` requests another run.
 * - When `signal` aborts, no new work starts. `runSession` waits for a tool call that must not repeat. Other work is
 *   dropped and repeated by the next call. Then the session is released, and the result has `stopped`.
 * - The `retryable` property of an error states whether to try again: true for `session_busy`, false for
 *   `corrupt_log`.
 * - A session that was resumed five times without a new record ends in ERROR, `poisoned`.
 * @example
 * const payer = createAgent({ model, store: memoryStore() })
 * const rest = await runSession(payer, { session: 'order-17', input: 'Pay the invoice.' })
 * if (rest.stopped) console.log('again, here or elsewhere')
 * @throws {StoreError} `session_busy`, `corrupt_log`, `newer_log`, `store_unavailable`, …
 * @throws {UsageError} `not_begun` without a run and an input, `out_of_turn`, `stranded`, `stopped` for a signal that
 * was already aborted, `no_store`, `invalid_option`
 */
export function runSession<Context = unknown>(
  agent: AnyAgent<Context> | Agents<Context>,
  options: WithContext<RunSessionOptions, NoInfer<Context>>,
): Promise<SessionResult>
export async function runSession(
  agent: AnyAgent | Agents,
  options: RunSessionOptions,
): Promise<SessionResult> {
  const { session, signal } = checkDriveOptions(options)
  if (signal?.aborted)
    throw new UsageError(
      'stopped',
      'The signal was aborted before runSession started. Call it again.',
      'signal',
    )
  const choice = chooseAgent(agent, options.agent)
  const acquire = (): Promise<AcquiredSession> =>
    choice.stored.acquire(session, { holder: 'runSession', definition: () => choice.stored.getDefinition() })
  let { rest, mayHaveNext } = await driveToRest(choice, await acquire(), options)
  const { turn: _turn, input: _input, answers: _answers, at: _at, ...others } = options
  while (mayHaveNext()) {
    // The next call handles queued messages.
    if (signal?.aborted) return { ...rest, stopped: true }
    // Another process may be continuing the session.
    const acquired = await acquire().catch(nullIfBusy)
    if (acquired === null) return rest
    ;({ rest, mayHaveNext } = await driveToRest(choice, acquired, others))
  }
  return rest
}

/** Selects the agent that runs the session: the requested one, or the one named in the log. */
function chooseAgent(agentOrAgents: AnyAgent | Agents, name: string | undefined) {
  const isSeveral = isObject(agentOrAgents) && 'findAgentFor' in agentOrAgents
  const agents = isSeveral ? (agentOrAgents as unknown as Agents) : undefined
  const first = agents ? agents.get(name ?? agents.names[0] ?? '').agent : (agentOrAgents as AnyAgent)
  const known = internalsByAgent.get(first)
  if (!known)
    throw optionError(
      'runSession takes an agent created by createAgent, or the return value of defineAgents(…).',
      'agent',
    )
  let internals: AgentInternals = known
  const use = (agent: AnyAgent): void => {
    internals = internalsByAgent.get(agent) ?? internals
  }
  return {
    get stored(): StoredRuns {
      return createStoredRuns(internals, getStore(internals))
    },

    get parts(): AgentParts {
      return internals.parts
    },

    chooseForResume({ definition }: FoldedSession, session: string): void {
      if (!agents) return
      const acceptor = agents.findAgentFor(definition)
      const unnamed = definition?.name === undefined && name !== undefined
      if (acceptor) use(acceptor.agent)
      else if (!unnamed) throw strandedError(session, definition, listLabels(agents))
    },

    /** Selects the agent that starts a run. Prefers the requested agent, then the previous agent of the session. */
    chooseForBegin({ definition }: FoldedSession, session: string): void {
      if (!agents || name !== undefined || agents.names.length === 1) return
      const before = definition?.name
      if (before === undefined || !agents.names.includes(before))
        throw optionError(
          `Name the agent that starts session '${session}': agent: '${agents.names.join("', '")}'.`,
          'agent',
        )
      use(agents.get(before).agent)
    },
  }
}

async function driveToRest(
  choice: ReturnType<typeof chooseAgent>,
  acquired: AcquiredSession,
  options: RunSessionOptions,
): Promise<{ rest: SessionResult; mayHaveNext: () => boolean }> {
  const { log, folded } = acquired
  const { session, context: appContext, budgets, answers = [], at, signal, heartbeat } = options
  const { maxRetryWaitMs = Infinity } = options
  const time = new RunClock(choice.parts.clock, log.resumesAt)
  let turn = folded.runs

  const toRest = (context: AgentContext, more: Partial<RestParts> = {}): SessionResult =>
    createDriveRest(context, { turn, head: log.head, now: time.now(), ...more })

  const closeAtRest = async (context: AgentContext, more?: Partial<RestParts>): Promise<SessionResult> => {
    await log.close()
    return toRest(context, more)
  }

  /** The run has already read its inbox at this point. */
  const areAnswersForThisRest = (): boolean => at === undefined || at === log.head

  const findLongWait = ({ attempt, backOffUntil, state }: AgentContext) => {
    const waitMs = backOffUntil - time.now()
    const isLong = state === 'RUNNING' && attempt > 1 && waitMs > maxRetryWaitMs
    return isLong ? { waitUntil: backOffUntil, waitMs } : undefined
  }

  /** The input of the run that this call starts, or the first queued message. */
  const findStart = async (): Promise<RunBeginning | null> => {
    const { runs, run, state } = folded
    const { turn: asked = Math.max(1, runs), input } = options
    if (asked > runs + 1 || (asked > runs && run?.status === 'active')) {
      const why = asked > runs + 1 ? `it has ${runs} so far` : `run ${runs} has not ended`
      throw new UsageError('out_of_turn', `Session '${session}' cannot start run ${asked}: ${why}.`, 'turn')
    }
    if (asked > runs && input !== undefined) return { input }
    const mayGoOn = asked > runs || (run?.status === 'done' && !isQueueStopped(run.context))
    const queued = mayGoOn ? await log.inbox.findNext((run?.context ?? state).messages) : null
    if (queued) return { queued }
    if (asked <= runs) return null
    const message = `Session '${session}' has no run ${asked} yet and no queued message. Call runSession with an input.`
    throw new UsageError('not_begun', message, session)
  }

  const begin = async ({ input, queued }: RunBeginning): Promise<Run> => {
    choice.chooseForBegin(folded, session)
    const { parts, stored } = choice
    refuseInteractive(parts.config)
    checkModels(parts)
    const conversation = queued
      ? { history: [], newMessages: queued.messages }
      : readConversation(typeof input === 'function' ? await input() : input, parts.clock.now())
    turn += 1
    const start = await stored.prepareRun(acquired, {
      conversation,
      context: appContext,
      tags: options.tags,
      ...toRequesters(options, 'runSession'),
      budgets,
      queued,
    })
    return start()
  }

  const findRest = async (): Promise<SessionResult | null> => {
    const { run } = folded
    if (run === null) throw unknownSessionError(session)
    if (run.status !== 'active') return closeAtRest(run.context)
    choice.chooseForResume(folded, session)
    refuseInteractive(run.context.config)
    // Without an answer, resuming would wake the run too early.
    const sleeps = answers.length === 0 && isAsleep(run.context, time.now())
    if (sleeps && !log.inbox.mayHaveMessages) return closeAtRest(run.context)
    const wait = findLongWait(run.context)
    if (wait === undefined) return null
    const undelivered = answers.length > 0 && areAnswersForThisRest() && { undelivered: true as const }
    return closeAtRest(run.context, { stopped: true, ...wait, ...undelivered })
  }

  const toStoppedRest = (context: AgentContext, isUndelivered: boolean): SessionResult => {
    const isAtWork = isWorkState(context.state)
    const undelivered =
      isUndelivered && areAnswersForThisRest() && (isAtWork || toRunResult(context).resumable)
    return toRest(context, {
      ...((isAtWork || undelivered) && { stopped: true }),
      ...(undelivered && { undelivered }),
      ...findLongWait(context),
    })
  }

  const follow = async (run: Run, answers: readonly SessionAnswer[] = []): Promise<SessionResult> => {
    const getContext = (): AgentContext => (run.snapshot() as { context: AgentContext }).context
    const stops: (() => void)[] = []
    let isLeaving = false
    const left = new Promise<'left'>((resolve, reject) => {
      const leaving = (then: () => void): void => {
        isLeaving = true
        runControls.release(run).then(then, reject)
      }
      const leave = (): void => leaving(() => resolve('left'))
      if (signal) stops.push(whenAborted(signal, leave))
      if (maxRetryWaitMs < Infinity) stops.push(watchRetries(run, maxRetryWaitMs, leave))
      const fail = (error: unknown): void => leaving(() => reject(error))
      if (heartbeat) stops.push(startHeartbeat(choice.parts.clock, heartbeat, fail))
    })
    left.catch(() => undefined)
    try {
      let outcome: RunResult | 'left' = await Promise.race([run.result, left])
      let isUndelivered = answers.length > 0
      if (outcome !== 'left' && outcome.resumable && isUndelivered && areAnswersForThisRest()) {
        if (!isLeaving) {
          applyAnswers(run, answers, at)
          isUndelivered = false
        }
        outcome = isLeaving ? await left : await Promise.race([run.result, left])
      }
      // A run that was woken may fall asleep again.
      const isTime = (): boolean => !isLeaving && isDue(getContext(), time.now())
      while (outcome !== 'left' && isTime()) {
        wakeRun(run)
        outcome = await Promise.race([run.result, left])
      }
      if (outcome === 'left') return toStoppedRest(getContext(), isUndelivered)
      if (log.hasFailed) {
        // The end of the run is not in the log. The next call finds the session in its previous state.
        const { code = 'store_unavailable', message = 'The session could not be stored.' } =
          outcome.error ?? {}
        throw new StoreError(code as StoreErrorCode, message, session)
      }
      return toRest(getContext())
    } finally {
      for (const stop of stops) stop()
    }
  }

  let begun: Run | null = null
  try {
    const start = await findStart()
    if (start) begun = await begin(start)
    const rest = begun ? null : await findRest()
    // The sender of a message that has arrived in the meantime relies on this process, unless the run waits for
    // the next call. That call repeats the answers that are marked as undelivered here.
    if (rest) return { rest, mayHaveNext: () => rest.stopped === undefined && log.inbox.hasNews }
  } catch (error) {
    await log.close()
    throw error
  }
  // From now on, the run itself releases the session.
  const rest = begun
    ? await follow(begun)
    : await follow(
        await choice.stored.resumeAcquired(acquired, session, { context: appContext, budgets }),
        answers,
      )
  const { stopped, state, error = null } = rest
  const isOver = stopped === undefined && isFinalState(state) && !isQueueStopped({ state, error })
  return { rest, mayHaveNext: () => isOver && log.inbox.mayHaveMessages }
}

type RunBeginning = Pick<RunSessionOptions, 'input'> & { queued?: QueuedMessage }

function watchRetries(run: Run, maxRetryWaitMs: number, leave: () => void): () => void {
  const subscription = run.events$.subscribe({
    next: (event) => {
      if (event.type === 'retry' && event.delayMs > maxRetryWaitMs) queueMicrotask(leave)
    },
    error: () => undefined,
  })
  return () => subscription.unsubscribe()
}

function startHeartbeat(
  clock: Clock,
  heartbeat: () => unknown,
  failed: (error: unknown) => void,
): () => void {
  let timer: unknown
  const beat = async (): Promise<void> => {
    timer = clock.setTimeout(() => void beat(), heartbeatMs)
    try {
      await heartbeat()
    } catch (error) {
      clock.clearTimeout(timer)
      failed(error)
    }
  }
  void beat()
  return () => clock.clearTimeout(timer)
}

/** `runSession` starts a run for each message, but an interactive run would wait for the next message as a reply. */
function refuseInteractive({ interactive }: AgentConfig): void {
  if (!interactive) return
  const message =
    'runSession does not support interactive agents. Turn interactive off, and call it once for each message.'
  throw optionError(message, 'interactive')
}
