import { classifyResponse, type ModelFailure } from '../../../machines/agent/model-response.js'
import type { AssistantMessage, MediaPart, Message, ToolCall } from '../../../machines/agent/messages.js'
import type { ToolSpec } from '../../core/models/provider.js'
import { parseJsonOr } from '../../core/base/json.js'
import { toModelFailure } from '../../core/models/to-model-failure.js'
import * as t from './ask-provider.js'

const sampleText = 'Héllo 👋 wörld — and so on.'

const add: ToolSpec = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
}

const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const picture: MediaPart = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }

const unwanted: t.ProviderTurn = { text: 'There must not be a second request.' }

const twoCalls = [
  { name: 'add', arguments: { a: 1, b: 2 } },
  { name: 'add', arguments: { a: 3, b: 4 } },
]

const check = (turns: t.ProviderTurn[], run: t.ProviderCheckSpec['run']): t.ProviderCheckSpec => ({
  turns,
  run,
})
const streamed: typeof check = (turns, run) => ({ turns, run, only: 'stream' })

export const answerChecks: Readonly<Record<string, t.ProviderCheckSpec>> = {
  text: check([{ text: sampleText, chunkSize: 3 }], async (scene) => {
    const { response, text, pieces, activity } = await t.ask(scene)
    t.same('the text', response.text, sampleText)
    t.same('the kind of response', classifyResponse(response), 'answer')
    t.same('complete', response.complete, true)
    t.same('the calls', response.toolCalls, [])
    t.ok(activity > 0, 'onActivity must be called when content arrives')
    const isStreamAsked = Boolean(scene.server.requests[0]?.body.stream)
    t.same(`whether the server was asked to stream`, isStreamAsked, scene.stream)
    if (!scene.stream) return
    t.same('the text passed to onDelta', text, sampleText)
    t.ok(pieces > 3, `a streamed answer must arrive in several chunks, not ${pieces}`)
  }),
  'text in chunks of one byte': streamed([{ text: sampleText, split: 'bytes' }], async (scene) => {
    t.same('the text', (await t.ask(scene)).response.text, sampleText)
  }),
  reasoning: check([{ reasoning: 'Let me think.', text: 'So.' }], async (scene) => {
    const { response, reasoning } = await t.ask(scene)
    t.same('the text', response.text, 'So.')
    t.same('the reasoning', response.reasoning, 'Let me think.')
    if (scene.stream) t.same('the reasoning passed to onDelta', reasoning, 'Let me think.')
  }),
  'calls in parallel': check([{ text: 'Let me see.', toolCalls: twoCalls, chunkSize: 4 }], async (scene) => {
    const { response } = await t.ask(scene, { tools: [add] })
    t.same('the text', response.text, 'Let me see.')
    t.same('the kind of response', classifyResponse(response), 'calls')
    t.same('the calls', toPlainCalls(response.toolCalls), twoCalls)
    const ids = new Set(response.toolCalls.map(({ id }) => id))
    t.ok(ids.size === 2, 'each call needs a unique id')
    t.same('the tools sent to the server', listOfferedTools(scene), ['add'])
  }),
  'empty arguments': check([{ toolCalls: [{ name: 'add' }] }], async (scene) => {
    const { response } = await t.ask(scene, { tools: [add] })
    t.same('the calls', toPlainCalls(response.toolCalls), [{ name: 'add', arguments: {} }])
  }),
  'results and the messages sent after them': check(
    [{ reasoning: 'Two sums.', text: 'Let me see.', toolCalls: twoCalls }, { text: 'Done.' }],
    async (scene) => {
      const first = await t.ask(scene, { tools: [add] })
      const answer = toMessage(first)
      const results = toResults(answer, ['3', '7'])
      const second = await t.ask(scene, {
        tools: [add],
        instructions: 'Be brief.',
        messages: [t.hello, answer, ...results],
        nudges: ['Do not repeat yourself.'],
      })
      t.same('the second answer', second.response.text, 'Done.')
      const { messages } = scene.server.requests[1]?.body ?? { messages: [] }
      const roles = messages.map(({ role }) => (role === 'developer' ? 'system' : role))
      const wantedRoles = ['system', 'user', 'assistant', 'tool', 'tool', 'user']
      t.same('the roles sent to the server', roles, wantedRoles)
      const sentResults = messages.filter(({ role }) => role === 'tool')
      t.same('the results', sentResults.map(t.textOf), ['3', '7'])
      const [system, userMessage, , , , nudge] = messages.map(t.textOf)
      const texts = ['Be brief.', 'Hello?', 'Do not repeat yourself.']
      t.same('the system, user and guard messages', [system, userMessage, nudge], texts)
      const sent = messages[2]?.tool_calls ?? []
      t.same('the calls sent back', toPlainCalls(sent as ToolCall[]), twoCalls)
      const sentIds = sent.map(({ id }) => id)
      const callIds = sentResults.map((message) => message.tool_call_id)
      t.same('the call ids of the results', callIds, sentIds)
    },
  ),
  'a picture': check([{ text: 'A dot.' }], async (scene) => {
    const content = [{ type: 'text' as const, text: 'What is this?' }, picture]
    await t.ask(scene, { messages: [{ role: 'user', id: 'm1', createdAt: 0, content }] })
    const [userMessage] = scene.server.requests[0]?.body.messages ?? []
    t.same('the text next to the picture', userMessage && t.textOf(userMessage).trim(), 'What is this?')
    t.ok(
      JSON.stringify(userMessage).includes(pixel),
      `the picture should be in the message, which is ${t.show(userMessage)}`,
    )
  }),
  'a picture in a tool result': check(
    [{ toolCalls: [{ name: 'add' }] }, { text: 'A dot.' }],
    async (scene) => {
      const answer = toMessage(await t.ask(scene, { tools: [add] }))
      const [result] = toResults(answer, ['The chart:\n[image: image/png]'])
      const messages = [t.hello, answer, ...(result ? [{ ...result, media: [picture] } as Message] : [])]
      await t.ask(scene, { tools: [add], messages })
      const sent = scene.server.requests[1]?.body.messages ?? []
      const after = JSON.stringify(sent.slice(sent.findIndex(({ role }) => role === 'tool')))
      const words = 'the picture should be in the result or after it, but the message there is'
      expectIncludes(after, pixel, words)
      expectIncludes(after, 'The chart:', "the result's text should be there, but the message there is")
    },
  ),
  'a stable prefix': check(
    [{ text: 'One.', toolCalls: [{ name: 'add' }] }, { text: 'Two.' }],
    async (scene) => {
      const answer = toMessage(await t.ask(scene, { tools: [add], instructions: 'Be brief.' }))
      const messages = [t.hello, answer, ...toResults(answer, ['3'])]
      await t.ask(scene, { tools: [add], instructions: 'Be brief.', messages })
      const [before, after] = scene.server.requests.map(({ body }) => body.messages)
      t.same('the start of a request', after?.slice(0, before?.length), before)
    },
  ),
  'real-world histories': check([{ text: 'Fine.' }], async (scene) => {
    const { response } = await t.ask(scene, { messages: troubledHistory })
    t.same('the answer', response.text, 'Fine.')
  }),
  usage: check([{ text: 'Hi.', usage: { input: 100, output: 20, cached: 60 } }], async (scene) => {
    const { usage } = (await t.ask(scene)).response
    const { inputTokens, outputTokens, totalTokens, cachedInputTokens } = usage ?? {}
    const wanted = { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedInputTokens: 60 }
    t.same('the usage', { inputTokens, outputTokens, totalTokens, cachedInputTokens }, wanted)
  }),
  'missing usage': check([{ text: 'Hi.', usage: null }], async (scene) => {
    t.same('the usage', (await t.ask(scene)).response.usage, null)
  }),
  'a truncated response': check([{ text: 'Once upon', finishReason: 'length' }], async (scene) => {
    const { response } = await t.ask(scene)
    t.same('the kind of response', classifyResponse(response), 'truncated')
    t.same('the text', response.text, 'Once upon')
  }),
  'a filtered response': check([{ text: 'Once', finishReason: 'content_filter' }], async (scene) => {
    const kind = classifyResponse((await t.ask(scene)).response)
    const isRight = kind === 'filtered' || kind === 'refusal'
    t.ok(isRight, `it should be filtered or a refusal, but is ${t.show(kind)}`)
  }),
}

