import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import { longTest } from '../support/extent.js'
import { loadExample, provideEntries } from '../support/entries.js'

interface Row {
  guards: string
  requests: number
  searches: number
  tokens: number
  state: string
  reason: string
}

describe('examples/runaway.mjs', () => {
  longTest('shows what a model that repeats itself costs under each configuration', async () => {
    provideEntries({ statewright: core, 'statewright/rehearsal': rehearsal })
    const { runaway } = await loadExample<{ runaway: () => Promise<Row[]> }>('runaway.mjs')
    const rows = await runaway()
    expect(
      rows.map(({ guards, requests, searches, state, reason }) => [
        guards,
        requests,
        searches,
        state,
        reason,
      ]),
    ).toEqual([
      ['no guards', 200, 200, 'MAX_STEPS', 'max_steps'],
      ['defaults', 22, 5, 'PAUSED', 'no_progress'],
      ['aar', 4, 3, 'ERROR', 'repeated_call'],
      ['openhuman', 4, 3, 'PAUSED', 'repeated_call'],
      ['openhumanTask', 4, 3, 'PAUSED', 'repeated_call'],
      ['llamaStack', 10, 10, 'MAX_STEPS', 'max_steps'],
      ['strands', expect.any(Number), expect.any(Number), 'BUDGET_EXCEEDED', 'token_budget'],
    ])
    const tokens = Object.fromEntries(rows.map((row) => [row.guards, row.tokens]))
    expect(tokens['no guards']).toBeGreaterThan(50 * (tokens.defaults ?? Infinity))
    expect(tokens.strands).toBeGreaterThanOrEqual(20_000)
  })
})
