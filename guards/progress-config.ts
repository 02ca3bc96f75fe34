import { type OnHalt, onHalt, type Setting, type Settings } from './lib/settings.js'

/** When to nudge and when to halt. Null means never. */
export interface Steps {
  /** The count at which the model gets one hint. */
  nudgeAt: number | null
  /** The count at which the run stops. */
  haltAt: number | null
}

/** Like `Steps`, for a rule that can refuse calls. */
export interface StepsWithBlock extends Steps {
  /** The count from which the calls are refused while the run continues. */
  blockAt: number | null
}

/**
 * A batch (the calls of one response) makes progress if it has news: a call that is new in this turn, or a new result
 * of a call. Each rule detects one way of making no progress, by counting consecutive batches. `null` disables a rule.
 * A turn starts with a user message. Waiting calls count less, and `polling` calls do not count.
 *
 * The defaults are based on recorded sessions. See docs/guardrails-measured.md for the measurements.
 */
export interface ProgressConfig {
  /**
   * Repetitions of one batch, not counting the first. Defaults to 2, 4, 20. Refusals come early because they cost a
   * request but no call. The halt comes late because some successful sessions recovered after 13 repetitions. The rule
   * also covers two related cases:
   * - more identical calls in one response than `blockAt` are refused
   * - a call made `3 × nudgeAt` times with the same result, or with a result that differs only in digits, leads to a
   *   nudge, even with other calls in between
   */
  stale: StepsWithBlock | null
  /** Different batches without news, such as A B A B. Defaults to 4, 6, 20, for the same reasons as `stale`. */
  mixed: StepsWithBlock | null
  /**
   * Batches in which all calls fail. Defaults to 7, 11; successful sessions had up to 8. After the nudge, a different
   * call with a different error counts as one sixth, because the first rows of an import may all be bad.
   */
  failing: Steps | null
  /** Calls to one tool with the same error despite different arguments. Defaults to 5, 8; successes had up to 6. */
  sameError: Steps | null
  /** Calls to tools that do not exist. Defaults to 2, 6. */
  unknownTools: Steps | null
  /**
   * Batches in which people, shields, policies or other guards refused all calls. Defaults to 3, 8, because each
   * refusal takes a person's time.
   */
  refused: Steps | null
  /** The same call, denied repeatedly by its tool's policy. Defaults to 1, 2. Ends in `ERROR`. */
  policyDenied: Steps | null
  /** Temporary failures without a success in between, which are never refused. Defaults to 6, 10. */
  transient: Steps | null
  /** Which calls count as waiting. */
  waiting: WaitingConfig | null
  /** Maximum number of remembered call-result pairs per turn. At most 64, because guard state must be small. */
  memory: number
  /** `pause` (the default) pauses until `resume()`, `error` ends in `ERROR`. Policy denials always end in `ERROR`. */
  onHalt: OnHalt
  /** Whether to make one request without tools for a concluding answer before a pause. Defaults to true. */
  lastWords: boolean
}

/** Waiting calls are never refused if they succeed. After ten times `ms` they count as a tenth of `weight`. */
export interface WaitingConfig {
  /** Minimum duration of a waiting call, in milliseconds. Defaults to 3000. */
  ms: number
  /** Maximum result length of a waiting call, in characters, unless the call took ten times `ms`. Defaults to 300. */
  chars: number
  /** Weight of a waiting call. Defaults to 1/3. */
  weight: number
  /**
   * Weight of a call whose result reports work in progress (`running`, `queued`, `eta 4 min`), or whose tool is named
   * `sleep` or `wait`. Defaults to 1/10. A tool named after an action (`send_mail`) never waits.
   */
  underWay: number
}

const step: Setting = { from: 1, isNever: true }
const rule: Setting = { has: { nudgeAt: step, haltAt: step }, canBeOff: true }
const ruleWithBlock: Setting = { has: { nudgeAt: step, blockAt: step, haltAt: step }, canBeOff: true }
const share: Setting = { from: 0, to: 1, of: 'share' }

export const progressSettings: Settings<ProgressConfig> = {
  stale: ruleWithBlock,
  mixed: ruleWithBlock,
  failing: rule,
  sameError: rule,
  unknownTools: rule,
  refused: rule,
  policyDenied: rule,
  transient: rule,
  waiting: {
    has: { ms: { from: 0, of: 'milliseconds' }, chars: { from: 0 }, weight: share, underWay: share },
    canBeOff: true,
  },
  memory: { from: 1, to: 64 },
  onHalt,
  lastWords: 'flag',
}

export const progressDefaults: ProgressConfig = {
  stale: { nudgeAt: 2, blockAt: 4, haltAt: 20 },
  mixed: { nudgeAt: 4, blockAt: 6, haltAt: 20 },
  failing: { nudgeAt: 7, haltAt: 11 },
  sameError: { nudgeAt: 5, haltAt: 8 },
  unknownTools: { nudgeAt: 2, haltAt: 6 },
  refused: { nudgeAt: 3, haltAt: 8 },
  policyDenied: { nudgeAt: 1, haltAt: 2 },
  transient: { nudgeAt: 6, haltAt: 10 },
  waiting: { ms: 3000, chars: 300, weight: 1 / 3, underWay: 1 / 10 },
  memory: 64,
  onHalt: 'pause',
  lastWords: true,
}
