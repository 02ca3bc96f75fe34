import type { InspectionEvent, Observer } from 'xstate'
import { ConfigError } from '../base/errors.js'

/** What XState tells an inspector: every actor, event, snapshot and transition. */
export type Inspector = Observer<InspectionEvent> | ((event: InspectionEvent) => void)

/** Throws a ConfigError for what is no inspector. */
export function checkInspector(inspector: Inspector | undefined): Inspector | undefined {
  if (inspector === undefined || typeof inspector === 'function') return inspector
  if (typeof inspector === 'object' && inspector !== null && typeof inspector.next === 'function')
    return inspector
  throw new ConfigError(
    'invalid_config',
    "inspect must be a function or an observer with next(), such as the 'inspect' of an inspector.",
    'inspect',
  )
}

/** XState calls inspectors in the middle of a transition: one that throws is reported once, and not called again. */
export function safeInspector(
  inspector: Inspector,
  report: (thrown: unknown) => void,
): (event: InspectionEvent) => void {
  let isOff = false
  return (event) => {
    if (isOff) return
    try {
      if (typeof inspector === 'function') inspector(event)
      else inspector.next?.(event)
    } catch (thrown) {
      isOff = true
      report(thrown)
    }
  }
}
