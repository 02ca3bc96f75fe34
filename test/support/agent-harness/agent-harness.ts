import { findStrictest, getExpiry } from '../../../machines/agent/approvals.js'
import { type Actor, type AnyEventObject, createActor, fromCallback, fromPromise } from 'xstate'
import { z } from 'zod'
import type { UserGuardsOutput } from '../../../guards/user-state.js'
import type { AgentContext, AgentInput, AgentMachineEvent } from '../../../machines/agent/context.js'
import type { CompactionOutput } from '../../../machines/agent/fit.js'
import type { ModelActorError, ModelOutput } from '../../../machines/agent/model-response.js'
import { isRunnable, type ToolResult } from '../../../machines/agent/batch-calls.js'
import type { StepPlan } from '../../../machines/agent/step-plan.js'
import type { RetrievedSnippet } from '../../../machines/agent/messages.js'
import type { CallScreening, InputScreening, Screening } from '../../../machines/agent/screening.js'
import {
  type AgentEvent,
  type AgentMachine,
  createAgent,
  createSession,
  handoff,
  type JournalEntry,
  type ModelProvider,
  openaiChat,
  type Telemetry,
  type Tool,
  type PolicyDecision,
} from '../../../src/index.js'
import { BudgetError, type SharedBudget } from '../../../src/core/budgets/shared-budget.js'
import { StoreError } from '../../../src/core/sessions/store/store-error.js'
import { type Rehearsal, startRehearsal, type Turn } from '../../../src/rehearsal/index.js'
import type { ReplayHarness, ReplayPath, RestingState } from '../../../src/testing/index.js'
import { agreement } from './agreement.js'
import { Cue } from './cue.js'
import { LaggingClock } from './lagging-clock.js'
import { ToolBench } from './tool-bench.js'
import { turnOfAnswer, turnOfFailure } from './turn-of.js'

type Steps = ReplayPath['steps']

/**
 * The live agent (the `openai` client over HTTP, real tools, real back-off and deadline) with controls that
 * cause the events of a path. After each step its journal must contain exactly the events of the path.
 */
export class AgentHarness implements ReplayHarness {
  /** Events sent directly to the machine, because no external action can cause them. */
  readonly sent: string[] = []
  readonly #steps: Steps
  readonly #clock = new LaggingClock(0)
  /** The time of the last event of the path. */
  #pathTime = 0
  readonly #bench = new ToolBench()
  /** Whether the path, and not the tools, ends the calls. */
  #runsByHand = false
  readonly #cues = new Map<string, Cue<unknown>>()
  readonly #journal: JournalEntry[] = []
  /** The rehearsal's answers, by request number. */
  readonly #answers: Cue<Turn>[] = []
  /** The request that waits for its answer. */
  #waitingTurn: Cue<Turn> | undefined
  /** Holds back the effects of the last event, where the path makes them fail. */
  #durable: Cue<void> | undefined
  /** Holds back the shared budget's answer that refuses the next request. */
  #refusing: Cue<void> | undefined
  #step = 0
  #isStopped = false
  #rehearsal: Rehearsal | undefined
  #actor: Actor<AgentMachine> | undefined

  readonly #hear: (event: AgentEvent) => void

  readonly #telemetry: Telemetry | undefined

  /** `hear` receives every event of the run, `telemetry` measures it. */
  constructor(steps: Steps, hear: (event: AgentEvent) => void = () => undefined, telemetry?: Telemetry) {
    this.#steps = steps
    this.#hear = hear
    this.#telemetry = telemetry
  }

