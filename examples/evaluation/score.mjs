/** Three scorers: two that compute, and one that asks a model. */
import { openaiChat } from 'statewright'
import { judge } from 'statewright/testing'
import { rehearsal } from './rehearsal.mjs'

export const score = {
  /** Whether the answer has what was expected in it. */
  right: ({ output }, { expected }) => output.includes(expected),

  /** From 80 characters on, an answer loses points. */
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
