import { joinExpiry } from '../../../machines/agent/approvals.js'
import type { AgentInput } from '../../../machines/agent/context.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import { findSpeaker } from '../../../machines/agent/messages.js'
import { overrideLimits } from '../config/resolve-config.js'
import { loadOnce, createId } from '../base/platform.js'
import {
  lostSpeakerError,
  refuseJournalWithStore,
  refuseStoredSession,
  refuseTags,
} from '../sessions/session-errors.js'
import { checkSessionId } from '../sessions/store/session-id.js'
import { checkStore, limitStoreTime } from '../sessions/store/checked-store.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { OutputOf } from '../structured/structured-output.js'
import { addObject, checkResult, getObject } from '../structured/read-output.js'
import type { InputSchema } from '../tools/input-schema.js'
import type { ContextOf, ToolEntry, ToolsOf } from '../tools/tool-set.js'
import type { PriceBook } from '../prices/price-book.js'
import { createActors } from '../effects/actors.js'
import { asTool } from '../sub-agents/as-tool.js'
import type { ChildHost } from '../sub-agents/open-child.js'
import { checkInspector, type Inspector } from '../run/safe-listeners.js'
import { readConversation, addHistory, type InputConversation } from '../sessions/input-history.js'
import { createJournaledMachine, type JournaledOptions } from '../live/journaled-machine.js'
import type { Binding } from '../live/runtime.js'
import { getTraits, getSpeakerTools, isLostSpeaker, toSpeaker, type AgentParts } from '../live/agent-parts.js'
import { Run } from '../run/run.js'
import type { AgentRunParts, RunOrigin } from '../run/run-parts.js'
import { toRequesters } from '../sessions/principal.js'
import { inputError } from '../base/errors.js'
import { createSession, Session } from '../sessions/session.js'
import { withAttachments, readParts, resumeOptionNames, checkRunOptions, checkModels } from './read-parts.js'
import type { Agent, AgentOptions, RunOptions } from './agent-options.js'
import {
  getFeatures,
  createDefinitionFactory,
  internalsByAgent,
  internalsByMachine,
  getStore,
  type AgentInternals,
} from './agent-internals.js'
import type { WatchedEvent } from '../run/watch-session.js'
import { checkPriceKnown, checkSearchInstalled, checkTokenizerInstalled } from '../effects/check-run-start.js'

const loadStored = loadOnce(() => import('./stored-runs.js'))
const loadSend = loadOnce(() => import('../run/send-to-stored-session.js'))

/**
 * Creates an agent from a model, its tools and the limits of the loop. Invalid options throw here. A missing API key or
 * an unknown price is reported when a run starts.
 * @example
 * const agent = createAgent({
 *   model: openaiChat({ model: 'gpt-5-mini' }),
 *   instructions: 'You are a careful analyst.',
 *   tools: [add],
 *   limits: { maxSteps: 20, timeoutMs: 300_000, costLimit: 2 },
 * })
 * const { state, output } = await agent.run('What is 19 + 23?').result
 * @throws {ConfigError} `invalid_config`, `invalid_tool`, `duplicate_tool`, `invalid_guard`, `invalid_shield`, … The
 * error names the key and the allowed values
 */
export function createAgent<
  Schema extends InputSchema = never,
  const Tools extends readonly ToolEntry[] = readonly ToolEntry[],
>(options: AgentOptions<Schema, Tools>): Agent<OutputOf<Schema>, ToolsOf<Tools>, ContextOf<Tools>>
export function createAgent(options: AgentOptions): Agent {
  const parts = readParts(options)
  const { inspect, store } = options
  checkStore(store)
  return assembleAgent(parts, { store, inspect: checkInspector(inspect) })
}

