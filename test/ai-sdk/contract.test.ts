import { jest } from '@jest/globals'
import { languageModel } from '../../src/ai-sdk/index.js'
import { openaiChat } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { checkProvider, type ProviderReport, providerTable } from '../../src/testing/index.js'
import { packages } from './support.js'

jest.setTimeout(60_000)

const reports: Record<string, ProviderReport> = {}

/** What a package's API cannot say. */
function skipFor(name: string): Record<string, string> {
  if (name.startsWith('openai v')) return { reasoning: 'OpenAI shows none of it in Chat Completions' }
  return {}
}

it.each(Object.entries(packages))(
  'languageModel over %s keeps the contract of providers',
  async (name, make) => {
    const report = await checkProvider((url) => languageModel(make(url)), startRehearsal, {
      skip: skipFor(name),
    })
    reports[name] = report
    expect(report.broken).toEqual([])
  },
)

it('so does openaiChat; all of them beside each other', async () => {
  const chat = (url: string) => openaiChat({ model: 'gpt-test', baseURL: url, apiKey: 'none' })
  reports['openaiChat'] = await checkProvider(chat, startRehearsal)
  expect(reports['openaiChat'].broken).toEqual([])
  console.log(providerTable(reports))
})
