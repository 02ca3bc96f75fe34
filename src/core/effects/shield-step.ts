import type { Step, ShieldViolation } from '../../../machines/agent/announcements.js'
import type { Screening } from '../../../machines/agent/screening.js'
import type { StepWork } from '../live/open-steps.js'

/** What shields said, without what they said it of. */
export type ShieldReport = Omit<Screening, 'content'>
type ShieldStep = Extract<Step, { stepType: 'shield_call' }>

/** The step of a screening at one point; `pickReports` picks its reports from the actor's output. */
export function createShieldStep<Output>(
  step: Omit<ShieldStep, 'stepType'>,
  pickReports: (output: Output) => readonly ShieldReport[],
): StepWork<'shield_call', Output> {
  return {
    step: { stepType: 'shield_call', ...step },
    toEnding: (output) => ({ payload: { violation: output && findViolation(pickReports(output)) } }),
  }
}

const gravity = ['block', 'redact', 'warn'] as const

function findViolation(screenings: readonly ShieldReport[]): ShieldViolation | null {
  const action = gravity.find((one) => screenings.some((screening) => screening.action === one))
  if (action === undefined) return null
  const gravest = screenings.find((screening) => screening.action === action)
  const findings = screenings.flatMap((screening) => screening.findings)
  const objecting = findings.filter((finding) => finding.action !== 'allow').map(({ shield }) => shield)
  return { action, message: gravest?.message ?? null, shields: [...new Set(objecting)] }
}