  start = async (runInput: unknown): Promise<void> => {
    const input = runInput as AgentInput
    this.#runsByHand = Object.values(input.tools).some(({ deferred }) => deferred) || this.#leavesBatchIdle()
    this.#clock.lag(input.now)
    this.#pathTime = input.now
    this.#rehearsal = await startRehearsal({
      scenario: {
        turns: [({ body }) => this.#answers[Number(body.user)]?.promise ?? { status: 500 }],
        onExhausted: 'loop',
      },
      strict: true,
    })
    const model = this.#numbered(openaiChat({ model: 'm', baseURL: this.#rehearsal.url, apiKey: 'none' }))
    const { tools } = this.#bench
    const agent = createAgent({
      ...input.config,
      model,
      tools: Object.values(input.tools).some((one) => one.handoff) ? [...tools, leadTo(model, tools)] : tools,
      clock: this.#clock,
      ...((input.tools['govern'] ?? input.tools['pledge']) && {
        policy: { id: 'p', decide: ({ callId }) => this.#findDecision(callId) },
      }),
      // A cost limit needs a price. The paths set request costs, so this price is zero.
      ...(input.config.limits.costLimit > 0 && {
        prices: { m: { inputPerMillion: 0, outputPerMillion: 0 } },
      }),
      ...(this.#steps.some(({ event }) => isRefusal(event)) && { budgets: [this.#budget] }),
      ...(this.#telemetry && { telemetry: this.#telemetry }),
      ...(input.features.structuredOutput && { output: z.object({ done: z.boolean() }) }),
    })
    const session = createSession()
    session.usage = input.usage
    const journal = {
      append: (entry: JournalEntry) => void this.#journal.push(entry),
      flush: this.#flushed,
    }
    const bound = Object.assign(agent.createInput('Go.', { session, journal }), {
      features: input.features,
      tools: input.tools,
    })
    const machine = agent.machine.provide({
      actors: {
        screenInput: fromPromise<InputScreening[]>(() => this.#cue('inputShields')),
        retrieve: fromPromise<RetrievedSnippet[]>(() => this.#cue('retrieval')),
        prepareStep: fromPromise<StepPlan>(() => this.#cue('plan')),
        fitContext: fromPromise<CompactionOutput>(() => this.#cue('fitting')),
        consultGuards: fromPromise<UserGuardsOutput, { on: 'calls' | 'results' }>(({ input: { on } }) =>
          this.#cue(on === 'calls' ? 'callGuards' : 'resultGuards'),
        ),
        screenCalls: fromPromise<CallScreening[]>(() => this.#cue('callShields')),
        screenResults: fromPromise<CallScreening[]>(() => this.#cue('resultShields')),
        screenOutput: fromPromise<Screening>(() => this.#cue('outputShields')),
        // A call that loads its tool ends by itself, but paths also contain other ends.
        ...(this.#runsByHand && { runTools: fromCallback<AgentMachineEvent>(() => undefined) }),
      },
    })
    this.#actor = createActor(machine, { input: bound as never })
    this.#actor.on('*', (event) => {
      this.#hear(event as AgentEvent)
    })
    this.#actor.start()
  }

  /** The strictest decision of the path about a call, and its time limit. */
  #findDecision(callId: string): PolicyDecision {
    const outputs = this.#steps.flatMap(({ event }) =>
      event.type === 'xstate.done.actor.model' ? [event['output'] as ModelOutput] : [],
    )
    const call = outputs.flatMap(({ calls }) => calls).find(({ id }) => id === callId)
    const decision = (call && findStrictest(call)) ?? 'allow'
    return decision === 'ask' ? { decision, ...getExpiry(call ?? {}) } : decision
  }

  perform = async (event: AnyEventObject, step: number): Promise<void> => {
    this.#step = step
    this.#lag(event)
    await this.#cause(event)
    await this.#until(() => this.#journal.length > step)
  }

  settled = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
    const received = this.#journal.map((entry) => (entry.type === 'event' ? entry.event.type : 'xstate.init'))
    const expected = this.#steps.slice(0, this.#step + 1).map(({ event }) => event.type)
    if (received.join() !== expected.join()) throw new Error(`the journal holds ${received.join(', ')}`)
    const differs = agreement(this.#steps[this.#step]?.state, this.#live.getSnapshot())
    if (differs !== null) throw new Error(differs)
  }

  snapshot = (): RestingState => this.#live.getSnapshot()

  stop = async (): Promise<void> => {
    this.#isStopped = true
    this.#actor?.stop()
    await this.#rehearsal?.close()
  }

  /**
   * Advances the world until the condition holds. A replay timeout stops the harness, which ends the wait.
   */
  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.#isStopped) throw new Error('The harness has been stopped.')
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  get #live(): Actor<AgentMachine> {
    if (!this.#actor) throw new Error('The harness has not been started.')
    return this.#actor
  }

  async #cause(event: AnyEventObject): Promise<void> {
    const [, ending, actor = ''] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(event.type) ?? []
    if (actor === 'model' || actor === 'conclusion') return this.#answer(event)
    if (actor === 'backOff' && ending === 'done') return this.#waitOut()
    // A callback has no end event, and a timer does not fail. These two handlers cover unforeseen cases.
    if (actor === 'tools' || actor === 'backOff') return this.#send(event)
    if (ending === 'done') return (await this.#waiting(actor)).resolve(event.output)
    if (ending === 'error') return (await this.#waiting(actor)).reject(event.error)
    switch (event.type) {
      case 'TOOL_RESULT':
        return this.#endCall(event)
      case 'TOOLS_LOADED':
        return this.#send(event)
      case 'GRANT_ENDED':
        this.#bench.forget(event['callId'] as string)
        return this.#send(event)
      case 'CHILD_USAGE':
      case 'CHILD_WAITING':
        return this.#tellOfChild(event)
      // The bench tools belong to no skill, keep no handle and hand no conversation over.
      case 'HANDLE_SAVED':
        return this.#send(event)
      case 'SKILL_CHANGED':
      case 'HANDED_OFF':
        await this.#until(
          () => event['callId'] === 'nobody' || this.#bench.isRunning(event['callId'] as string),
        )
        return this.#send(event)
      case 'STORE_FAILED':
        await this.#arrived(event)
        // Only effects wait for the store. Elsewhere the run's owner reports its failure.
        return this.#durable
          ? this.#durable.reject(new StoreError('disk_full', 'The disk is full.'))
          : this.#send(event)
      case 'BATCH_DONE':
        // A batch without open calls has sent this event itself.
        return this.#runsByHand || hasOpenCalls(this.#live.getSnapshot().context)
          ? this.#send(event)
          : undefined
      case 'DEADLINE':
        await this.#arrived(event)
        return this.#clock.increment((this.#live.getSnapshot().context.deadline ?? 0) - this.#clock.now())
      case 'CANCEL':
        await this.#arrived(event)
        return this.#live.send({ type: 'CANCEL' })
      case 'RESUMED':
        this.#waitingTurn = undefined
        this.#bench.clear()
    }
    const { now: _, ...plain } = this.#postpone(event)
    this.#live.send(plain as AgentMachineEvent)
  }

  /** A grant ends as long after its event as on the path, although the event is late. */
  #postpone(event: AnyEventObject): AnyEventObject {
    const { grant, now } = event as { grant?: { until?: number } | string; now?: number }
    if (typeof grant !== 'object' || grant.until === undefined || now === undefined) return event
    return { ...event, grant: { ...grant, until: grant.until + this.#clock.now() - now } }
  }

  /**
   * Some events come late, because time passed while the event loop was too busy to fire a timer. The next event of a
   * path can have an earlier time. The clock only goes forward.
   */
  #lag({ type, now }: AnyEventObject): void {
    if (typeof now !== 'number') return
    if (type !== 'DEADLINE') this.#clock.lag(Math.max(0, now - this.#pathTime))
    this.#pathTime = now
  }

  async #answer(event: AnyEventObject): Promise<void> {
    const { output, error } = event as { output?: ModelOutput; error?: ModelActorError }
    if (this.#durable) return this.#durable.resolve()
    if (isRefusal(event)) {
      await this.#until(() => this.#refusing !== undefined)
      return this.#refusing?.resolve()
    }
    const turn = await this.#request()
    turn.resolve(output ? turnOfAnswer(output) : turnOfFailure(error as ModelActorError))
  }

  /** Whether an event reaches a batch without open calls before the batch reports its end, as a real batch does at once. */
  #leavesBatchIdle(): boolean {
    return this.#steps.some(({ state }, i) => {
      const isExecuting = JSON.stringify(state.value) === '{"WAITING_FOR_TOOL":"executing"}'
      // The paths of generated tests have no contexts.
      const { context } = state as { context?: AgentContext }
      const next = this.#steps[i + 1]?.event.type
      return isExecuting && next !== 'BATCH_DONE' && context !== undefined && !hasOpenCalls(context)
    })
  }

  #waitOut(): void {
    const { backOffUntil } = this.#live.getSnapshot().context
    this.#clock.increment(Math.max(0, backOffUntil - this.#clock.now()))
  }

  async #endCall(event: AnyEventObject): Promise<void> {
    const { callId, result } = event as unknown as { callId: string; result: ToolResult }
    // The bench tools are not sub-agents.
    if (result.child || event['usage'] || this.#runsByHand) return this.#send(event)
    await this.#until(() => this.#bench.isRunning(callId))
    this.#bench.end(callId, result)
  }

  /** A sub-agent's event. The tool in its place runs again when the run continues. */
  #tellOfChild(event: AnyEventObject): void {
    if (event.type === 'CHILD_WAITING') this.#bench.forget(event['callId'] as string)
    this.#send(event)
  }

  /** Some stops arrive after a part of the answer. */
  async #arrived({ partial }: { type: string; partial?: { text: string } }): Promise<void> {
    if (!partial) return
    const turn = await this.#request()
    const arrived = new Promise((resolve) => this.#live.on('stream_chunk', resolve))
    turn.resolve({ text: partial.text, hang: 1 })
    await arrived
  }

  #send(event: AnyEventObject): void {
    this.sent.push(event.type)
    // The clock of the agent has the time of the path.
    const { now: _, ...plain } = event
    this.#live.send(plain as AgentMachineEvent)
  }

