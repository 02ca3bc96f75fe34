import type { Screening, ShieldFinding } from '../../../machines/agent/screening.js'
import { toEvidence, truncate } from '../../../guards/lib/words.js'
import { type CallAbort, attachSignal, runWithTimeout } from '../base/abort.js'
import { type Clock, systemClock } from '../base/clock.js'
import { describeError } from '../base/errors.js'
import { type Shield, type ShieldScene, defaultTimeoutMs } from './define-shield.js'
import { describeArgument, expectArgument, listRule, objectRule } from '../base/values.js'

export interface AskShieldsOptions extends ShieldScene {
  signal: AbortSignal
  clock: Clock
  timeoutMs: number
  failOpen: boolean
  /**
   * Receives the exception from a check. If set, the exception is omitted from the message, because pages show messages
   * from shields. By default, the exception is included.
   */
  reportThrown?: ((failure: string) => void) | undefined
}

export async function askShields(
  shields: readonly Shield[],
  content: string,
  options: AskShieldsOptions,
): Promise<Screening> {
  const onFailure = options.failOpen ? 'warn' : 'block'
  const answers = await Promise.all(
    shields.map(async (shield) => ({ shield, answer: await askShield(shield, content, onFailure, options) })),
  )
  return sumUpAnswers(await redactInTurn(content, answers, options), answers)
}

interface AnsweredShield {
  shield: Shield
  answer: ShieldAnswer
}

/** Applies redactions in order and updates the answers of shields that were consulted again. */
async function redactInTurn(
  content: string,
  answers: AnsweredShield[],
  options: AskShieldsOptions,
): Promise<string> {
  if (answers.some(({ answer }) => answer.action === 'block')) return content
  let text: string | undefined
  for (const answered of answers) {
    const { shield, answer } = answered
    if (answer.action !== 'redact') continue
    if (text === undefined) {
      text = answer.content
      continue
    }
    const again = await askShield(shield, text, 'block', options)
    const durationMs = answer.durationMs + again.durationMs
    if (again.action === 'block') {
      answered.answer = { ...again, durationMs }
      return content
    }
    if (again.action === 'redact') text = again.content
    // The new message covers only a part of the content, so the first message is kept.
    answered.answer = { ...answer, durationMs }
  }
  return text ?? content
}

export const findGravest = (found: readonly Pick<ShieldFinding, 'action'>[]) =>
  (['block', 'redact', 'warn'] as const).find((one) => found.some(({ action }) => action === one))

function sumUpAnswers(content: string, answers: readonly AnsweredShield[]): Screening {
  const findings = answers.map(({ shield, answer: { action, message, durationMs } }): ShieldFinding => {
    return { shield: shield.name, action, message, durationMs }
  })
  const action = findGravest(findings) ?? 'allow'
  const words = findings.flatMap((finding) =>
    finding.action === action && finding.message !== null ? [finding.message] : [],
  )
  return { action, message: words.length > 0 ? words.join('\n') : null, content, findings }
}

type CheckedShieldVerdict =
  | { action: 'allow' | 'warn' | 'block'; message: string | null }
  | { action: 'redact'; message: string | null; content: string }

/** Returns a sentence if the verdict is invalid. An invalid message is ignored, so that a block is not a failure. */
function readShieldVerdict(value: unknown): CheckedShieldVerdict | { problem: string } {
  if (typeof value !== 'object' || value === null)
    return { problem: `check() returned ${describeArgument(value)}; ${shapes}` }
  const { action, message: text, content } = value as Record<string, unknown>
  const message = typeof text === 'string' && text.trim() !== '' ? truncate(text, 2000) : null
  if (action === 'allow' || action === 'warn' || action === 'block') return { action, message }
  if (action !== 'redact') return { problem: `check() returned an object without a valid action; ${shapes}` }
  if (typeof content !== 'string') return { problem: `check() returned 'redact' without content; ${shapes}` }
  return { action, message, content }
}

const shapes =
  "return { action: 'allow' | 'warn' | 'block', message? } or { action: 'redact', content, message? }"

