import type { Screening, ShieldFinding } from '../../../machines/agent/screening.js'
import { type CallAbort, onAbort } from '../base/abort.js'
import { type Clock, systemClock } from '../base/clock.js'
import { type Answer, type Asking, askShield, stopped } from './ask-shield.js'
import { defaultTimeoutMs } from './shield-set.js'
import type { Shield, ShieldAction, ShieldScene } from './shield.js'

/**
 * What the content is about, and how long shields may look at it.
 *
 * @example
 * const options: RunShieldsOptions = { point: 'output', signal: AbortSignal.timeout(5_000), timeoutMs: 2_000, failOpen: false }
 * const { action } = await runShields([secretsShield()], 'All is well.', options)
 */
export interface RunShieldsOptions extends ShieldScene {
  /** Stops all checks; what has not answered by then counts as blocked. */
  signal: AbortSignal
  /** Default: the system's. */
  clock?: Clock
  /** Milliseconds that a check may take, for shields without a `timeoutMs` of their own. Default 10,000. */
  timeoutMs?: number
  /** True: a shield that fails warns instead of blocking. Default false. */
  failOpen?: boolean
}

/**
 * Shows a content to all shields at once, and sums up what they say: block wins over redact, redact over warn, warn
 * over allow. A shield that throws, takes too long or answers nonsense counts as a block. Never rejects.
 *
 * Several redactions are applied one after another, in list order: the first as it was made; each later shield that
 * wanted to redact is asked again about the text so far. A shield that has found something and cannot be asked again
 * blocks, even with `failOpen`.
 *
 * @example
 * const { action, content } = await runShields([secretsShield()], text, { point: 'output', signal })
 */
export async function runShields(
  shields: readonly Shield[],
  content: string,
  options: RunShieldsOptions,
): Promise<Screening> {
  const { signal, clock = systemClock, timeoutMs = defaultTimeoutMs, failOpen = false, ...scene } = options
  const running = new Set<CallAbort>()
  const ask = (shield: Shield, text: string, onFailure: Asking['onFailure']): Promise<Answer> =>
    signal.aborted
      ? Promise.resolve({ ...stopped(shield), durationMs: 0 })
      : askShield(shield, text, { scene, clock, timeoutMs, onFailure, running })

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
    return sumUp(redacted, answers)
  } finally {
    stopWaiting()
  }
}

interface Answered {
  shield: Shield
  answer: Answer
}

/** The text with all redactions; the answers of shields that were asked again are brought up to date. */
async function redactInTurn(
  content: string,
  answers: Answered[],
  askAgain: (shield: Shield, text: string) => Promise<Answer>,
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

function sumUp(content: string, answers: readonly Answered[]): Screening {
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
