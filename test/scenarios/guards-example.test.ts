import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'

interface Guarded {
  log: string[]
  state: string
  reason: string
  message: string
}

describe('examples/guards.mjs', () => {
  it('refuses a file outside its folder, and pauses at a payment that the policy does not allow', async () => {
    jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
    jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal }), { virtual: true })
    const example = '../../examples/guards.mjs'
    const { guarded } = (await import(example)) as { guarded: () => Promise<Guarded> }
    expect(await guarded()).toEqual({
      log: [
        'block: writes-inside: write_file({"path":"../.bashrc","text":"alias ls=rm"})',
        'write_file: blocked: Not executed: Files are written inside out only.',
        'write_file: ok: Would have written report.txt.',
        'pay: ok: Would have paid 60 to printer.',
        'halt: payment-policy: 130 asked for, 60 paid before',
        'pay: not_executed: Not executed: a guardrail stopped the run (user_guard).',
      ],
      state: 'PAUSED',
      reason: 'user_guard',
      message:
        "Guard 'payment-policy' stopped the run: Ada may spend 100 in one turn. Approve more, then resume.",
    })
  })
})
