import type { HostedCall } from '../provider.js'

/** What one piece of an answer adds. Both are empty when it adds nothing that is shown. */
export interface Delta {
  text: string
  reasoning: string
  /** Tools of the provider's own that begin or end. */
  hosted?: readonly HostedCall[]
}

export const noDelta: Readonly<Delta> = Object.freeze({ text: '', reasoning: '' })
