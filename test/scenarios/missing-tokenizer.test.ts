import { jest } from '@jest/globals'
import { memoryStore } from '../../src/index.js'
import { ManualModel } from '../support/manual-model.js'

// In a separate file, because it reloads the modules as if the package were not installed.
jest.unstable_mockModule('gpt-tokenizer/encoding/o200k_base', () => {
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
})

test.each([
  ['without a store', undefined],
  ['with a store', memoryStore()],
])(
  'context.window without a tokenizer is refused at the start of the run, %s, and names the key',
  async (_, store) => {
    const { createAgent, presets } = await import('../../src/index.js')
    const model = new ManualModel()
    const agent = createAgent({
      model,
      ...presets.strands,
      context: { window: 1_000 },
      ...(store && { store }),
    })
    const refused = await agent.run('Go.', { session: 's' }).result.catch((error: unknown) => error)
    expect(refused).toMatchObject({ name: 'ConfigError', code: 'missing_package', subject: 'context.window' })
    expect((refused as Error).message).toMatch(
      /npm install gpt-tokenizer\. Or pass a custom tokenizer to createAgent/,
    )
    expect(model.attempts).toEqual([])
    expect(store?.get('s') ?? null).toBeNull()
  },
)