/** A history with problems that runs can leave behind. A provider must not send it unchanged. */
const troubledHistory: Message[] = [
  { role: 'assistant', id: 'm1', createdAt: 0, content: 'How can I help?' },
  { role: 'user', id: 'm2', createdAt: 0, content: ' ' },
  { role: 'user', id: 'm3', createdAt: 0, content: 'Half a pair: \ud83d' },
  {
    role: 'assistant',
    id: 'm4',
    createdAt: 0,
    content: null,
    tool_calls: [
      { id: 'no name/1', type: 'function', function: { name: 'what is this?', arguments: '{"a":' } },
      { id: 'c'.repeat(80), type: 'function', function: { name: 'add', arguments: '[1]' } },
    ],
  },
  { role: 'tool', id: 'm5', createdAt: 0, tool_call_id: 'no name/1', content: '' },
  { role: 'tool', id: 'm6', createdAt: 0, tool_call_id: 'c'.repeat(80), content: 'There is no such tool.' },
  { role: 'assistant', id: 'm7', createdAt: 0, content: '' },
  { role: 'user', id: 'm8', createdAt: 0, content: [{ type: 'text', text: 'Go on.' }] },
]

const toPlainCalls = (calls: readonly ToolCall[]) =>
  calls.map(({ function: { name, arguments: text } }) => ({ name, arguments: parseJsonOr(text, text) }))

