import { jest } from '@jest/globals'
import { type ModelProvider, type ModelResponse, openaiChat } from '../../../src/index.js'
import { startRehearsal } from '../../../src/rehearsal/index.js'
import { checkProvider, type ProviderReport, formatProviderReports } from '../../../src/testing/index.js'

jest.setTimeout(60_000)

const chat = (url: string) => openaiChat({ model: 'gpt-test', baseURL: url, apiKey: 'none' })
type Request = ModelProvider['request']

let whole: ProviderReport

beforeAll(async () => {
  whole = await checkProvider(chat, startRehearsal)
})

it('openaiChat keeps every promise, streamed and whole', () => {
  expect(whole).toMatchObject({ provider: expect.any(String), model: 'gpt-test', broken: [] })
  expect(whole.checks.map(({ name }) => name)).toEqual(expect.arrayContaining(['text', 'text, whole']))
  expect(formatProviderReports({ openaiChat: whole })).toContain(
    `${whole.checks.length} of ${whole.checks.length}`,
  )
})

/** openaiChat with one mistake. */
function mistaken(wrap: (request: Request) => Request): (url: string) => ModelProvider {
  return (url) => {
    const inner = chat(url)
    return { ...inner, request: wrap(inner.request.bind(inner)) }
  }
}

function answering(
  change: (response: ModelResponse) => Partial<ModelResponse>,
): Parameters<typeof mistaken>[0] {
  return (request) =>
    async (...input) => {
      const response = await request(...input)
      return { ...response, ...change(response) }
    }
}

const mistakes: [what: string, wrap: Parameters<typeof mistaken>[0], broken: string[]][] = [
  [
    'retries itself',
    (request) => (input, options) => request(input, options).catch(() => request(input, options)),
    ['a rate limit', 'an outage (503)', 'an outage (529)'],
  ],
  [
    'throws an empty error',
    (request) => (input, options) =>
      request(input, options).catch(() => {
        throw new Error('It failed.')
      }),
    [
      'a rate limit',
      'an outage (503)',
      'a rejected key',
      'a rejected request',
      'a request beyond the context window',
      'a broken connection',
      'an error in a stream',
      'an abort during the response',
    ],
  ],
  [
    'ignores the signal',
    (request) => (input, options) => request(input, { ...options, signal: new AbortController().signal }),
    ['an abort during the response', 'an abort before the response', 'an abort before the request'],
  ],
  [
    'emits no deltas',
    (request) => (input, options) => request(input, { ...options, onDelta: () => undefined }),
    ['text', 'reasoning'],
  ],
  [
    'does not report received bytes',
    (request) => (input, options) => request(input, { ...options, onActivity: () => undefined }),
    ['text'],
  ],
  ['never streams', (request) => (input, options) => request({ ...input, stream: false }, options), ['text']],
  [
    'treats reasoning as text',
    answering(({ text, reasoning }) => ({ text: reasoning + text, reasoning: '' })),
    ['reasoning'],
  ],
  [
    'loses the second call',
    answering(({ toolCalls }) => ({ toolCalls: toolCalls.slice(0, 1) })),
    ['calls in parallel', 'results and the messages sent after them'],
  ],
  [
    'invents arguments',
    answering(({ toolCalls }) => ({
      toolCalls: toolCalls.map((call) => ({
        ...call,
        function: { name: call.function.name, arguments: '[]' },
      })),
    })),
    ['calls in parallel', 'empty arguments'],
  ],
  ['reports no usage', answering(() => ({ usage: null })), ['usage']],
  [
    'reports tokens that the provider did not count',
    answering(() => ({
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 },
    })),
    ['usage', 'missing usage'],
  ],
  [
    'accepts every end as complete',
    answering(() => ({ complete: true, finishReason: 'stop' })),
    ['a truncated response', 'a filtered response', 'a stream without an end', 'an unreadable stream'],
  ],
  [
    'drops the history',
    (request) => (input, options) => request({ ...input, messages: input.messages.slice(0, 1) }, options),
    ['results and the messages sent after them'],
  ],
  [
    'drops the instructions and nudges',
    (request) => (input, options) => request({ ...input, instructions: null, nudges: [] }, options),
    ['results and the messages sent after them'],
  ],
  [
    'offers no tools',
    (request) => (input, options) => request({ ...input, tools: [] }, options),
    ['calls in parallel'],
  ],
  [
    'puts the time into the instructions',
    (request) => (input, options) =>
      request({ ...input, instructions: `Now: ${performance.now()}` }, options),
    ['a stable prefix'],
  ],
]

it.each(mistakes)('a provider that %s is detected', async (_what, wrap, expected) => {
  const names = new Set(whole.checks.map(({ name }) => name.replace(', whole', '')))
  const skip = Object.fromEntries(
    [...names].filter((name) => !expected.includes(name)).map((name) => [name, 'not asked']),
  )
  const { checks, broken } = await checkProvider(mistaken(wrap), startRehearsal, { skip, withinMs: 300 })
  const found = checks.filter(({ outcome }) => outcome === 'broken').map(({ name }) => name)
  expect(found).toEqual(expect.arrayContaining(expected))
  expect(broken).toHaveLength(found.length)
})

it('a provider that sends its input unchanged is detected by the requests that its server refuses', async () => {
  const naive = (url: string): ModelProvider => ({
    provider: 'naive',
    model: 'm',
    request: async ({ messages, stream }) => {
      const body = JSON.stringify({ model: 'm', messages, stream })
      const response = await fetch(`${url}/chat/completions`, { method: 'POST', body })
      throw new Error(`Status ${response.status}`)
    },
  })
  const skip = Object.fromEntries(
    whole.checks
      .map(({ name }) => [name.replace(', whole', ''), 'not asked'])
      .filter(([name]) => name !== 'real-world histories'),
  ) as Record<string, string>
  const { broken } = await checkProvider(naive, startRehearsal, { skip })
  expect(broken).toEqual([
    expect.stringMatching(/^real-world histories: the server refused a request: .*messages/),
    expect.stringMatching(/^real-world histories, whole: /),
  ])
})

it('an unknown check name is refused', async () => {
  await expect(checkProvider(chat, startRehearsal, { skip: { thinking: 'no' } })).rejects.toMatchObject({
    code: 'bad_option',
    message: expect.stringMatching(/unknown check 'thinking'\. Available: text, /),
  })
})
