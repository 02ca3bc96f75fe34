import type { Screening, ShieldFinding } from '../../../machines/agent/screening.js'
import { toEvidence } from '../../../guards/lib/evidence.js'
import { truncate } from '../../../guards/lib/cut.js'
import { CallAbort, onAbort, attachSignal, runWithTimeout } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import { describeError } from '../base/errors.js'
import type { Shield, ShieldAction, ShieldScene } from './shield.js'

/** How shields are asked: `RunShieldsOptions` with every default filled in. */
export interface AskShieldsOptions extends ShieldScene {
  signal: AbortSignal
  clock: Clock
  timeoutMs: number
  failOpen: boolean
  reportThrown?: AskShieldOptions['reportThrown']
}

/** What `runShields` does. */
export async function askShields(
  shields: readonly Shield[],
  content: string,
  { signal, clock, timeoutMs, failOpen, reportThrown, ...scene }: AskShieldsOptions,
): Promise<Screening> {
  const running = new Set<CallAbort>()
  const ask = (
    shield: Shield,
    text: string,
    onFailure: AskShieldOptions['onFailure'],
  ): Promise<ShieldAnswer> =>
    signal.aborted
      ? Promise.resolve({ ...createStoppedAnswer(shield), durationMs: 0 })
      : askShield(shield, text, { scene, clock, timeoutMs, onFailure, running, reportThrown })

  const stopWaiting = onAbort(signal, () => {
    for (const abort of running) abort.abort(signal.reason)
  })
  try {
    const answers = await Promise.all(
      shields.map(async (shield) => ({
        shield,
        answer: await ask(shield, content, failOpen ? 'warn' : 'block'),
      })),
    )
    const redacted = await redactInTurn(content, answers, (shield, text) => ask(shield, text, 'block'))
    return sumUpAnswers(redacted, answers)
  } finally {
    stopWaiting()
  }
}

interface AnsweredShield {
  shield: Shield
  answer: ShieldAnswer
}

/** The text with all redactions; updates the answers of shields that were asked again. */
async function redactInTurn(
  content: string,
  answers: AnsweredShield[],
  askAgain: (shield: Shield, text: string) => Promise<ShieldAnswer>,
): Promise<string> {
  if (answers.some(({ answer }) => answer.action === 'block')) return content
  let text = content
  let isFirst = true
  for (const answered of answers) {
    const { shield, answer } = answered
    if (answer.action !== 'redact') continue
    if (isFirst) {
      text = answer.content
      isFirst = false
      continue
    }
    const again = await askAgain(shield, text)
    const durationMs = answer.durationMs + again.durationMs
    if (again.action === 'block') {
      answered.answer = { ...again, durationMs }
      return content
    }
    if (again.action === 'redact') text = again.content
    // What it says now is about a part only: its first words stay.
    answered.answer = { ...answer, durationMs }
  }
  return text
}

const weight: Record<ShieldAction, number> = { allow: 0, warn: 1, redact: 2, block: 3 }

function sumUpAnswers(content: string, answers: readonly AnsweredShield[]): Screening {
  const findings = answers.map(
    ({ shield, answer: { action, message, durationMs } }): ShieldFinding => ({
      shield: shield.name,
      action,
      message,
      durationMs,
    }),
  )
  const action = findings.reduce<ShieldAction>(
    (gravest, { action: next }) => (weight[next] > weight[gravest] ? next : gravest),
    'allow',
  )
  const words = findings.flatMap((finding) =>
    finding.action === action && finding.message !== null ? [finding.message] : [],
  )
  return { action, message: words.length > 0 ? words.join('\n') : null, content, findings }
}

/** A verdict, checked. */
type CheckedShieldVerdict =
  | { action: 'allow' | 'warn' | 'block'; message: string | null }
  | { action: 'redact'; message: string | null; content: string }

const longestMessage = 2000