  #cue(actor: string): Promise<never> {
    const cue = new Cue<unknown>()
    this.#cues.set(actor, cue)
    return cue.promise as Promise<never>
  }

  async #waiting(actor: string): Promise<Cue<unknown>> {
    await this.#until(() => this.#cues.has(actor))
    const cue = this.#cues.get(actor) as Cue<unknown>
    this.#cues.delete(actor)
    return cue
  }

  async #request(): Promise<Cue<Turn>> {
    await this.#until(() => this.#waitingTurn !== undefined)
    const turn = this.#waitingTurn as Cue<Turn>
    this.#waitingTurn = undefined
    return turn
  }

  /** Each request carries its number, so that its answer finds it. */
  #numbered(model: ModelProvider): ModelProvider {
    return {
      provider: model.provider,
      model: model.model,
      request: (request, options) => {
        this.#waitingTurn = new Cue<Turn>()
        const number = this.#answers.push(this.#waitingTurn) - 1
        return model.request({ ...request, extraBody: { user: `${number}` } }, options)
      },
    }
  }

  /** Effects wait until their cause is durable. Here they wait longer if they must never happen. */
  #flushed = (): Promise<void> | undefined => {
    this.#durable = undefined
    const next = this.#findNext()
    const error = next?.error as Partial<ModelActorError> | undefined
    if (next?.type !== 'STORE_FAILED' && error?.code !== 'token_budget') return undefined
    this.#durable = new Cue<void>()
    return this.#durable.promise
  }

  /** The event that ends the started work. */
  #findNext(): AnyEventObject | undefined {
    const coming = this.#steps.slice(this.#journal.length)
    return coming.find(({ event }) => /^(TOOL_RESULT|STORE_FAILED|xstate\..*)$/.test(event.type))?.event
  }

  /** It refuses the requests that the path marks as refused. */
  readonly #budget: SharedBudget = {
    id: 'tenant',
    reserveOutputTokens: 1,
    needsPrice: false,
    reserve: async () => {
      const next = this.#findNext()
      if (next === undefined || !isRefusal(next)) return { settle: async () => undefined }
      this.#refusing = new Cue<void>()
      await this.#refusing.promise
      this.#refusing = undefined
      const { budget, message, wakeAt } = next['error'] as ModelActorError
      const waitMs = wakeAt === undefined ? null : wakeAt - this.#clock.now()
      throw new BudgetError('budget_exceeded', message, budget ?? '', { waitMs })
    },
    status: () => Promise.reject(new Error('No path looks at it.')),
    replaceLimits: () => Promise.resolve(),
  }
}

/**
 * Makes the handoff target of the paths known. No path calls it. The bench tool ends as the path dictates,
 * and the event comes from the path.
 */
function leadTo(model: ModelProvider, tools: readonly Tool[]): Tool {
  const billing = createAgent({ model, tools: [...tools] })
  return { ...handoff(billing, { name: 'billing' }), name: 'transfer_elsewhere' } as unknown as Tool
}

/** Whether a shared budget has refused the request. */
function isRefusal({ error }: AnyEventObject): boolean {
  return (error as Partial<ModelActorError> | undefined)?.code === 'shared_budget'
}

export function agentHarness(steps: Steps): AgentHarness {
  return new AgentHarness(steps)
}

function hasOpenCalls({ calls }: AgentContext): boolean {
  return calls.some((call) => isRunnable(call) || (call.started && call.result === undefined))
}
