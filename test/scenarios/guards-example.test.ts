import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import { loadExample, provideEntries } from '../support/entries.js'

interface Guarded {
  log: string[]
  state: string
  reason: string
  message: string
}

describe('examples/guards.mjs', () => {
  it('refuses a file outside its folder, and pauses at a payment that the policy forbids', async () => {
    provideEntries({ statewright: core, 'statewright/rehearsal': rehearsal })
    const { guarded } = await loadExample<{ guarded: () => Promise<Guarded> }>('guards.mjs')
    expect(await guarded()).toEqual({
      log: [
        'block: writes-inside: write_file({"path":"../.bashrc","text":"alias ls=rm"})',
        'write_file: blocked: Not executed: Write files only inside out.',
        'write_file: ok: Would have written report.txt.',
        'pay: ok: Would have paid 60 to printer.',
        'halt: payment-policy: 130 requested, 60 already paid',
        'pay: not_executed: Not executed: a guardrail stopped the run (user_guard).',
      ],
      state: 'PAUSED',
      reason: 'user_guard',
      message:
        "Guard 'payment-policy' stopped the run: Ada may spend 100 in one turn. Approve more, then resume.",
    })
  })
})
