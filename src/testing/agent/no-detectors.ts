import { progressSettings, type ProgressConfig } from '../../../guards/progress-config.js'

/** The detectors of the progress guard. */
type Detector = {
  [Key in keyof ProgressConfig]-?: null extends ProgressConfig[Key] ? Key : never
}[keyof ProgressConfig]

const detectors = Object.entries(progressSettings)
  .filter(([, setting]) => typeof setting === 'object' && 'canBeOff' in setting)
  // It tells calls apart, and detects nothing.
  .filter(([name]) => name !== 'waiting')

/** Switches all detectors of the progress guard off. */
export const noDetectors = Object.fromEntries(detectors.map(([name]) => [name, null])) as Record<
  Exclude<Detector, 'waiting'>,
  null
>
