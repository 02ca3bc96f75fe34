import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentConfig, AgentConfigInput } from '../../machines/agent/config.js'
import { type AgentInput, noFeatures } from '../../machines/agent/context.js'
import type { JsonObject } from '../../machines/agent/json.js'
import { resolveRequestOptions } from '../config/request-options.js'
import { overrideLimits, resolveConfig } from '../config/schema.js'
import { ConfigError, UsageError } from '../errors.js'
import type { ModelProvider, Sampling, ToolChoice } from '../providers/provider.js'
import { type ToolEntry, toolSet } from '../tools/tool-set.js'
import { createPriceBook, type PriceOverrides } from '../usage/prices.js'
import type { UserGuard } from '../user-guards/guard.js'
import { guardSet } from '../user-guards/guard-set.js'
import { backOff } from './actors/back-off.js'
import { consultGuards } from './actors/consult-guards.js'
import { deadline } from './actors/deadline.js'
import { requestModel } from './actors/request-model.js'
import { runTools } from './actors/run-tools.js'
import { checkedRunOptions } from './checked-run-options.js'
import { type Clock, systemClock } from './clock.js'
import { checkedInspector, type Inspector } from './guarded-inspector.js'
import { toMessages, type UserInput } from './input.js'
import type { Journal } from './journal.js'
import { type AgentMachine, journaled } from './journaled.js'
import type { Binding } from './live.js'
import { newId } from './new-id.js'
import type { Parts } from './parts.js'
import { partialUsage } from './partial-usage.js'
import { refuseUnknownPrice } from './refuse-unknown-price.js'
import { Run } from './run.js'
import { createSession, Session } from './session.js'

export interface AgentOptions extends AgentConfigInput {
  model: ModelProvider
  /** The system prompt. */
  instructions?: string
  tools?: readonly ToolEntry[]
  /** Guards of your own, beside those that are built in: what `defineGuard` returns. */
  guards?: readonly UserGuard[]
  sampling?: Sampling
  toolChoice?: ToolChoice
  /** Merged into every request body last; `null` removes a key. */
  extraBody?: JsonObject
  /** Prices of models that the built-in table does not know, or knows wrongly. */
  prices?: PriceOverrides
  /** Time for tests. Default: the system's. */
  clock?: Clock
  /** Told everything that XState tells inspectors, of every run. See `statewright/inspect` for Stately's. */
  inspect?: Inspector
}

export interface RunOptions {
  /** A session, or the id of one that this agent keeps in memory. Default: a new one. */
  session?: Session | string
  /** Cancels the run when it aborts. */
  signal?: AbortSignal
  /** Override the agent's limits, key by key. */
  limits?: AgentConfigInput['limits']
  /** The app's own object, handed to `execute`; never to the model or the journal. */
  context?: unknown
  /** Where the run's events are written ahead. */
  journal?: Journal
  /** In place of the agent's. */
  inspect?: Inspector
}

export interface Agent {
  /** Starts a run. Throws a ConfigError or UsageError for options that cannot be run. */
  run(input: UserInput, options?: RunOptions): Run
  /**
   * The XState machine with this agent's actors provided: for `createActor`, `useMachine`, or `invoke` in a machine of
   * your own. Its input is a text, messages, or what `input()` returns.
   */
  readonly machine: AgentMachine
  /** Input for one actor of `machine`, with a run's options. The session is read; only `run()` writes back to it. */
  input(input: UserInput, options?: Omit<RunOptions, 'signal' | 'inspect'>): AgentInput
  readonly config: AgentConfig
}

/** What stands beside the sections of the configuration, so that a mistyped one is recognised. */
const optionNames = [
  'model',
  'instructions',
  'tools',
  'guards',
  'sampling',
  'toolChoice',
  'extraBody',
  'prices',
  'clock',
  'inspect',
]

/** An agent: a model, its tools, and the limits of the loop between them. */
export function createAgent(options: AgentOptions): Agent {
  const {
    model,
    instructions,
    tools,
    guards,
    sampling,
    toolChoice,
    extraBody,
    prices,
    clock,
    inspect,
    ...rest
  } = options
  if (typeof model?.request !== 'function') {
    throw new ConfigError(
      'invalid_config',
      "model must be a ModelProvider, such as openaiChat({ model: '…' }).",
      'model',
    )
  }
  checkedInspector(inspect)
  const set = toolSet(tools ?? [])
  const asked = resolveRequestOptions({ instructions, sampling, toolChoice, extraBody })
  const parts: Parts = {
    model,
    instructions: asked.instructions ?? null,
    tools: set,
    specs: set.specs,
    guards: guardSet(guards ?? []),
    sampling: asked.sampling ?? {},
    toolChoice: asked.toolChoice,
    extraBody: asked.extraBody ?? {},
    prices: createPriceBook(prices),
    config: resolveConfig(rest, undefined, optionNames),
    clock: clock ?? systemClock,
  }
  const sessions = new Map<string, Session>()
  const bindings = new WeakMap<object, { input: AgentInput; binding: Binding }>()

  const sessionOf = (session: Session | string | undefined): Session => {
    if (session === undefined) return createSession()
    if (session instanceof Session) return session
    if (typeof session !== 'string' || session === '') {
      throw new UsageError(
        'invalid_session',
        'session must be a Session, or the id of one as a text.',
        'session',
      )
    }
    const kept = sessions.get(session) ?? new Session(session)
    sessions.set(session, kept)
    return kept
  }

  const bind = (input: UserInput, session: Session, { limits, context, journal }: RunOptions): AgentInput => {
    const bound: AgentInput = {
      now: parts.clock.now(),
      runId: newId(),
      sessionId: session.id,
      config: limits === undefined ? parts.config : overrideLimits(parts.config, limits),
      tools: set.traits,
      features: { ...noFeatures, userGuards: parts.guards.length > 0 },
      messages: [...session.messages],
      input: toMessages(input),
      usage: session.usage,
      ...session.metadata,
    }
    bindings.set(bound, { input: bound, binding: { context, journal } })
    return bound
  }

  const machine = journaled(
    agentMachine.provide({
      actors: {
        requestModel: requestModel(parts),
        runTools: runTools(parts),
        consultGuards: consultGuards(parts),
        backOff,
        deadline,
      },
    }),
    {
      clock: parts.clock,
      open: (input) => {
        const bound = typeof input === 'object' && input !== null ? bindings.get(input) : undefined
        if (bound) return bound
        const fresh = bind(input as UserInput, createSession(), {})
        return { input: fresh, binding: {} }
      },
      reopen: (snapshot) => bindings.get(snapshot)?.binding ?? {},
      partial: (text, context) => ({ text, usage: partialUsage(parts, context, text) }),
    },
  )

  return {
    machine,
    config: parts.config,
    input: (input, given) => {
      const runOptions = checkedRunOptions(given)
      return bind(input, sessionOf(runOptions.session), runOptions)
    },
    run: (input, given) => {
      const runOptions = checkedRunOptions(given)
      const inspector = checkedInspector(runOptions.inspect ?? inspect)
      const session = sessionOf(runOptions.session)
      const bound = bind(input, session, runOptions)
      session.acquire(bound.runId)
      const { config } = bound
      return new Run({
        machine,
        input: bound,
        session,
        signal: runOptions.signal,
        ready: config.limits.costLimit > 0 ? refuseUnknownPrice(parts, config, bound.usage) : undefined,
        inspect: inspector,
      })
    },
  }
}