function listOfferedTools({ server }: t.ProviderScene) {
  return (server.requests[0]?.body.tools ?? []).map((tool) => tool.function?.name)
}

function toMessage({ response }: t.ProviderAnswer): AssistantMessage {
  const { text, toolCalls, reasoning, reasoningDetails, providerItems } = response
  return {
    role: 'assistant',
    id: 'm2',
    createdAt: 0,
    content: text === '' ? null : text,
    tool_calls: toolCalls,
    ...(reasoning !== '' && { reasoning }),
    ...(reasoningDetails && { reasoning_details: reasoningDetails }),
    ...(providerItems && { provider_items: providerItems }),
  }
}

function toResults({ tool_calls: calls = [] }: AssistantMessage, results: string[]): Message[] {
  return calls.map(({ id }, i) => ({
    role: 'tool',
    id: `m${i + 3}`,
    createdAt: 0,
    tool_call_id: id,
    content: results[i] ?? '',
  }))
}

/** Failure checks. A provider makes a single attempt, because the loop retries. */
export const failureChecks: Readonly<Record<string, t.ProviderCheckSpec>> = {
  'a rate limit': check([{ status: 429, retryAfter: 7 }, unwanted], async (scene) => {
    await expectFailure(scene, { kind: 'rate_limit', status: 429, retryAfterMs: 7000 })
    expectAttempts(scene, 1)
  }),
  'an outage (503)': createOutage(503),
  'an outage (529)': createOutage(529),
  'a rejected key': check([{ status: 401, error: { message: 'The key is invalid.' } }], async (scene) => {
    const { message } = await expectFailure(scene, { kind: 'fatal', status: 401 })
    expectIncludes(message, 'key', 'its message should explain what to do about the key, but is')
  }),
  'a rejected request': check(
    [{ status: 400, error: { message: 'temperature: must be at most 1' } }],
    async (scene) => {
      const { kind, message } = await t.failure(scene)
      t.same('the kind of failure', kind, 'fatal')
      const words = "its message should repeat the provider's reason, but is"
      expectIncludes(message, 'temperature: must be at most 1', words)
    },
  ),
  'a request beyond the context window': check(
    [{ status: 400, error: { message: 'prompt is too long: 210000 tokens > 200000 maximum' } }],
    async (scene) => {
      t.same('the kind of failure', (await t.failure(scene)).kind, 'context_overflow')
    },
  ),
  'a broken connection': streamed(
    [{ text: 'One two three four', chunkSize: 4, cutAfter: 2 }],
    async (scene) => {
      const { kind, partialText } = await t.failure(scene)
      t.ok(kind === 'transient' || kind === 'incomplete', `it should be retried, but its kind is ${kind}`)
      t.same('the text received so far', partialText, 'One two ')
    },
  ),
  'a stream without an end': streamed([{ text: 'One two', endWithout: 'both' }], async (scene) => {
    t.same('the answer', await readOutcome(scene, () => 'incomplete'), 'incomplete')
  }),
  'an error in a stream': streamed(
    [
      {
        text: 'One two three four',
        chunkSize: 4,
        errorInStream: { after: 1, error: { type: 'overloaded_error', message: 'Overloaded' } },
      },
    ],
    async (scene) => {
      const outcome = await readOutcome(scene, (error) => toModelFailure(error).kind)
      const isTriedAgain = outcome === 'transient' || outcome === 'incomplete'
      t.ok(isTriedAgain, `it should be retried, but is ${outcome}`)
    },
  ),
  'an unreadable stream': streamed(
    [{ raw: { headers: { 'content-type': 'text/event-stream' }, body: 'data: {"broken\n\n' } }],
    async (scene) => {
      const outcome = await t.ask(scene).then(
        ({ response }) => (response.complete ? `an answer, ${t.show(response.text)}` : 'no answer'),
        () => 'no answer',
      )
      t.same('the outcome', outcome, 'no answer')
    },
  ),
  'an abort during the response': createAbort(
    { text: 'One two three four', chunkSize: 4, hang: 2 },
    'One two ',
  ),
  'an abort before the response': createAbort({ hang: true }),
  'an abort before the request': check([unwanted], async (scene) => {
    const reason = new Error('Enough.')
    await expectRejection(t.ask(scene, {}, AbortSignal.abort(reason)), reason)
    expectAttempts(scene, 0)
  }),
}

