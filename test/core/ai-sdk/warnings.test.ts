import { languageModel } from '../../../src/ai-sdk/index.js'
import { createAgent } from '../../../src/index.js'
import { tool } from '../../support/tools.js'
import { sdkModel } from './sdk-model.js'

test('a provider’s warning is shown once per run', async () => {
  const parts = [
    { type: 'stream-start', warnings: [{ type: 'unsupported', feature: 'seed' }] },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'wait', input: '{}' },
  ]
  const agent = createAgent({
    model: languageModel(sdkModel(parts)),
    tools: [tool('wait')],
    limits: { maxSteps: 3 },
  })
  for (const session of ['a', 'b']) {
    const run = agent.run('Go.', { session })
    const lines: string[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'warning' && event.code === 'unsupported_setting') lines.push(event.message)
    })
    expect((await run.result).steps).toBe(3)
    expect(lines).toEqual(['seed is ignored by the provider'])
  }
})