export function assembleAgent(
  parts: AgentParts,
  { store: storeOption, inspect }: { store: SessionStore | undefined; inspect: Inspector | undefined },
): Agent {
  const { config, clock, tools, prices, output } = parts
  const store = storeOption && limitStoreTime(storeOption, config.storeTimeoutMs, clock)
  const sessions = new Map<string, Session>()
  const inputs = createRunInputs(parts)
  const { bind, bindings } = inputs
  const abandon: JournaledOptions['abandon'] = (...abandoned) =>
    void import('../run/stored-run.js').then(({ endAbandonedChild }) => endAbandonedChild(...abandoned))
  const machine = createJournaledMachine({ actors: createActors(parts) }, { ...inputs, parts, abandon })

  const sessionOf = (session: Session | string | undefined): Session => {
    if (session === undefined) return createSession()
    if (session instanceof Session) return session
    const id = checkSessionId(session)
    const existing = sessions.get(id) ?? new Session(id)
    // Without a store, the agent keeps the session.
    if (!store) sessions.set(id, existing)
    return existing
  }

  const readInput = (input: unknown, { attachments }: RunOptions): InputConversation => {
    const { history, newMessages } = readConversation(input, clock.now())
    return { history, newMessages: withAttachments(newMessages, attachments) }
  }

  const ready = async ({ config, usage, speaker }: AgentInput, inherited?: PriceBook): Promise<void> => {
    const { model, tools: spoken } = toSpeaker(parts, speaker)
    await checkPriceKnown({ model, prices: inherited ?? prices }, config, usage)
    await checkTokenizerInstalled(parts, config)
    await checkSearchInstalled(spoken)
    await output?.ready?.()
  }

  const toolsOf = (speaker: string | null | undefined) => getSpeakerTools(tools, speaker)

  const runParts: AgentRunParts = { machine, clock, tools: toolsOf, output }

  const host: ChildHost = {
    definitionAs: createDefinitionFactory(parts),
    parts,
    config,
    bind,
    bindings,
    ready,
    runParts,
  }

  const internals: AgentInternals = {
    store: storeOption,
    limitedStore: store,
    label: undefined,
    inspect,
    parts,
    host,
    openInput: inputs.open,
    openStored: async () => (await loadStored()).createStoredRuns(internals, getStore(internals)),
  }
  const { openStored } = internals

  const agent: Agent = {
    machine,
    config,
    asTool: (how) => asTool(host, how),
    withObject: async (result) => addObject(output, checkResult(result)),
    objectOf: (result) => getObject(output, checkResult(result)),
    createInput: (input, runOptions) => {
      const options = checkRunOptions(runOptions)
      if (store && typeof options.session === 'string') refuseStoredSession(options.session)
      const { id: sessionId, state } = sessionOf(options.session)
      const { context, journal, budgets } = options
      refuseTags((options as RunOptions).tags)
      const conversation = readInput(input, options)
      const runId = createId()
      const runConfig = overrideLimits(config, options.limits)
      const requesters = toRequesters(options, 'createInput()')
      const request = { runId, sessionId, config: runConfig, input: conversation.newMessages, ...requesters }
      return bind(request, addHistory(state, conversation, sessionId), { context, journal, budgets })
    },
    run: (input, runOptions) => {
      const options = checkRunOptions(runOptions)
      checkModels(parts)
      const { signal, context, journal, budgets } = options
      const inspector = checkInspector(options.inspect ?? inspect)
      const conversation = readInput(input, options)
      const requesters = toRequesters(options, 'run()')
      const session = sessionOf(options.session)
      const runId = createId()
      const config = overrideLimits(parts.config, options.limits)
      const handle = { ...runParts, runId, session, signal, inspect: inspector }
      if (store) {
        refuseJournalWithStore(journal)
        checkSessionId(session.id)
        const { tags } = options
        const start = { runId, session, conversation, config, context, budgets, tags, ...requesters }
        return new Run({ ...handle, origin: openStored().then((stored) => stored.begin(start)) })
      }
      refuseTags(options.tags)
      try {
        session.acquire(runId)
        const state = addHistory(session.state, conversation, session.id)
        const { newMessages } = conversation
        const request = { runId, sessionId: session.id, config, input: newMessages, ...requesters }
        const agentInput = bind(request, state, { context, journal, budgets })
        // A run with nothing to check starts at once.
        const waits =
          config.limits.costLimit > 0 ||
          config.context.window > 0 ||
          output?.ready !== undefined ||
          toolsOf(agentInput.speaker).search !== undefined
        return new Run({
          ...handle,
          origin: { input: agentInput },
          ready: waits ? ready(agentInput) : undefined,
        })
      } catch (error) {
        // The session is busy or invalid. The run is refused in the same way as with a store.
        return new Run({ ...handle, origin: Promise.reject(error) })
      }
    },
    resume: async (sessionId, runOptions) => {
      const options = checkRunOptions(runOptions, 'resume()', resumeOptionNames)
      const { signal, context, budgets, inspect: own } = options
      const resumption = { signal, context, budgets, inspect: checkInspector(own ?? inspect) }
      getStore(internals)
      const id = checkSessionId(sessionId)
      const { acquire, resumeAcquired } = await openStored()
      return resumeAcquired(await acquire(id, { holder: 'a resumed run' }), id, resumption)
    },
    branch: (sessionId, runOptions) => {
      getStore(internals)
      const session = new Session(checkSessionId(sessionId))
      const runId = createId()
      const begin = async (): Promise<RunOrigin> =>
        (await openStored()).branch(runOptions, { runId, session })
      return new Run({ ...runParts, runId, session, origin: begin(), signal: runOptions?.signal, inspect })
    },
    deleteSession: async (sessionId) => {
      const id = checkSessionId(sessionId)
      if (store) return (await openStored()).delete(id)
      sessions.get(id)?.acquire('that forgets it')
      return sessions.delete(id)
    },
    deleteSessions: async (owner) => (await openStored()).deleteAll(owner),
    replay: async (...args) => (await openStored()).replay(...args),
    readSession: async (sessionId) => (await openStored()).read(sessionId),
    rename: async (...args) => (await openStored()).rename(...args),
    fork: async (...args) => (await openStored()).fork(...args),
    listBranches: async (sessionId) => (await openStored()).listBranches(sessionId),
    selectBranch: async (...args) => (await openStored()).selectBranch(...args),
    send: async (sessionId, message) => {
      const sendParts = { store: getStore(internals), clock, tools }
      return (await loadSend()).sendToStoredSession(sendParts, sessionId, message)
    },
    watch: (sessionId, options) => {
      getStore(internals)
      return watchLater(async (left) => (await openStored()).watch(sessionId, options, left))
    },
  }
  internalsByAgent.set(agent, internals)
  internalsByMachine.set(machine, internals)
  return agent
}

