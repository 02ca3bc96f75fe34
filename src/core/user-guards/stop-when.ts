import type { GuardedResult } from './guard.js'

/** What `stopWhen` is asked about. */
export interface StopQuestion {
  /** How the calls of the last response have ended, in call order. Those that only loaded their tool are left out. */
  readonly results: readonly GuardedResult[]
  /** The steps of the run so far; 1 after the first response. */
  readonly step: number
  /** The app's own object, as it was handed to the run. */
  readonly context: unknown
}

/**
 * Whether the run ends with the results of the last calls: asked once a batch. True: the last result that is a success is
 * the output.
 *
 * @example
 * const stopWhen: StopWhen = ({ results }) => results.some(({ name, status }) => name === 'book' && status === 'ok')
 * createAgent({ model, tools, stopWhen })
 */
export type StopWhen = (question: StopQuestion) => boolean | Promise<boolean>
