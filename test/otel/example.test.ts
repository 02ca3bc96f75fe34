import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as otel from '../../src/otel/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'

describe('examples/otel.mjs', () => {
  it('shows the attempts of a run, its calls with the spans below them, and the stretch after an approval', async () => {
    jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
    jest.unstable_mockModule('statewright/otel', () => ({ ...otel }), { virtual: true })
    jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsal }), { virtual: true })
    const example = '../../examples/otel.mjs'
    const { spansOfARun } = (await import(example)) as { spansOfARun: () => Promise<string[]> }
    expect(await spansOfARun()).toEqual([
      'invoke_agent support · WAITING_FOR_INPUT',
      '  chat gpt-5-mini · server_error',
      '  chat gpt-5-mini · 80 + 12 tokens',
      '  execute_tool look_up',
      '    SELECT orders',
      '  chat gpt-5-mini · 120 + 14 tokens',
      'invoke_agent support · COMPLETED · linked to the stretch before',
      '  execute_tool refund · approved',
      '  chat gpt-5-mini · 150 + 9 tokens',
    ])
  })
})
