import { progressSettings, type ProgressConfig } from '../../../guards/progress-config.js'

/** What the progress guard can be told to watch for. */
type Detector = {
  [Key in keyof ProgressConfig]-?: null extends ProgressConfig[Key] ? Key : never
}[keyof ProgressConfig]

const detectors = Object.entries(progressSettings)
  .filter(([, setting]) => typeof setting === 'object' && 'canBeOff' in setting)
  // It tells calls apart, and detects nothing.
  .filter(([name]) => name !== 'waiting')

/** The progress guard watches for nothing; switch on again what a test is about. */
export const noDetectors = Object.fromEntries(detectors.map(([name]) => [name, null])) as Record<
  Exclude<Detector, 'waiting'>,
  null
>
