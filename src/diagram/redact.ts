import { optionsRule, expectArgument, objectRule } from '../core/base/expect-argument.js'
import { truncate } from '../../guards/lib/cut.js'
import { scrubSecrets } from '../core/shields/scrub-secrets.js'
import { withholding } from './withheld.js'

/** How much is shown. */
export interface RedactOptions {
  /** The longest text that is shown, in characters; what is longer is cut. Default 200. */
  maxText?: number
  /** The most items of a list that are shown: the last ones. Default 20. */
  maxItems?: number
}

/** Deeper than the config of any machine; below, values are left out. */
const maxDepth = 24

/** Scrubbing takes bounded time whatever comes in. */
const longestScrubbed = 8000

/** Under these keys nothing is shown, whatever its form. */
const secretKey =
  /(?:(?:api|access|secret|private|auth)[-_]?key|token|secret|password|passwd|passphrase|authorization|credentials?|cookie)$/i

/**
 * Options for the inspectors of `@statelyai/inspect`: what they send is plain JSON, texts and lists are cut, and API
 * keys, tokens and passwords are scrubbed. What an agent's shields have not cleared is withheld.
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
    // The inspector's own default would cut the machine's definition off.
    serializationDepthLimit: maxDepth,
  }
}

/**
 * One inspection event, fit to leave the process. Redacting it again changes nothing.
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

  /** A machine's config holds names and targets, which must stay whole, and its initial context. */
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

/** Nothing that an app keeps in its context, a throwing getter say, may break its run. */
function safely<Value>(make: () => Value): Value | string {
  try {
    return make()
  } catch {
    return '[unreadable]'
  }
}
