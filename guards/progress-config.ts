import { type OnHalt, onHalt, type Setting, type Settings } from './lib/settings.js'

/** Counts for a nudge and a halt. Null means never. */
export interface Steps {
  /** The model reads one hint. */
  nudgeAt: number | null
  /** The run stops. */
  haltAt: number | null
}

/** Like `Steps`, for a rule that can refuse calls. */
export interface StepsWithBlock extends Steps {
  /** From this count on the calls are refused. The run continues. */
  blockAt: number | null
}

/**
 * A batch makes progress if it has news, which is a new call in this turn, or a new result of a call. Each rule detects
 * one kind of lack of progress. `null` disables a rule. A turn starts with a user message. Rules count consecutive
 * batches, which are the calls of one response. Waiting calls count less, and `polling` calls do not count.
 *
 * The numbers were chosen on recorded sessions; docs/guardrails-measured.md has the figures.
 */
export interface ProgressConfig {
  /**
   * Repetitions of one batch, after the first. Default: 2, 4, 20. A refusal costs a request and no call, so it comes
   * early. Some successful sessions stopped repeating after 13 repetitions, so the halt comes late. Also:
   * - more identical calls in one response than `blockAt` are refused
   * - a call made `3 × nudgeAt` times with the same result, or with a result that differs only in digits, leads to a
   *   nudge, even with other calls in between
   */
  stale: StepsWithBlock | null
  /** Different batches without news, such as A B A B or a longer cycle. Default: 4, 6, 20, as above. */
  mixed: StepsWithBlock | null
  /**
   * Batches whose calls all fail. Default: 7, 11. Successful sessions had up to 8. After the nudge, a different call
   * with a different error counts for a sixth, because the first rows of an import may all be bad.
   */
  failing: Steps | null
  /** The same tool and error with different arguments. Default: 5, 8. Successful sessions had up to 6. */
  sameError: Steps | null
  /** Calls of tools that do not exist. Default: 2, 6. */
  unknownTools: Steps | null
  /**
   * Batches whose calls were all refused by people, shields, policies or other guards. Default: 3, 8, because each
   * refusal takes a person's time.
   */
  refused: Steps | null
  /** The same call, denied by its tool's policy. Default: 1, 2. Ends in `ERROR`. */
  policyDenied: Steps | null
  /**
   * Temporary failures, without a success in between. Default: 6, 10. They are never refused, because retries are
   * appropriate.
   */
  transient: Steps | null
  /** Which calls count as waiting. */
  waiting: WaitingConfig | null
  /** Maximum number of remembered call-result pairs per turn, at most 64, because guard state is small. */
  memory: number
  /** After a `pause` (default), `resume()` continues the run. Policy denials end in ERROR either way. */
  onHalt: OnHalt
  /** Whether a pausing halt asks for last words first, in one request without tools. Default true. */
  lastWords: boolean
}

/** A successful waiting call is never refused. A call that took ten times `ms` counts as a tenth of `weight`. */
export interface WaitingConfig {
  /** Minimum duration of a waiting call, in milliseconds. Default 3000. */
  ms: number
  /** Maximum result length of a waiting call, in characters, unless it took ten times `ms`. Default 300. */
  chars: number
  /** Weight of a waiting call. Default 1/3. */
  weight: number
  /**
   * The weight of a call whose result reports work in progress (`running`, `queued`, `in progress`, `eta 4 min`), or whose
   * tool is named `sleep` or `wait`. Default 1/10. A tool whose name is an action (`send_mail`) does not wait.
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
