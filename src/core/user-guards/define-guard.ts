import { toUserState } from '../../../guards/user-state.js'
import type { Json } from '../../../machines/agent/json.js'
import { deepFreeze } from '../base/values.js'
import { ConfigError } from '../base/errors.js'
import type { GuardDefinition, UserGuard } from './guard.js'

/**
 * Defines a guard of one's own: it looks at the calls of every response before any of them runs, and at their results.
 *
 * ```ts
 * const atMostTenMails = defineGuard({
 *   name: 'at-most-ten-mails',
 *   initial: 0,
 *   observe: (sent, fact) =>
 *     fact.type === 'results' ? sent + fact.results.filter(({ name }) => name === 'send_mail').length : sent,
 *   verdict: (sent) => (sent > 10 ? { action: 'halt', message: 'More than ten mails in one turn.' } : undefined),
 * })
 * ```
 *
 * Throws a ConfigError `invalid_guard` for a definition that cannot be used; it names the guard and what to change.
 */
export function defineGuard<State = null>(definition: GuardDefinition<State>): UserGuard {
  const { name, initial, observe, verdict, onHalt, timeoutMs, onError } = checkDefinition(definition)
  return Object.freeze({
    name,
    initial,
    ...(observe && { observe }),
    verdict,
    onHalt: onHalt ?? 'error',
    timeoutMs: timeoutMs ?? 5000,
    onError: onError ?? 'halt',
  })
}

const keys = ['name', 'initial', 'observe', 'verdict', 'onHalt', 'timeoutMs', 'onError']
const longest = 2_147_483_647

/** Types rule most of this out; JavaScript and casts do not. */
function checkDefinition(definition: unknown): GuardDefinition<Json> & { initial: Json } {
  if (typeof definition !== 'object' || definition === null) {
    throw new ConfigError('invalid_guard', 'defineGuard takes an object: { name, verdict, … }.')
  }
  const guard = definition as Record<string, unknown>
  const { name, initial = null, observe, verdict, onHalt, timeoutMs, onError } = guard
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_.-]{1,64}$/.test(name) || name === '__proto__') {
    const shown = typeof name === 'string' ? `'${name.slice(0, 80)}'` : `a value of type ${typeof name}`
    throw new ConfigError(
      'invalid_guard',
      `A guard cannot be named ${shown}: use 1 to 64 letters, digits, '_', '-' and '.'.`,
      'name',
    )
  }
  const refuse = (key: string, problem: string): never => {
    throw new ConfigError('invalid_guard', `Guard '${name}': ${problem}`, `${name}.${key}`)
  }
  for (const key of Object.keys(guard)) {
    if (!keys.includes(key)) refuse(key, `there is no option '${key}'. The options are ${keys.join(', ')}.`)
  }
  if (typeof verdict !== 'function') refuse('verdict', 'verdict must be a function.')
  if (!['undefined', 'function'].includes(typeof observe)) refuse('observe', 'observe must be a function.')
  if (![undefined, 'error', 'pause'].includes(onHalt as undefined)) {
    refuse('onHalt', "onHalt must be 'error' or 'pause'.")
  }
  if (![undefined, 'halt', 'ignore'].includes(onError as undefined)) {
    refuse('onError', "onError must be 'halt' or 'ignore'.")
  }
  const isTime = typeof timeoutMs === 'number' && timeoutMs >= 1 && timeoutMs <= longest
  if (timeoutMs !== undefined && !isTime) {
    refuse('timeoutMs', `timeoutMs must be a number of milliseconds from 1 to ${longest}.`)
  }
  const start = toUserState(initial)
  if ('problem' in start) return refuse('initial', `initial ${start.problem}.`)
  return { ...(definition as GuardDefinition<Json>), initial: deepFreeze(start.state) }
}