function createOutage(status: number): t.ProviderCheckSpec {
  return check([{ status }, unwanted], async (scene) => {
    await expectFailure(scene, { kind: 'transient', status })
    expectAttempts(scene, 1)
  })
}

/** Aborts a streamed response at this text, or any other as soon as the server has the request. */
function createAbort(turn: t.ProviderTurn, at?: string): t.ProviderCheckSpec {
  return check([turn], async (scene) => {
    const controller = new AbortController()
    const reason = new Error('Enough.')
    const answer = t.ask(scene, {}, controller.signal, (text) => {
      if (text === at) controller.abort(reason)
    })
    answer.catch(() => undefined)
    if (at === undefined || !scene.stream) {
      await t.until(scene, () => scene.server.requests.length > 0)
      controller.abort(reason)
    }
    await expectRejection(answer, reason)
    await t.until(scene, () => scene.server.requests[0]?.aborted === true)
  })
}

async function expectFailure(scene: t.ProviderScene, wanted: Partial<ModelFailure>): Promise<ModelFailure> {
  const failure = await t.failure(scene)
  const found = Object.keys(wanted).map((key) => [key, failure[key as keyof ModelFailure]])
  t.same('the failure', Object.fromEntries(found), wanted)
  return failure
}

function readOutcome(scene: t.ProviderScene, nameFailure: (error: unknown) => string): Promise<string> {
  return t.ask(scene).then(({ response }) => (response.complete ? 'complete' : 'incomplete'), nameFailure)
}

function expectIncludes(text: string, part: string, words: string): void {
  t.ok(text.includes(part), `${words} ${t.show(text)}`)
}

function expectAttempts({ server }: t.ProviderScene, times: number): void {
  const { length } = server.requests
  t.ok(
    length === times,
    `the server should have received ${times} requests, not ${length}, because the loop does the retries`,
  )
}

async function expectRejection(answer: Promise<unknown>, reason: Error): Promise<void> {
  const problem = await answer.then(
    () => 'it should have rejected',
    (error: unknown) =>
      error !== reason &&
      `it should have rejected with the signal's reason, but rejected with ${String(error)}`,
  )
  if (problem !== false) throw new t.CheckFailure(problem)
}
