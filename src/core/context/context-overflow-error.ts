import type { ContextStrategy } from '../../../machines/agent/fit.js'
import { ModelError, type ModelRequest } from '../models/provider.js'
import type { TokenCounter } from './token-counter.js'
import { getLeastSize } from './plan-gap.js'
import type { FitSituation } from './fit-strategy.js'

/** A request that no fit makes small enough: says how much it needs, and what takes it. */
export function contextOverflowError(
  situation: FitSituation,
  strategy: ContextStrategy,
  request: ModelRequest,
  counter: TokenCounter,
): ModelError {
  const { fixed, sizes, window } = situation
  const whole = strategy === 'none'
  const needed = whole ? sizes.reduce((sum, size) => sum + size, fixed) : getLeastSize(situation)
  const tools = counter.tools(request)
  const taken = [
    `${fixed - tools} for instructions`,
    `${tools} for tools`,
    `${needed - fixed} for ${whole ? 'messages' : 'the newest message and what it cannot go without'}`,
  ]
  const advice = whole
    ? 'Raise it, or choose another context.strategy.'
    : 'Raise it, or shorten what takes most.'
  return new ModelError({
    kind: 'context_overflow',
    code: 'context_overflow',
    message: `The request needs ${needed} tokens, more than the ${window} of context.window: ${taken.join(', ')}. ${advice}`,
  })
}
