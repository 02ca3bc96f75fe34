import type { HostedCall, ToolCallDelta } from '../provider.js'

/** What one piece of an answer adds. Both are empty when it adds nothing that is shown. */
export interface Delta {
  text: string
  reasoning: string
  /** Parts of calls, where the fold was made to tell them. */
  calls?: readonly ToolCallDelta[]
  /** Tools of the provider's own that begin or end. */
  hosted?: readonly HostedCall[]
  /** What the run is to be warned of. */
  warnings?: readonly Warning[]
}

/** As `onWarning` takes it. */
export interface Warning {
  code: string
  message: string
}

export const noDelta: Readonly<Delta> = Object.freeze({ text: '', reasoning: '' })
