import * as core from '../../src/index.js'
import * as otel from '../../src/otel/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import { loadExample, provideEntries } from '../support/entries.js'

// In a separate file, because the example sets the process-wide tracer.
describe('examples/otel.mjs', () => {
  it('shows the attempts of a run, its calls with their child spans, and the segment after an approval', async () => {
    provideEntries({ statewright: core, 'statewright/otel': otel, 'statewright/rehearsal': rehearsal })
    const { spansOfARun } = await loadExample<{ spansOfARun: () => Promise<string[]> }>('otel.mjs')
    expect(await spansOfARun()).toEqual([
      'invoke_agent support · WAITING_FOR_INPUT',
      '  chat gpt-5-mini · server_error',
      '  chat gpt-5-mini · 80 + 12 tokens',
      '  execute_tool look_up',
      '    SELECT orders',
      '  chat gpt-5-mini · 120 + 14 tokens',
      'invoke_agent support · COMPLETED · approved · linked to the stretch before',
      '  execute_tool refund',
      '  chat gpt-5-mini · 150 + 9 tokens',
    ])
  })
})
