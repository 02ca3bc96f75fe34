/** What one piece of an answer adds. Both are empty when it adds nothing that is shown. */
export interface Delta {
  text: string
  reasoning: string
}

export const noDelta: Readonly<Delta> = Object.freeze({ text: '', reasoning: '' })
