import type { Elicitation } from '../../machines/agent/run-result.js'
import { Ask, findAsked } from '../../src/core/tools/tool-outcomes.js'
import { tool } from './tools.js'

/** A form elicitation from a tool's server. */
export const seat: Elicitation = {
  server: 'airline',
  message: 'Which seat?',
  mode: 'form',
  schema: {
    type: 'object',
    properties: {
      seat: { type: 'string', title: 'Seat', minLength: 2 },
      meals: { type: 'integer', minimum: 0, maximum: 2 },
      class: { type: 'string', enum: ['eco', 'biz'], default: 'eco' },
      insured: { type: 'boolean' },
    },
    required: ['seat'],
  },
}

/** A URL elicitation. */
export const page: Elicitation = {
  server: 'airline',
  message: 'Sign the form.',
  mode: 'url',
  url: 'https://air.example/sign',
}

/** A valid value for `seat`. */
export const accepted = { action: 'accept', content: { seat: '12A' } } as const

/** A tool that asks before it acts. `does` lists its actions with the answers. */
export function book(asks: readonly Elicitation[] = [seat]) {
  const does: unknown[] = []
  const booking = tool('book', (input, execution) => {
    const question = findAsked(execution)
    if (question === undefined) return new Ask(asks, { flight: input['flight'] ?? null })
    does.push([question.memo, ...question.answers.map((answer) => JSON.parse(answer ?? 'null') as unknown)])
    return 'booked'
  })
  return Object.assign(booking, { does })
}
