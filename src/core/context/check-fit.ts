import type { AgentContext } from '../../../machines/agent/context.js'
import type { Fit } from '../../../machines/agent/fit.js'
import type { ModelRequest } from '../models/provider.js'
import { perMessage, type TokenCounter } from './token-counter.js'
import { isValidGap } from './gap.js'
import type { FitSituation } from './fit-strategy.js'

/** The next request, were it made with some fit. */
export type BuildRequest = (fit: Fit | null) => ModelRequest

export interface FitCheck {
  /** The fit that serves; the one that has been outgrown, where there is a situation. */
  readonly fit: Fit | null
  /** Tokens of the request as it would be now. */
  readonly before: number
  /** Null: the request fits. */
  readonly situation: FitSituation | null
}

/** A fit is given up only for a transcript that has room to grow without it. */
const comfortable = 3 / 4

/** Whether the next request fits as it is. A fit that was made once serves until it is outgrown. */
export function checkFit(
  { messages, fit, config }: Pick<AgentContext, 'messages' | 'fit' | 'config'>,
  counter: TokenCounter,
  requestWith: BuildRequest,
): FitCheck {
  const window = config.context.window || Infinity
  const isOfUse = fit !== null && config.context.strategy !== 'none' && isValidGap(messages, fit)
  const current = isOfUse ? fit : null
  const base = requestWith(null)
  const whole = counter.request(base)
  const before = current === null ? whole : counter.request(requestWith(current))
  if (whole <= (current === null ? window : window * comfortable))
    return { fit: null, before, situation: null }
  if (before <= window) return { fit: current, before, situation: null }
  return {
    fit: current,
    before,
    situation: {
      messages,
      sizes: messages.map(counter.message),
      fixed: counter.fixed(base),
      window,
      previous: current,
      noteSize: (note) => perMessage + counter.text(note),
    },
  }
}