/**
 * Reads what `check()` returned; a sentence about what is wrong with it when it is no verdict. A verdict with an
 * unreadable message still counts: it must not turn a block into a mere failure.
 */
function readShieldVerdict(value: unknown): CheckedShieldVerdict | { problem: string } {
  if (typeof value !== 'object' || value === null) {
    const shown =
      value === null || typeof value === 'boolean' ? String(value) : `a value of type ${typeof value}`
    return { problem: `check() returned ${shown}; ${shapes}` }
  }
  const { action, message: said, content } = value as Record<string, unknown>
  const message = typeof said === 'string' && said.trim() !== '' ? truncate(said, longestMessage) : null
  if (action === 'allow' || action === 'warn' || action === 'block') return { action, message }
  if (action !== 'redact') return { problem: `check() returned an object whose action is none; ${shapes}` }
  if (typeof content !== 'string') {
    return { problem: `check() returned a redact without the redacted text; ${shapes}` }
  }
  return { action, message, content }
}

const shapes =
  "return { action: 'allow' | 'warn' | 'block', message? } or { action: 'redact', content, message? }"

interface AskShieldOptions {
  scene: ShieldScene
  clock: Clock
  /** For shields without a limit of their own. */
  timeoutMs: number
  /** What a failed check counts as. */
  onFailure: 'warn' | 'block'
  /** The checks that run: stopping the screening aborts them. */
  running: Set<CallAbort>
  /**
   * Told what a check threw, which the message then leaves out: pages show messages of shields. Default: the message
   * has it.
   */
  reportThrown?: ((failure: string) => void) | undefined
}

type ShieldAnswer = CheckedShieldVerdict & { durationMs: number }

/** Asks one shield once. Whatever it does becomes an answer, in time; never rejects. */
async function askShield(shield: Shield, content: string, asking: AskShieldOptions): Promise<ShieldAnswer> {
  const { scene, clock, onFailure, running } = asking
  const timeoutMs = shield.timeoutMs ?? asking.timeoutMs
  const abort = new CallAbort()
  const startedAt = clock.now()
  const fail = (failure: string): CheckedShieldVerdict => ({
    action: onFailure,
    message: formatFailed(shield, failure, onFailure),
  })
  const check = async (): Promise<CheckedShieldVerdict> => {
    try {
      const said = readShieldVerdict(await shield.check(content, attachSignal({ ...scene }, abort)))
      if ('problem' in said) return fail(said.problem)
      return said.action === 'block' ? { ...said, message: said.message ?? formatRefused(shield) } : said
    } catch (error) {
      const failure = `it threw: ${describeError(error)}`
      if (asking.reportThrown === undefined) return fail(failure)
      asking.reportThrown(toEvidence(`Shield '${shield.name}' failed: ${failure}`))
      return fail('check() threw')
    }
  }
  running.add(abort)
  const limit = {
    what: 'The check',
    timeoutMs,
    clock,
    abort,
    timedOut: () => fail(`check() took longer than ${timeoutMs} ms`),
    stopped: () => createStoppedAnswer(shield),
  }
  const said = await runWithTimeout<CheckedShieldVerdict>(limit, check)
  running.delete(abort)
  return { ...said, durationMs: Math.max(0, clock.now() - startedAt) }
}

function formatRefused({ name }: Shield): string {
  return `Shield '${name}' refused the content.`
}

function formatFailed({ name }: Shield, failure: string, action: 'warn' | 'block'): string {
  const consequence =
    action === 'block'
      ? 'Content that could not be checked is blocked; repair the shield, or set failOpen to let it pass with a warning.'
      : 'The content passes unchecked (failOpen).'
  return `${toEvidence(`Shield '${name}' failed: ${failure}`).replace(/\.$/, '')}. ${consequence}`
}

/** A check that was stopped has cleared nothing, with `failOpen`, too. */
function createStoppedAnswer({ name }: Shield): CheckedShieldVerdict {
  return { action: 'block', message: `Shield '${name}' was stopped before it answered.` }
}
