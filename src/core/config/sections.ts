import { nullable, type Read } from './kind.js'
import {
  amount,
  amountOrOff,
  choice,
  count,
  countOrNull,
  countOrOff,
  flag,
  fractionOrOff,
  number,
  section,
  whole,
} from './values.js'

const onHalt = choice('error', 'pause')
const onRepeat = choice('halt', 'block')

const share = () => number(0, 1, 'a number from 0 to 1')
const step = () => countOrNull(1, ', or null for never')
const steps = () => section({ nudgeAt: step(), haltAt: step() })
const stepsWithBlock = () => nullable(section({ nudgeAt: step(), blockAt: step(), haltAt: step() }))

/** The sections of an agent's configuration as a user writes them: no key is needed, no other is allowed. */
export const agentSections = {
  limits: section({
    maxSteps: countOrNull(1, ', or null for no cap'),
    timeoutMs: amountOrOff('milliseconds'),
    tokenBudget: countOrOff(),
    outputTokens: countOrOff(),
    costLimit: amountOrOff('USD'),
    onLimit: choice('stop', 'conclude'),
  }),
  budget: section({
    scope: choice('session', 'run'),
    countCached: flag(),
    onOvershoot: choice('exceeded', 'complete'),
    finishBatch: flag(),
    preflight: flag(),
    onUnknownPrice: choice('error', 'warn'),
    onMissingUsage: choice('estimate', 'zero'),
  }),
  retry: section({
    maxAttempts: count(1, ' (1 is no retry)'),
    rateLimitAttempts: count(1, ' (1 is no retry)'),
    baseDelayMs: amount('milliseconds'),
    maxDelayMs: amount('milliseconds'),
    maxRetryAfterMs: amount('milliseconds'),
  }),
  stream: flag(),
  streamIdleMs: amountOrOff('milliseconds'),
  storeTimeoutMs: amountOrOff('milliseconds'),
  contentIdleMs: amountOrOff('milliseconds'),
  completion: section({ onMissingEnd: choice('retry', 'accept'), maxOutputRepairs: countOrOff() }),
  context: section({
    window: countOrOff(),
    strategy: choice('sliding_window', 'compact', 'summarize', 'none'),
  }),
  toolCalls: section({
    concurrency: count(1),
    timeoutMs: amountOrOff('milliseconds'),
    maxResultChars: count(1),
    onInterrupted: choice('result', 'approval'),
  }),
  interactive: flag(),
  guardrails: section({
    maxTokensRecoveries: countOrOff(),
    maxRepeatedToolSteps: countOrNull(1, ', or null to switch the guard off'),
    reserveTokens: countOrOff(),
    reserveCostFraction: fractionOrOff(),
    progress: nullable(
      section({
        stale: stepsWithBlock(),
        mixed: stepsWithBlock(),
        mostly: nullable(
          section({ of: whole(2, 64, 'a whole number from 2 to 64'), nudgeAt: step(), haltAt: step() }),
        ),
        beside: stepsWithBlock(),
        recurring: stepsWithBlock(),
        sameOutput: nullable(
          section({
            longChars: count(1),
            long: steps(),
            short: steps(),
            shortWrites: steps(),
            varied: share(),
          }),
        ),
        failing: nullable(steps()),
        failingTool: nullable(steps()),
        sameError: nullable(steps()),
        unknownTools: nullable(steps()),
        refused: nullable(steps()),
        policyDenied: nullable(steps()),
        transient: nullable(steps()),
        duplicates: nullable(section({ blockAt: count(2) })),
        waiting: nullable(
          section({
            ms: amount('milliseconds'),
            chars: count(0),
            weight: share(),
          }),
        ),
        memory: whole(1, 64, 'a whole number from 1 to 64'),
        onHalt,
        lastWords: flag(),
      }),
    ),
    repeatedCall: nullable(
      section({ haltAt: choice('next', 'reached'), counts: choice('unchanged', 'all'), onRepeat, onHalt }),
    ),
    repeatedOutput: nullable(section({ rounds: count(2), strict: flag(), onHalt })),
    cycle: nullable(section({ maxPeriod: count(2), nudgeAt: count(2), haltAt: count(2), onHalt })),
    failing: nullable(
      section({
        identical: count(1),
        any: count(1),
        transientIdentical: count(1),
        transientAny: count(1),
        policyDenied: count(1),
        onRepeat,
        onHalt,
      }),
    ),
    terminalDelegation: nullable(section({ onHalt })),
    emptyAnswer: nullable(section({ reprompts: count(0), retries: count(0) })),
  }),
}

export const agentSchema = section(agentSections)

/** A configuration that the schema has accepted, before the defaults. */
export type GivenConfig = Read<typeof agentSchema>
