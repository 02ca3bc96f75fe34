import * as fc from 'fast-check'
import type { Fit } from '../../../machines/agent/fit.js'
import { fitMessages } from '../../../src/core/context/fit-messages.js'
import { findHistoryProblem } from '../../support/history.js'
import { histories, stamped } from './histories.js'
import { sampled } from '../../support/extent.js'

const messages = stamped([
  { role: 'user', content: 'One.' },
  { role: 'assistant', content: 'Two.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'Three.' },
      { type: 'file', file: { file_id: 'f1' } },
    ],
  },
  { role: 'assistant', content: 'Four.' },
  { role: 'user', content: 'Five.' },
  { role: 'assistant', content: 'Six.' },
])

it('copies nothing without a fit', () => {
  expect(fitMessages(messages, null)).toBe(messages)
})

it('inserts the note into the user message before the gap or after it, or creates one', () => {
  const shown = (fit: Fit) => fitMessages(messages, fit).map(({ role, content }) => [role, content])
  expect(shown({ head: 1, from: 3, note: 'Note.' }).slice(0, 2)).toEqual([
    ['user', 'One.\n\nNote.'],
    ['assistant', 'Four.'],
  ])
  expect(shown({ head: 0, from: 4, note: 'Note.' })[0]).toEqual(['user', 'Note.\n\nFive.'])
  expect(shown({ head: 0, from: 3, note: 'Note.' }).slice(0, 2)).toEqual([
    ['user', 'Note.'],
    ['assistant', 'Four.'],
  ])
  expect(shown({ head: 2, from: 5, note: null })).toEqual([
    ['user', 'One.'],
    ['assistant', 'Two.'],
    ['assistant', 'Six.'],
  ])
})

it('joins user messages on both sides of the gap and in it, including parts', () => {
  expect(fitMessages(messages, { head: 1, keep: [2], from: 4, note: 'Note.' })).toEqual([
    {
      ...messages[4],
      content: [
        { type: 'text', text: 'One.' },
        { type: 'text', text: 'Note.' },
        { type: 'text', text: 'Three.' },
        { type: 'file', file: { file_id: 'f1' } },
        { type: 'text', text: 'Five.' },
      ],
    },
    messages[5],
  ])
})

it('returns the same message object as long as the fit lasts', () => {
  const fit = { head: 1, from: 3, note: 'Note.' }
  const [first] = fitMessages(messages.slice(0, 4), fit)
  expect(fitMessages(messages, fit)[0]).toBe(first)
  const others = stamped([{ role: 'user', content: 'Other.' }, ...messages.slice(1)])
  expect(fitMessages(others, fit)[0]).toMatchObject({ content: 'Other.\n\nNote.' })
})

it('does not change a transcript that the fit does not belong to', () => {
  const wild = fc.oneof(fc.integer({ min: -2, max: 30 }), fc.double(), fc.string())
  const fits = fc.record({
    head: wild,
    from: wild,
    note: fc.option(fc.string()),
    kept: fc.oneof(fc.array(wild), fc.constant(undefined), fc.string()),
  })
  fc.assert(
    fc.property(histories, fits, (history, fit) => {
      const fitted = fitMessages(history, fit as unknown as Fit)
      expect(findHistoryProblem([...fitted])).toBeNull()
    }),
    { numRuns: sampled(500) },
  )
  const within = fc.record({ head: fc.nat({ max: 8 }), from: fc.nat({ max: 20 }), note: fc.constant(null) })
  fc.assert(
    fc.property(histories, within, (history, fit) => {
      expect(findHistoryProblem([...fitMessages(history, fit)])).toBeNull()
    }),
  )
})
