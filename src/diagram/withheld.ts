import type { AgentContext, Features } from '../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../machines/agent/machine-events.js'
import { hasUnclearedContent, maskContext } from '../../machines/agent/mask-uncleared.js'

interface Inspected {
  rootId?: unknown
  sessionId?: unknown
  event?: unknown
  snapshot?: unknown
}

/** In a viewer, what shields have not cleared. */
const withheld = '[withheld: a shield decides what of it may be read]'

/**
 * Takes out of inspection events what shields have not cleared. Which of them look at what, it learns from the agents that
 * it is shown; where their sub-agents are shown, too, the shields above them count.
 */
export function withholding(): <Event extends object>(event: Event) => Event {
  const known = new Map<unknown, Features>()
  return (event) => {
    const { rootId, sessionId, event: happened, snapshot } = event as Inspected
    const agent = agentIn(snapshot)
    if (agent !== null) known.set(rootId, anyOf(known.get(rootId), agent.features))
    const features = known.get(rootId)
    if (features === undefined || !Object.values(looksOf(features)).includes(true)) return event
    // What works for a call says what the call will return.
    const isHidden = features.resultShields && sessionId !== rootId
    return {
      ...event,
      ...(snapshot !== undefined && { snapshot: shownSnapshot(snapshot, agent, isHidden) }),
      ...(happened !== undefined && { event: shownEvent(happened, features, isHidden) }),
    }
  }
}

function agentIn(snapshot: unknown): AgentContext | null {
  const context = (snapshot as { context?: unknown } | null | undefined)?.context as
    | Partial<AgentContext>
    | undefined
  const isAgent =
    typeof context?.features === 'object' && Array.isArray(context.messages) && Array.isArray(context.calls)
  return isAgent ? (context as AgentContext) : null
}

function looksOf({ inputShields, outputShields, callShields, resultShields }: Features): Partial<Features> {
  return { inputShields, outputShields, callShields, resultShields }
}

function anyOf(one: Features | undefined, other: Features): Features {
  const both = { ...other }
  for (const name of Object.keys(other) as (keyof Features)[])
    both[name] = other[name] || one?.[name] === true
  return both
}

function shownSnapshot(snapshot: unknown, agent: AgentContext | null, isHidden: boolean): unknown {
  const {
    context: _context,
    output,
    error,
    children: _children,
    ...rest
  } = (snapshot ?? {}) as Record<string, unknown>
  if (agent !== null && !isHidden) return { ...rest, context: maskContext(agent) }
  return {
    ...rest,
    ...(output !== undefined && { output: withheld }),
    ...(error !== undefined && { error: withheld }),
  }
}

function shownEvent(happened: unknown, features: Features, isHidden: boolean): unknown {
  const event = happened as AgentMachineEvent
  // `xstate.promise.…`: what an actor has come to, before its agent hears of it.
  const isRaw = /^xstate\.(init|promise\.)/.test(event.type) || hasUnclearedContent(event, features)
  if (!isHidden && !isRaw) return happened
  return { type: event.type, ...('callId' in event && { callId: event.callId }), withheld }
}
