import { type OnHalt, onHalt, type Setting, type Settings } from './lib/settings.js'

/** The counts at which a detector nudges the model and halts the run. Null: never. */
export interface Steps {
  /** The model reads what was seen and what to try, once. */
  nudgeAt: number | null
  /** The run stops. */
  haltAt: number | null
}

/** The same for a detector that can tell which call is to blame. */
export interface StepsWithBlock extends Steps {
  /** From here on the call is refused, with a result that says so; the run goes on. */
  blockAt: number | null
}

/**
 * Progress is news: a call not made before in this turn, or a result not seen before from it. Each detector watches for
 * one way of making none; `null` switches it off. A turn begins with a user message. Counts are of batches (the calls of
 * one response) unless said otherwise; a call that waits counts for less, a `polling` one not at all.
 *
 * The numbers were chosen on recorded sessions; docs/guardrails-measured.md has the figures.
 */
export interface ProgressConfig {
  /**
   * One batch over and over: batches in a row after the first. Default: 2, 4, 20. A refusal costs a request and no call, so
   * it comes soon; of the sessions that ended well, some came back by themselves after 13 repetitions, so the halt is late.
   */
  stale: StepsWithBlock | null
  /** Different batches in a row that bring nothing new: A B A B, a cycle of any length. Default: 4, 6, 20, as above. */
  mixed: StepsWithBlock | null
  /** Batches without news among the last ones, those refused apart: circles with something new thrown in. */
  mostly: MostlyConfig | null
  /**
   * One call that is repeated beside others that are new, batches in a row. Default: 3, 5, 7; no session that ended well
   * had two. It counts for a third beside a call that may have changed something, which may be how the change is looked at.
   */
  beside: StepsWithBlock | null
  /**
   * The same call with the same result, whatever comes between. Default: 6, 7, 14; a third each after something new,
   * because it may matter then: tests after each edit may fail the same way nineteen times before they are refused.
   */
  recurring: StepsWithBlock | null
  /**
   * The same calls, whose results differ in numbers, references and the order of their words alone, batches in a row.
   * Default: 12, 40. It counts for a third when numbers differ, or when a tool may change things. Numbers of a tool that may
   * change things are news.
   */
  similar: Steps | null
  /**
   * Rounds that are longer than `memory`, such as reading seventy files again and again: how often all of it was repeated
   * with nothing new between. Default: 1, 2; so a nudge comes when the second round ends, and the halt at the end of the third.
   */
  tour: Steps | null
  /** Other arguments, the same output, from one tool: calls in a row. */
  sameOutput: SameOutputConfig | null
  /** Batches in a row of which every call failed. Default: 7, 11; sessions that ended well had up to 8. */
  failing: Steps | null
  /**
   * Batches in a row in which one tool failed, whatever other tools did. Default: 8, 20: the others may be progress.
   */
  failingTool: Steps | null
  /** One tool, one error, other arguments: the error is not about them. Default: 5, 8; up to 6 ended well. */
  sameError: Steps | null
  /** Batches in a row that ask for tools that do not exist. Default: 2, 6: there is nothing to be learned from it. */
  unknownTools: Steps | null
  /**
   * Batches in a row that people, shields, policies or other guards refused whole. Default: 3, 8: each refusal costs a
   * person time.
   */
  refused: Steps | null
  /** The same call, denied by a tool's policy: it will be denied again. Default: 1, 2. Ends in `ERROR`. */
  policyDenied: Steps | null
  /**
   * Batches in a row that failed in passing, with none that succeeded. Default: 6, 10: retries are what should be made.
   */
  transient: Steps | null
  /** Identical calls in one response. */
  duplicates: DuplicatesConfig | null
  /** When a call counts as waiting instead of working. */
  waiting: WaitingConfig | null
  /** How many pairs of call and result of a turn are remembered: at most 64, which is what guard state has room for. */
  memory: number
  /** `pause` (default): nothing is lost, and `resume()` goes on. Policy denials end in ERROR either way. */
  onHalt: OnHalt
  /** Before a pause: one last request without tools, so that there is an answer. Default true. */
  lastWords: boolean
}

