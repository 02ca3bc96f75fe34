import { valueOr } from '../core/base/maybe-promise.js'
import { optionsRule, expectArgument, objectRule } from '../core/base/values.js'
import { truncate } from '../../guards/lib/words.js'
import { scrubSecrets } from '../core/shields/secrets.js'
import type { AgentContext, Features, AgentMachineEvent } from '../../machines/agent/context.js'
import { hasUnclearedContent, maskContext } from '../../machines/agent/mask-uncleared.js'

interface Inspected {
  rootId?: unknown
  sessionId?: unknown
  event?: unknown
  snapshot?: unknown
}

const withheld = '[withheld: pending shield review]'

/** The shields are learned from the agent snapshots seen so far; those of a parent also apply to its sub-agents. */
function withholding(): <Event extends object>(event: Event) => Event {
  const known = new Map<unknown, Features>()
  return (event) => {
    const { rootId, sessionId, event: happened, snapshot } = event as Inspected
    const agent = agentIn(snapshot)
    if (agent !== null) {
      const before = known.get(rootId)
      const all = { ...agent.features }
      for (const name of shieldNames) all[name] ||= before?.[name] === true
      known.set(rootId, all)
    }
    const features = known.get(rootId)
    if (!features || !shieldNames.some((name) => features[name])) return event
    // The actors of a call reveal the call's result.
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

const shieldNames = ['inputShields', 'outputShields', 'callShields', 'resultShields'] as const

function shownSnapshot(snapshot: unknown, agent: AgentContext | null, isHidden: boolean): unknown {
  const whole = (snapshot ?? {}) as Record<string, unknown>
  const { context: _context, output, error, children: _children, ...rest } = whole
  if (agent !== null && !isHidden) return { ...rest, context: maskContext(agent) }
  return {
    ...rest,
    ...(output !== undefined && { output: withheld }),
    ...(error !== undefined && { error: withheld }),
  }
}

function shownEvent(happened: unknown, features: Features, isHidden: boolean): unknown {
  const event = happened as AgentMachineEvent
  // `xstate.promise.…` carries an actor's result before the agent receives it.
  const isRaw = /^xstate\.(init|promise\.)/.test(event.type) || hasUnclearedContent(event, features)
  if (!isHidden && !isRaw) return happened
  return { type: event.type, ...('callId' in event && { callId: event.callId }), withheld }
}

/** Limits for redacted events. */
export interface RedactOptions {
  /** The maximum length of a text in characters. Longer texts are truncated. Defaults to 200. */
  maxText?: number
  /** The maximum length of a list. Only the last items are shown. Defaults to 20. */
  maxItems?: number
}

/** No machine config nests this deep. Deeper values are omitted. */
const maxDepth = 24

/** The maximum number of characters to scrub, which bounds the time for any input. */
const longestScrubbed = 8000

const secretKey =
  /(?:(?:api|access|secret|private|auth)[-_]?key|token|secret|password|passwd|passphrase|authorization|credentials?|cookie)$/i

/**
 * Options for the inspectors in `@statelyai/inspect`. Events become plain JSON with truncated texts and lists.
 * API keys, tokens and passwords are removed, and content pending shield review is withheld.
 *
 * ```ts
 * const { inspect } = createBrowserInspector(createInspectorOptions())
 * const agent = createAgent({ model, inspect })
 * ```
 */
export function createInspectorOptions(options: RedactOptions = {}): {
  serialize: <Event extends object>(event: Event) => Event
  serializationDepthLimit: number
} {
  const shown = withholding()
  return {
    serialize: (event) => redactEvent(shown(event), options),
    // The inspector's default depth would truncate the machine definition.
    serializationDepthLimit: maxDepth,
  }
}

/**
 * Redacts one inspection event so that it can leave the process. Idempotent.
 *
 * @example
 * const { event } = redactEvent({ type: '@xstate.event', event: { type: 'CALL', apiKey: 'sk-123', text: 'x'.repeat(500) } })
 * console.log(event.apiKey, event.text.length) // → [redacted] 200
 */
export function redactEvent<Event extends object>(event: Event, options: RedactOptions = {}): Event {
  expectArgument('redactEvent(event)', event, objectRule([], 'an event: an object'))
  expectArgument('redactEvent(event, options)', options, optionsRule)
  const { maxText = 200, maxItems = 20 } = options

  function plain(value: unknown, key: string, around: readonly object[]): unknown {
    switch (typeof value) {
      case 'string':
        if (secretKey.test(key) && value !== '') return '[redacted]'
        return truncate(scrubSecrets(truncate(value, longestScrubbed)), maxText)
      case 'bigint':
      case 'symbol':
        return String(value)
      case 'function':
        return { type: value.name }
      case 'object':
        return value === null ? null : object(value, key, around)
      default:
        return value
    }
  }

  function object(value: object, key: string, around: readonly object[]): unknown {
    if (secretKey.test(key)) return '[redacted]'
    if (around.includes(value)) return '[circular]'
    if (around.length >= maxDepth) return '…'
    const within = [...around, value]
    if (Array.isArray(value)) return list(value, key, within)
    if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
    if (value instanceof Error) return plain({ name: value.name, message: value.message }, key, within)
    if ('toJSON' in value && typeof value.toJSON === 'function') return plain(value.toJSON(), key, within)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each, name, within)]))
  }

  function list(items: readonly unknown[], key: string, within: readonly object[]): unknown[] {
    const isWhole = items.length <= maxItems
    const shown = isWhole ? items : items.slice(items.length - maxItems + 1)
    const plainItems = shown.map((item) => plain(item, key, within))
    return isWhole ? plainItems : [`… ${items.length - shown.length} earlier`, ...plainItems]
  }

  /** Keeps the machine's names and targets intact and redacts only the initial context. */
  function definition(json: string): string {
    const config = JSON.parse(json) as { context?: unknown }
    return JSON.stringify({
      ...config,
      ...('context' in config && { context: plain(config.context, '', []) }),
    })
  }

  return Object.fromEntries(
    Object.entries(event).map(([key, value]: [string, unknown]) => {
      if (key === 'definition' && typeof value === 'string') return [key, safely(() => definition(value))]
      return [key, key === 'event' || key === 'snapshot' ? safely(() => plain(value, key, [])) : value]
    }),
  ) as Event
}

/** App code in a context, such as a throwing getter, must not break the run. */
function safely<Value>(make: () => Value): Value | string {
  return valueOr(make, '[unreadable]')
}
