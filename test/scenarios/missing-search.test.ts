import { jest } from '@jest/globals'
import { memoryStore } from '../../src/index.js'
import { ManualModel } from '../support/manual-model.js'

// In a separate file, because it reloads the modules as if the package were not installed.
jest.unstable_mockModule('@orama/orama', () => {
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
})

test.each([
  ['without a store', undefined],
  ['with a store', memoryStore()],
])(
  'toolSearch without its package is refused at the start of the run, %s, and names the package to install',
  async (_, store) => {
    const { createAgent, toolSearch } = await import('../../src/index.js')
    const model = new ManualModel()
    const agent = createAgent({ model, tools: [toolSearch()], ...(store && { store }) })
    const refused = await agent.run('Go.', { session: 's' }).result.catch((error: unknown) => error)
    expect(refused).toMatchObject({ name: 'ConfigError', code: 'missing_package', subject: 'tools' })
    expect((refused as Error).message).toMatch(
      /npm install @orama\/orama\. Or pass a custom search to toolSearch/,
    )
    expect(model.attempts).toEqual([])
    expect(store?.get('s') ?? null).toBeNull()
  },
)
