import { jest } from '@jest/globals'
import { languageModel } from '../../src/ai-sdk/index.js'
import { openaiChat, openaiResponses } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { checkProvider, type ProviderReport, formatProviderReports } from '../../src/testing/index.js'
import { packages, stateless } from './support.js'

jest.setTimeout(60_000)

const reports: Record<string, ProviderReport> = {}

/** Features without an API in the package. */
function skipFor(name: string): Record<string, string> {
  if (name.startsWith('openai v')) return { reasoning: 'OpenAI shows none of it in Chat Completions' }
  if (name === 'openai responses v2') return { 'missing usage': 'the package takes no answer without it' }
  return {}
}

it.each(Object.entries(packages))(
  'languageModel over %s keeps the contract of providers',
  async (name, make) => {
    const report = await checkProvider((url) => languageModel(make(url), stateless), startRehearsal, {
      skip: skipFor(name),
    })
    reports[name] = report
    expect(report.broken).toEqual([])
  },
)

it('built-in providers pass too, side by side', async () => {
  for (const [name, make] of Object.entries({ openaiChat, openaiResponses })) {
    const report = await checkProvider(
      (url) => make({ model: 'gpt-test', baseURL: url, apiKey: 'none' }),
      startRehearsal,
    )
    reports[name] = report
    expect(report.broken).toEqual([])
  }
  console.log(formatProviderReports(reports))
})