/** Batches without news among the last `of`. */
export interface MostlyConfig extends Steps {
  /** How many batches are looked back at: 2 to 64. Default 20, of which 11 nudge and 16 halt. */
  of: number
}

/**
 * Other arguments, the same output. A call with new arguments that succeeds is honest work as far as can be told: a
 * hundred rows may be updated, and a hundred names may not be found. So only a nudge comes by default, but for `long`.
 */
export interface SameOutputConfig {
  /** Characters from which an output is long. Default 500. */
  longChars: number
  /**
   * A long output, from any tool. Default: 5, 30. Only `readOnly` calls whose arguments differ in numbers alone count toward
   * the halt: pages after the last one.
   */
  long: Steps
  /** A shorter one, from a `readOnly` tool: searches that find nothing. Default: 6, never. */
  short: Steps
  /** A shorter one, from a tool that may change things, which often says no more than `ok`. Default: 12, never. */
  shortWrites: Steps
  /** What such a call counts for when its arguments differ by more than numbers: then it is other work. Default 1/3. */
  varied: number
}

export interface DuplicatesConfig {
  /** The first of them that is refused. Default 5: three key presses are work, fifty mails are not. */
  blockAt: number
}

/** A successful call that says no more than `chars` waits when it ran for `ms`, or says that something goes on. */
export interface WaitingConfig {
  /** Milliseconds. Default 3000. */
  ms: number
  /** Characters. Default 300. */
  chars: number
  /** What it counts for. Default 1/3; it is never refused. */
  weight: number
  /**
   * What it counts for when it says that something goes on (`running`, `queued`, `in progress`, `eta 4 min`), or is named
   * `sleep` or `wait`, however long it ran. Default 1/10. A tool whose name says that it acts (`send_mail`) does not wait.
   */
  underWay: number
}

const step: Setting = { from: 1, isNever: true }
const steps: Setting = { has: { nudgeAt: step, haltAt: step } }
const detector: Setting = { ...steps, canBeOff: true }
const detectorWithBlock: Setting = { has: { nudgeAt: step, blockAt: step, haltAt: step }, canBeOff: true }
const share: Setting = { from: 0, to: 1, of: 'share' }

export const progressSettings: Settings<ProgressConfig> = {
  stale: detectorWithBlock,
  mixed: detectorWithBlock,
  mostly: { has: { of: { from: 2, to: 64 }, nudgeAt: step, haltAt: step }, canBeOff: true },
  beside: detectorWithBlock,
  recurring: detectorWithBlock,
  similar: detector,
  tour: detector,
  sameOutput: {
    has: { longChars: { from: 1 }, long: steps, short: steps, shortWrites: steps, varied: share },
    canBeOff: true,
  },
  failing: detector,
  failingTool: detector,
  sameError: detector,
  unknownTools: detector,
  refused: detector,
  policyDenied: detector,
  transient: detector,
  duplicates: { has: { blockAt: { from: 2 } }, canBeOff: true },
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
  mostly: { of: 20, nudgeAt: 11, haltAt: 16 },
  beside: { nudgeAt: 3, blockAt: 5, haltAt: 7 },
  recurring: { nudgeAt: 6, blockAt: 7, haltAt: 14 },
  similar: { nudgeAt: 12, haltAt: 40 },
  tour: { nudgeAt: 1, haltAt: 2 },
  sameOutput: {
    longChars: 500,
    long: { nudgeAt: 5, haltAt: 30 },
    short: { nudgeAt: 6, haltAt: null },
    shortWrites: { nudgeAt: 12, haltAt: null },
    varied: 1 / 3,
  },
  failing: { nudgeAt: 7, haltAt: 11 },
  failingTool: { nudgeAt: 8, haltAt: 20 },
  sameError: { nudgeAt: 5, haltAt: 8 },
  unknownTools: { nudgeAt: 2, haltAt: 6 },
  refused: { nudgeAt: 3, haltAt: 8 },
  policyDenied: { nudgeAt: 1, haltAt: 2 },
  transient: { nudgeAt: 6, haltAt: 10 },
  duplicates: { blockAt: 5 },
  waiting: { ms: 3000, chars: 300, weight: 1 / 3, underWay: 1 / 10 },
  memory: 64,
  onHalt: 'pause',
  lastWords: true,
}
