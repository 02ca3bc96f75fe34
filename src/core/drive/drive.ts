import { toRequesters } from '../sessions/principal.js'
import { releaseRun } from '../live/release-run.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { type RunResult, isWorkState, isFinalState } from '../../../machines/agent/run-result.js'
import { toRunResult } from '../../../machines/agent/to-result.js'
import { type AgentInternals, getStore, internalsByAgent } from '../agent/agent-internals.js'
import { checkModels } from '../agent/read-parts.js'
import { createStoredRuns, type StoredRuns } from '../agent/stored-runs.js'
import type { AgentParts } from '../live/agent-parts.js'
import { whenAborted } from '../base/abort.js'
import { RunClock } from '../base/clock.js'
import { UsageError, optionError } from '../base/errors.js'
import { createId } from '../base/platform.js'
import { isObject } from '../base/values.js'
import type { WithContext } from '../tools/tool.js'
import type { Run } from '../run/run.js'
import { isQueueStopped, type QueuedMessage } from '../sessions/inbox/queued-message.js'
import { readConversation } from '../sessions/input-history.js'
import type { AcquiredSession } from '../sessions/open-session.js'
import { strandedError } from '../sessions/session-errors.js'
import {
  nullIfBusy,
  StoreError,
  type StoreErrorCode,
  unknownSessionError,
} from '../sessions/store/store-error.js'
import { Session } from '../sessions/session.js'
import { applyAnswers } from './drive-answers.js'
import { type Agents, type AnyAgent, listLabels } from './define-agents.js'
import { checkDriveOptions, type RunSessionOptions } from './drive-options.js'
import { type RestParts, type SessionResult, createDriveRest } from './drive-rest.js'
import { isAsleep, isDue, wakeRun } from './wake-sleepers.js'

/** The interval between calls to `heartbeat`, in milliseconds. */
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
  const choice = new AgentChoice(agent, options.agent)
  const acquire = (): Promise<AcquiredSession> =>
    choice.stored.acquire(session, {
      holder: 'runSession',
      definition: () => choice.stored.getDefinition(),
    })
  let drive = new SessionDrive(choice, await acquire(), options)
  let rest = await drive.driveToRest()
  const { turn: _turn, input: _input, answers: _answers, at: _at, ...others } = options
  /* oxlint-disable no-await-in-loop -- turns run in order */
  while (drive.mayHaveNext(rest)) {
    // The next call handles queued messages.
    if (signal?.aborted) return { ...rest, stopped: true }
    // Another process may be continuing the session.
    const acquired = await acquire().catch(nullIfBusy)
    if (acquired === null) return rest
    drive = new SessionDrive(choice, acquired, others)
    rest = await drive.driveToRest()
  }
  /* oxlint-enable no-await-in-loop */
  return rest
}

/** Selects the agent that runs the session: the requested one, or the one named in the log. */
class AgentChoice {
  readonly #agents: Agents | undefined
  #internals: AgentInternals
  readonly #isNamed: boolean

  constructor(agentOrAgents: AnyAgent | Agents, name: string | undefined) {
    const isSeveral = isObject(agentOrAgents) && 'findAgentFor' in agentOrAgents
    this.#agents = isSeveral ? (agentOrAgents as unknown as Agents) : undefined
    this.#isNamed = name !== undefined
    const one = this.#agents
      ? this.#agents.get(name ?? this.#agents.names[0] ?? '').agent
      : (agentOrAgents as AnyAgent)
    const internals = internalsByAgent.get(one)
    if (internals) this.#internals = internals
    else
      throw optionError(
        'runSession takes an agent created by createAgent, or the return value of defineAgents(…).',
        'agent',
      )
  }