type ShieldAnswer = CheckedShieldVerdict & { durationMs: number }

/** Consults one shield. Every outcome, including a timeout, becomes an answer. Never rejects. */
async function askShield(
  shield: Shield,
  content: string,
  onFailure: 'warn' | 'block',
  options: AskShieldsOptions,
): Promise<ShieldAnswer> {
  const { signal, clock, timeoutMs: common, failOpen: _failOpen, reportThrown, ...scene } = options
  if (signal.aborted) return { ...createStoppedAnswer(shield), durationMs: 0 }
  const timeoutMs = shield.timeoutMs ?? common
  const startedAt = clock.now()
  const fail = (failure: string): CheckedShieldVerdict => {
    const consequence =
      onFailure === 'block'
        ? 'Content that could not be checked is blocked. Fix the shield, or set failOpen to allow it with a warning.'
        : 'The content is allowed without a check (failOpen).'
    const what = toEvidence(`Shield '${shield.name}' failed: ${failure}`).replace(/\.$/, '')
    return { action: onFailure, message: `${what}. ${consequence}` }
  }
  const check = async (abort: CallAbort): Promise<CheckedShieldVerdict> => {
    try {
      const verdict = readShieldVerdict(await shield.check(content, attachSignal(scene, abort)))
      if ('problem' in verdict) return fail(verdict.problem)
      return verdict.action === 'block'
        ? { ...verdict, message: verdict.message ?? `Shield '${shield.name}' blocked the content.` }
        : verdict
    } catch (error) {
      const failure = `it threw: ${describeError(error)}`
      if (reportThrown === undefined) return fail(failure)
      reportThrown(toEvidence(`Shield '${shield.name}' failed: ${failure}`))
      return fail('check() threw')
    }
  }
  const limit = {
    what: 'The check',
    timeoutMs,
    clock,
    outer: signal,
    timedOut: () => fail(`check() took longer than ${timeoutMs} ms`),
    stopped: () => createStoppedAnswer(shield),
  }
  const verdict = await runWithTimeout<CheckedShieldVerdict>(limit, check)
  return { ...verdict, durationMs: Math.max(0, clock.now() - startedAt) }
}

/** The answer of a stopped check. It clears nothing, even with `failOpen`. */
function createStoppedAnswer({ name }: Shield): CheckedShieldVerdict {
  return { action: 'block', message: `Shield '${name}' was stopped before it answered.` }
}

export interface RunShieldsOptions extends ShieldScene {
  /** Aborts all checks. Unanswered checks count as blocked. */
  signal: AbortSignal
  /** The clock for timeouts and durations. Defaults to the system clock. */
  clock?: Clock
  /** The timeout for a check in milliseconds. Defaults to 10,000. */
  timeoutMs?: number
  /** Whether failing shields warn instead of blocking. Defaults to false. */
  failOpen?: boolean
}

/**
 * Checks content with all shields in parallel and combines their verdicts. The strongest verdict applies, in the order
 * block, redact, warn, allow. Exceptions, timeouts and invalid verdicts block. Never rejects. Redactions are applied in
 * list order, and each later shield that wanted to redact checks the redacted text again. If a shield objected and then
 * fails during the second check, it blocks, even with `failOpen`.
 *
 * @example
 * const { action, content } = await runShields([secretsShield()], text, { point: 'output', signal })
 */
export async function runShields(
  shields: readonly Shield[],
  content: string,
  options: RunShieldsOptions,
): Promise<Screening> {
  expectArgument('runShields(shields)', shields, listRule('a list of shields'))
  expectArgument('runShields(shields, content)', content, {
    is: (input) => typeof input === 'string',
    phrase: 'a text',
  })
  expectArgument(
    'runShields(shields, content, options)',
    options,
    objectRule(['point', 'signal'], 'an object with point and signal'),
  )
  const { clock = systemClock, timeoutMs = defaultTimeoutMs, failOpen = false, ...scene } = options
  return askShields(shields, content, { ...scene, clock, timeoutMs, failOpen })
}
