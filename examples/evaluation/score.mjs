/** Three scorers. Two compute the score, and one asks a model. */
import { openaiChat } from 'statewright'
import { judge } from 'statewright/testing'
import { rehearsal } from './rehearsal.mjs'

export const score = {
  /** Whether the answer contains the expected text. */
  right: ({ output }, { expected }) => output.includes(expected),

  /** An answer of more than 80 characters loses points. */
  short: ({ output }) => {
    const points = Math.min(1, Math.max(0, 1 - (output.length - 80) / 80))
    return { score: points, why: `${output.length} characters` }
  },

  polite: judge({
    model: openaiChat({ model: 'rehearsal/judge', baseURL: rehearsal.url }),
    prices: { 'rehearsal/judge': { inputPerMillion: 2, outputPerMillion: 8 } },
    rubric: 'The answer is friendly. One that only says "no" or "unknown" is not.',
  }),
}