/** Creates the inputs of an agent's runs. Data that must not be logged is bound to the input object. */
function createRunInputs(parts: AgentParts) {
  const { clock, config: own, tools } = parts
  const bindings = new WeakMap<object, Binding>()
  let features: AgentInput['features'] | undefined
  const toolsFor = (binding: Binding, speaker: string | null): Record<string, ToolTraits> =>
    getTraits(getSpeakerTools(tools, speaker), binding)

  const bind: ChildHost['bind'] = (
    { runId, sessionId, config, input, requesters, mayLackAuthor },
    state,
    binding,
  ) => {
    tools.team?.check(parts, { isBegun: true })
    const speaker = findSpeaker(state.messages)
    if (isLostSpeaker(tools, speaker)) throw lostSpeakerError(speaker)
    const { termsAbove: above = {} } = binding
    const approvers = [...(above.approvers ?? []), ...(parts.approvers ?? [])]
    const expiry = joinExpiry([above.expiry ?? {}, parts.expiry ?? {}])
    // The approvers of a parent were checked when its run started.
    if (!requesters && !mayLackAuthor && parts.approvers?.some(({ notRequester }) => notRequester))
      throw inputError(
        "approvals.approvers.notRequester needs the input's author. Start the run with { by: 'ann' }.",
        'by',
      )
    const bound: AgentInput = {
      now: (binding.depth === undefined ? undefined : binding.journal?.resumesAt) ?? clock.now(),
      runId,
      sessionId,
      config,
      tools: toolsFor(binding, speaker),
      features: config === own ? (features ??= getFeatures(parts, config)) : getFeatures(parts, config),
      ...state,
      input,
      ...(speaker !== null && { speaker }),
      ...(requesters && requesters.length > 0 && { requesters }),
      ...(approvers.length > 0 && { approvers }),
      ...(Object.keys(expiry).length > 0 && { expiry }),
    }
    bindings.set(bound, binding)
    return bound
  }

  /** An input from `createInput` is already bound. Any other input of an actor starts a new session. */
  function open(input: unknown): { input: AgentInput; binding: Binding } {
    const binding = bindings.get(input as object)
    if (binding) return { input: input as AgentInput, binding }
    const { id, state } = createSession()
    const { history, newMessages } = readConversation(input, clock.now())
    const past = addHistory(state, { history, newMessages }, id)
    const run = { runId: createId(), sessionId: id, config: own, input: newMessages }
    return { input: bind(run, past, {}), binding: {} }
  }

  return { bindings, toolsFor, bind, open }
}

/** Starts watching at the first `next()`. When the caller leaves the loop, a pending wait ends immediately. */
function watchLater(
  start: (signal: AbortSignal) => Promise<AsyncGenerator<WatchedEvent, void>>,
): AsyncIterableIterator<WatchedEvent, undefined> {
  const left = new AbortController()
  async function* watch(): AsyncGenerator<WatchedEvent, undefined> {
    yield* await start(left.signal)
    return undefined
  }
  const events = watch()
  const done = { done: true as const, value: undefined }
  return {
    next: async () => {
      const result = left.signal.aborted ? done : await events.next()
      return left.signal.aborted ? done : result
    },
    return: () => {
      left.abort()
      void events.return(undefined)
      return Promise.resolve(done)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
