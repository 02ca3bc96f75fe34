import type { Screening, ShieldFinding } from '../../../machines/agent/screening.js'
import { type CallAbort, onAbort } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import { type ShieldAnswer, type AskShieldOptions, askShield, createStoppedAnswer } from './ask-shield.js'
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
