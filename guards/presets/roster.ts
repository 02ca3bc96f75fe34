import { cycle } from './cycle.js'
import { failing } from './failing.js'
import { type RepeatedCallConfig, repeatedCall } from './repeated-call.js'
import { repeatedOutput } from './repeated-output.js'

/** Each is off by default and replaces rules of `progress`, so that a preset has its loop's thresholds. */
export const presetGuards = {
  /** Replaces all rules of `progress` about failures and refusals. */
  failing,
  /** Replaces `progress.stale`. */
  repeatedCall,
  /** Replaces nothing. */
  repeatedOutput,
  /** Replaces `progress.mixed`. */
  cycle,
}

export function repeatedCallSettings(config: {
  maxRepeatedToolSteps: number
  repeatedCall: RepeatedCallConfig | null
  failing: object | null
}): object | null {
  const { maxRepeatedToolSteps, repeatedCall: settings, failing: failures } = config
  return settings && { ...settings, maxRepeatedToolSteps, leavesFailures: failures != null }
}
