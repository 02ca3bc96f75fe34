import { cycle } from './cycle.js'
import { failing } from './failing.js'
import { type RepeatedCallConfig, repeatedCall } from './repeated-call.js'
import { repeatedOutput } from './repeated-output.js'

/**
 * The guards of `presets`: each is off by default and takes the place of rules of `progress`, so that a preset has the
 * exact thresholds of the loop that it reproduces.
 */
export const presetGuards = {
  /** Takes the place of all that `progress` says about failures and refusals. */
  failing,
  /** Takes the place of `progress.stale`. */
  repeatedCall,
  /** Takes no part of `progress`. */
  repeatedOutput,
  /** Takes the place of `progress.mixed`. */
  cycle,
}

/** What `repeatedCall` is told: its own settings, and two keys beside them. */
export function repeatedCallSettings(config: {
  maxRepeatedToolSteps: number
  repeatedCall: RepeatedCallConfig | null
  failing: object | null
}): object | null {
  const { maxRepeatedToolSteps, repeatedCall: settings, failing: failures } = config
  return settings && { ...settings, maxRepeatedToolSteps, leavesFailures: failures != null }
}
