import type { RecordContent } from './record-content.js'

/**
 * What later versions have added to the log, and which records use it. A record that uses a feature names it in `needs`,
 * and a Statewright that does not know the feature refuses the log (`newer_log`). Version 1 has none.
 */
export const logFeatures: Record<string, (record: RecordContent) => boolean> = {}

/** The features that a record uses. */
export function listFeatures(record: RecordContent): string[] {
  return Object.keys(logFeatures).filter((name) => logFeatures[name]?.(record))
}