  get stored(): StoredRuns {
    return createStoredRuns(this.#internals, getStore(this.#internals))
  }

  get parts(): AgentParts {
    return this.#internals.parts
  }

  chooseForResume({ definition }: AcquiredSession['folded'], session: string): void {
    if (!this.#agents) return
    const acceptor = this.#agents.findAgentFor(definition)
    const unnamed = definition?.name === undefined && this.#isNamed
    if (acceptor) this.#useAgent(acceptor.agent)
    else if (!unnamed) throw strandedError(session, definition, listLabels(this.#agents))
  }

  /** Selects the agent that starts a run. Prefers the requested agent, then the previous agent of the session. */
  chooseForBegin({ definition }: AcquiredSession['folded'], session: string): void {
    if (!this.#agents || this.#isNamed || this.#agents.names.length === 1) return
    const before = definition?.name
    if (before === undefined || !this.#agents.names.includes(before)) {
      const names = this.#agents.names.join("', '")
      throw optionError(`Name the agent that starts session '${session}': agent: '${names}'.`, 'agent')
    }
    this.#useAgent(this.#agents.get(before).agent)
  }

  #useAgent(agent: AnyAgent): void {
    this.#internals = internalsByAgent.get(agent) ?? this.#internals
  }
}

type RunBeginning = Pick<RunSessionOptions, 'input'> & { queued?: QueuedMessage }
type LongWait = { waitUntil: number; waitMs: number }

class SessionDrive {
  readonly #choice: AgentChoice
  readonly #acquired: AcquiredSession
  readonly #options: RunSessionOptions
  readonly #time: RunClock
  #turn: number
  #hasWorked = false

  constructor(choice: AgentChoice, acquired: AcquiredSession, options: RunSessionOptions) {
    this.#choice = choice
    this.#acquired = acquired
    this.#options = options
    this.#turn = acquired.folded.runs
    this.#time = new RunClock(choice.parts.clock, acquired.log.resumesAt)
  }

  async driveToRest(): Promise<SessionResult> {
    const { log } = this.#acquired
    let begun: Run | null = null
    try {
      const start = await this.#findStart()
      if (start) begun = await this.#begin(start)
      const rest = begun ? null : await this.#findRest()
      if (rest) return rest
    } catch (error) {
      await log.close()
      throw error
    }
    // From now on, the run itself releases the session.
    if (begun) return this.#follow(begun)
    const { session, context, budgets } = this.#options
    const run = await this.#choice.stored.resumeAcquired(this.#acquired, session, { context, budgets })
    return this.#follow(run, this.#options.answers)
  }

  async #findRest(): Promise<SessionResult | null> {
    const { folded } = this.#acquired
    const { answers = [] } = this.#options
    const { run } = folded
    if (run === null) throw unknownSessionError(this.#options.session)
    if (run.status !== 'active') return this.#closeAtRest(run.context)
    this.#choice.chooseForResume(folded, this.#options.session)
    refuseInteractive(run.context.config)
    // Without an answer, resuming would wake the run too early.
    const sleeps = answers.length === 0 && isAsleep(run.context, this.#time.now())
    if (sleeps && !this.#acquired.log.inbox.mayHaveQueued) return this.#closeAtRest(run.context)
    const wait = this.#findLongWait(run.context)
    if (wait === undefined) return null
    const undelivered = answers.length > 0 && this.#areAnswersForThisRest() && { undelivered: true as const }
    return this.#closeAtRest(run.context, { stopped: true, ...wait, ...undelivered })
  }

  mayHaveNext({ state, stopped, error }: SessionResult): boolean {
    return (
      stopped === undefined &&
      isFinalState(state) &&
      !isQueueStopped({ state, error: error ?? null }) &&
      this.#hasWorked &&
      this.#acquired.log.inbox.mayHaveQueued
    )
  }

  /** The input of the run that this call starts, or the first queued message. */
  async #findStart(): Promise<RunBeginning | null> {
    const { folded, log } = this.#acquired
    const { runs, run } = folded
    const { session, turn = Math.max(1, runs), input } = this.#options
    if (turn > runs + 1 || (turn > runs && run?.status === 'active')) {
      const why = turn > runs + 1 ? `it has ${runs} so far` : `run ${runs} has not ended`
      throw new UsageError('out_of_turn', `Session '${session}' cannot start run ${turn}: ${why}.`, 'turn')
    }
    if (turn > runs && input !== undefined) return { input }
    const mayGoOn = turn > runs || (run?.status === 'done' && !isQueueStopped(run.context))
    const queued = mayGoOn ? await log.inbox.findNext((run?.context ?? folded.state).messages) : null
    if (queued) return { queued }
    if (turn <= runs) return null
    const message = `Session '${session}' has no run ${turn} yet and no queued message. Call runSession with an input.`
    throw new UsageError('not_begun', message, session)
  }

  async #begin(start: RunBeginning): Promise<Run> {
    const { session: id, context, tags, budgets, by } = this.#options
    const { folded } = this.#acquired
    this.#choice.chooseForBegin(folded, id)
    const { parts, stored } = this.#choice
    refuseInteractive(parts.config)
    checkModels(parts)
    const [session, runId] = [new Session(id, folded.name), createId()]
    const { input, queued } = start
    const conversation = queued
      ? { history: [], newMessages: queued.messages }
      : readConversation(typeof input === 'function' ? await input() : input, parts.clock.now())
    this.#turn += 1
    const origin = await stored.beginAcquired(this.#acquired, {
      runId,
      session,
      conversation,
      config: parts.config,
      context,
      tags,
      ...toRequesters({ by }, 'runSession'),
      budgets,
      queued,
    })
    return stored.run({ runId, session, origin })
  }

  /** Follows a run to its next rest, or until it is stopped. */
  async #follow(run: Run, answers: RunSessionOptions['answers'] = []): Promise<SessionResult> {
    const { signal, heartbeat } = this.#options
    this.#hasWorked = true
    const stops: (() => void)[] = []
    let isLeaving = false
    const left = new Promise<'left'>((resolve, reject) => {
      const leaving = (then: () => void): void => {
        isLeaving = true
        releaseRun(run).then(then, reject)
      }
      const leave = (): void => leaving(() => resolve('left'))
      if (signal) stops.push(whenAborted(signal, leave))
      this.#watchLongWait(run, leave, stops)
      if (heartbeat) stops.push(this.#startHeartbeat(heartbeat, (error) => leaving(() => reject(error))))
    })
    left.catch(() => undefined)
    try {
      let outcome: RunResult | 'left' = await Promise.race([run.result, left])
      let isUndelivered = answers.length > 0
      if (outcome !== 'left' && outcome.resumable && isUndelivered && this.#areAnswersForThisRest()) {
        if (!isLeaving) {
          applyAnswers(run, answers, this.#options.at)
          isUndelivered = false
        }
        outcome = isLeaving ? await left : await Promise.race([run.result, left])
      }
      // A run that was woken may fall asleep again.
      const isTime = (): boolean => !isLeaving && isDue(this.#getContext(run), this.#time.now())
      while (outcome !== 'left' && isTime()) {
        wakeRun(run)
        // oxlint-disable-next-line no-await-in-loop -- one sleep after the other
        outcome = await Promise.race([run.result, left])
      }
      if (outcome === 'left') return this.#createStoppedRest(run, isUndelivered)
      if (this.#acquired.log.hasFailed) throw notWrittenError(outcome, this.#options.session)
      return this.#createRest(this.#getContext(run))
    } finally {
      for (const stop of stops) stop()
    }
  }

  /** The run has already read its inbox at this point. */
  #areAnswersForThisRest(): boolean {
    const { at } = this.#options
    return at === undefined || at === this.#acquired.log.head
  }

  #createRest(context: AgentContext, more: Partial<RestParts> = {}): SessionResult {
    const { head } = this.#acquired.log
    return createDriveRest(context, { turn: this.#turn, head, now: this.#time.now(), ...more })
  }

  #getContext(run: Run): AgentContext {
    return (run.snapshot() as { context: AgentContext }).context
  }

  #createStoppedRest(run: Run, isUndelivered: boolean): SessionResult {
    const context = this.#getContext(run)
    const isAtWork = isWorkState(context.state)
    const undelivered =
      isUndelivered && this.#areAnswersForThisRest() && (isAtWork || toRunResult(context).resumable)
    return this.#createRest(context, {
      ...((isAtWork || undelivered) && { stopped: true }),
      ...(undelivered && { undelivered }),
      ...this.#findLongWait(context),
    })
  }

  async #closeAtRest(context: AgentContext, more?: Partial<RestParts>): Promise<SessionResult> {
    await this.#acquired.log.close()
    return this.#createRest(context, more)
  }

  #findLongWait({ attempt, backOffUntil, state }: AgentContext): LongWait | undefined {
    const { maxRetryWaitMs = Infinity } = this.#options
    const waitMs = backOffUntil - this.#time.now()
    const isLong = state === 'RUNNING' && attempt > 1 && waitMs > maxRetryWaitMs
    return isLong ? { waitUntil: backOffUntil, waitMs } : undefined
  }

  #watchLongWait(run: Run, leave: () => void, stops: (() => void)[]): void {
    const { maxRetryWaitMs } = this.#options
    if (maxRetryWaitMs === undefined) return
    const subscription = run.events$.subscribe({
      next: (event) => {
        if (event.type === 'retry' && event.delayMs > maxRetryWaitMs) queueMicrotask(leave)
      },
      error: () => undefined,
    })
    stops.push(() => subscription.unsubscribe())
  }

  #startHeartbeat(heartbeat: () => unknown, failed: (error: unknown) => void): () => void {
    const { clock } = this.#choice.parts
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
}

/** `runSession` starts a run for each message, but an interactive run would wait for the next message as a reply. */
function refuseInteractive({ interactive }: AgentConfig): void {
  if (!interactive) return
  const message =
    'runSession does not support interactive agents. Turn interactive off, and call it once for each message.'
  throw optionError(message, 'interactive')
}

/** The error if the end of the run is not in the log. The next call finds the session in its previous state. */
function notWrittenError({ error }: RunResult, session: string): StoreError {
  const { code = 'store_unavailable', message = 'The session could not be stored.' } = error ?? {}
  return new StoreError(code as StoreErrorCode, message, session)
}
