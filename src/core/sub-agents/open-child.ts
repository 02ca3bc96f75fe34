import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentContext, AgentInput, SessionState } from '../../../machines/agent/context.js'
import type { Principal } from '../../../machines/agent/principal.js'
import { inheritPrices, type PriceBook } from '../prices/price-book.js'
import { openSession } from '../sessions/open-session.js'
import { type AgentDefinition, type AgentLabel, createSubAgentLabel } from '../sessions/agent-definition.js'
import { leaseMs } from '../sessions/log/lease.js'
import { createSessionState } from '../sessions/session-state.js'
import type { SessionLog } from '../sessions/log/session-log.js'
import type { SessionStore } from '../sessions/store/store.js'
import { isSessionBusy } from '../sessions/store/store-error.js'
import { readElapsed, wait } from '../base/clock.js'
import { toMessages } from '../sessions/user-input.js'
import type { Binding } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { createId } from '../base/platform.js'
import { bindStoredRun, endLeftChildren, releaseOnError } from '../run/stored-run.js'
import { Run } from '../run/run.js'
import type { AgentRunParts, RunParts } from '../run/run-parts.js'
import { Session } from '../sessions/session.js'
import type { DelegateRequest } from '../tools/tool.js'

export interface ChildHost {
  parts: AgentParts
  /** The agent's configuration, with the options of `asTool` applied. */
  config: AgentConfig
  definitionAs(label: AgentLabel | undefined): AgentDefinition
  /** Rejects when a run cannot start. */
  ready(input: AgentInput, prices?: PriceBook): Promise<void>
  runParts: AgentRunParts
  bind(
    run: Pick<AgentInput, 'runId' | 'sessionId' | 'config' | 'input'> & {
      requesters?: readonly Principal[] | undefined
      /** Whether the run starts without an author even if its approvers need one. Then nobody can approve. */
      mayLackAuthor?: boolean
    },
    state: SessionState,
    binding: Binding,
  ): AgentInput
  /** By input and by snapshot of this process. */
  bindings: WeakMap<object, Binding>
}

export type ChildSession = Pick<DelegateRequest, 'name' | 'sessionId' | 'parentSessionId' | 'isUnwanted'> &
  Partial<Pick<DelegateRequest, 'now'>>

/**
 * Runs an agent in the session of a child, for a parent that is not an agent. Starts a run, or continues the run in the
 * session's log. If the run has already ended, returns its context.
 * @throws {StoreError} `session_busy`, …
 */
export async function runChild(
  host: ChildHost,
  store: SessionStore,
  child: ChildSession,
  open: () => { input: AgentInput; binding: Binding },
): Promise<{ log: SessionLog } & ({ run: Run } | { ended: AgentContext })> {
  const { log, folded } = await openWhenFree(store, host, child)
  const { sessionId, name } = child
  const session = new Session(sessionId, name)
  return releaseOnError(log, async () => {
    if (folded.run && folded.run.status !== 'active') {
      await log.close()
      return { log, ended: folded.run.context }
    }
    if (folded.run) {
      await log.inbox.readFirst()
      const bound = bindStoredRun(host.bindings, log, folded, folded.run, { store })
      session.update(folded.run.context)
      return { run: new Run({ ...host.runParts, session, ...bound }), log }
    }
    const { input: childInput, binding } = open()
    const input = { ...childInput, sessionId }
    host.bindings.set(input, { ...binding, journal: log, store })
    await host.ready(input)
    const { messages, usage, guardrails, warnedOfBudget, fit = null } = childInput
    log.addInitialState({ ...createSessionState(), messages, usage, guardrails, warnedOfBudget, fit })
    return { run: new Run({ ...host.runParts, session, runId: input.runId, origin: { input, log } }), log }
  })
}

/** Starts or continues a run. Returns null if the run was in progress before and has no log. */
export async function openChild(host: ChildHost, errand: DelegateRequest): Promise<Run | null> {
  const { isBegun } = errand
  const above = errand.binding as Binding & { prices: PriceBook }
  const { store } = above
  const binding = { ...above, prices: inheritPrices(host.parts.prices, above.prices) }
  const runId = createId()
  if (!store) {
    if (isBegun) return null
    const input = await createChildInput(host, errand, runId, binding)
    return createChildRun(host, errand, { runId, origin: { input } })
  }
  const { log, folded } = await openWhenFree(store, host, errand)
  if (folded.run)
    return createChildRun(host, errand, bindStoredRun(host.bindings, log, folded, folded.run, binding))
  return releaseOnError(log, async () => {
    const input = isBegun ? null : await createChildInput(host, errand, runId, { ...binding, journal: log })
    if (input) {
      log.addInitialState(createState(errand))
      return createChildRun(host, errand, { runId, origin: { input, log } })
    }
    await log.close()
    return null
  })
}

async function createChildInput(host: ChildHost, errand: DelegateRequest, runId: string, binding: Binding) {
  const { sessionId, message, requesters } = errand
  const config = createChildConfig(host.config, errand)
  const request = { runId, sessionId, config, input: toMessages(message), requesters }
  const input = host.bind(request, createState(errand), binding)
  await host.ready(input, binding.prices)
  return input
}

function createState({ askFirst }: DelegateRequest): SessionState {
  return { ...createSessionState(), ...(askFirst && { terms: { askFirst } }) }
}

function createChildRun(host: ChildHost, errand: DelegateRequest, begun: Pick<RunParts, 'runId' | 'origin'>) {
  const { parent, actorId: id, watch, onEvent, sessionId, name } = errand
  const session = new Session(sessionId, name)
  const above = { parent, id, watch, onEvent }
  return new Run({ ...host.runParts, ...begun, session, above })
}

/** After a crash, the dead process may hold its lease on this session slightly longer than on the parent session. */
async function openWhenFree(
  store: SessionStore,
  host: ChildHost,
  { name, sessionId, parentSessionId: parent, isUnwanted, now }: ChildSession,
) {
  const { clock, interpreter } = host.parts
  const definition = () => host.definitionAs(createSubAgentLabel(name))
  const request = { clock, holder: `sub-agent ${name}`, name, parent, definition, interpreter, now }
  const giveUpAt = readElapsed(clock) + leaseMs
  for (;;) {
    try {
      const acquired = await openSession(store, sessionId, request)
      await endLeftChildren({ store, clock }, acquired.folded)
      return acquired
    } catch (error) {
      if (!isSessionBusy(error) || isUnwanted() || readElapsed(clock) >= giveUpAt) throw error
    }
    await wait(clock, 1_000)
  }
}

/** Limited by what is left of the parent's limits. A sub-agent never waits for messages. */
function createChildConfig(own: AgentConfig, { left, countCached }: DelegateRequest): AgentConfig {
  const { limits, budget } = own
  const isBound = left.tokens !== null
  return {
    ...own,
    interactive: false,
    limits: {
      ...limits,
      tokenBudget: toLowerLimit(limits.tokenBudget, left.tokens),
      outputTokens: toLowerLimit(limits.outputTokens, left.outputTokens),
      costLimit: toLowerLimit(limits.costLimit, left.cost),
    },
    budget: { ...budget, ...(isBound && limits.tokenBudget === 0 && { countCached }) },
  }
}

/** Returns the lower of two limits. 0 and null both mean no limit. */
function toLowerLimit(limit: number, left: number | null): number {
  if (left === null) return limit
  return limit === 0 ? left : Math.min(limit, left)
}
