import { languageModel } from '../../../src/ai-sdk/index.js'
import type { CallOptions } from '../../../src/ai-sdk/spec.js'
import { askOnce, message, sdkModel } from './sdk-model.js'

const user = message('user', { content: 'Hello.' })
const hosted = [
  { type: 'tool-input-start', id: 's1', toolName: 'web_search', providerExecuted: true },
  { type: 'tool-input-delta', id: 's1', delta: '{"query":"herons"}' },
  { type: 'tool-input-end', id: 's1' },
  {
    type: 'tool-call',
    toolCallId: 's1',
    toolName: 'web_search',
    input: '{"query":"herons"}',
    providerExecuted: true,
  },
  { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: [{ url: 'https://herons.test' }] },
]

describe.each(['v2', 'v3', 'v4'] as const)('%s', (version) => {
  const bytes = new Uint8Array([104, 105])
  const picture = {
    type: 'file',
    mediaType: 'image/png',
    data: version === 'v4' ? { type: 'data', data: bytes } : bytes,
    providerMetadata: { mine: { signature: 'sig' } },
  }

  it('provider-executed calls and generated files stay with the answer and are sent back with it', async () => {
    const sent: CallOptions[] = []
    const parts = [
      ...hosted,
      { type: 'source', sourceType: 'url', id: '1', url: 'https://herons.test' },
      { type: 'text-start', id: 't', providerMetadata: { mine: { itemId: 'a' } } },
      { type: 'text-delta', id: 't', delta: 'Herons ' },
      { type: 'text-delta', id: 't', delta: 'fish.' },
      { type: 'text-end', id: 't', providerMetadata: { mine: { phase: 'final' } } },
      picture,
    ]
    const provider = languageModel(sdkModel(parts, { version, sent }))
    const { response, deltas } = await askOnce(provider)
    expect(response).toMatchObject({
      text: 'Herons fish.',
      toolCalls: [],
      finishReason: 'stop',
      complete: true,
    })
    expect(deltas).toEqual([
      ['Herons ', ''],
      ['fish.', ''],
    ])
    const { providerItems: items, media } = response
    if (!items || !media) throw new Error('Nothing is to be sent back.')
    expect(media).toEqual([{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }])
    expect(response.annotations).toEqual([
      { type: 'url_citation', url_citation: { url: 'https://herons.test' } },
    ])
    const answer = message('assistant', { content: response.text, media, provider_items: items })
    await askOnce(provider, { messages: [user, answer, user] })
    expect(sent[1]?.prompt[1]).toEqual({
      role: 'assistant',
      content: [
        {
          type: 'tool-call',
          toolCallId: 's1',
          toolName: 'web_search',
          input: { query: 'herons' },
          providerExecuted: true,
        },
        {
          type: 'tool-result',
          toolCallId: 's1',
          toolName: 'web_search',
          output: { type: 'json', value: [{ url: 'https://herons.test' }] },
        },
        { type: 'text', text: 'Herons fish.', providerOptions: { mine: { itemId: 'a', phase: 'final' } } },
        {
          type: 'file',
          mediaType: 'image/png',
          data: version === 'v4' ? { type: 'data', data: 'aGk=' } : 'aGk=',
          providerOptions: { mine: { signature: 'sig' } },
        },
      ],
    })
  })

  it.each([true, false])('each provider-executed call is emitted once (stream: %s)', async (stream) => {
    const result = { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: 'none' }
    const unannounced = { ...result, toolCallId: 's2', toolName: 'fetch', isError: true }
    const parts = [
      ...hosted.slice(0, 4),
      { ...result, preliminary: true, result: 'searching' },
      result,
      result,
      // A call with a provider result is provider-executed, even without the mark.
      { type: 'tool-call', toolCallId: 's2', toolName: 'fetch', input: '{}' },
      unannounced,
      // Its call was in an earlier answer.
      { ...result, toolCallId: 's3' },
      { type: 'tool-result', toolCallId: 's4', result: 'of nobody knows what' },
      { type: 'tool-call', toolCallId: 's5', toolName: 'later', input: '{}', providerExecuted: true },
    ]
    const model = sdkModel(parts, { version })
    const { response, hosted: reported } = await askOnce(languageModel(model), { stream })
    expect(response.toolCalls).toEqual([])
    const item = { type: 'tool-result', toolName: 'web_search', result: 'none' }
    expect(reported).toEqual([
      { id: 's1', name: 'web_search', item: null },
      { id: 's1', name: 'web_search', item: { ...item, input: { query: 'herons' } } },
      { id: 's2', name: 'fetch', item: null },
      { id: 's2', name: 'fetch', item: { ...item, toolName: 'fetch', input: {}, isError: true } },
      { id: 's3', name: 'web_search', item: null },
      { id: 's3', name: 'web_search', item },
      { id: 's5', name: 'later', item: null },
    ])
  })

  it('a provider-executed call that waits for one of ours is sent back without its result, and otherwise omitted', async () => {
    const begun = { ...hosted[3], toolCallId: 's'.repeat(60) }
    const own = { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{}' }
    for (const parts of [[begun, own], [begun]]) {
      const sent: CallOptions[] = []
      const provider = languageModel(sdkModel(parts, { version, sent }))
      const { response } = await askOnce(provider, { stream: false })
      const answer = message('assistant', {
        content: null,
        ...(response.toolCalls.length > 0 && { tool_calls: response.toolCalls }),
        ...(response.providerItems && { provider_items: response.providerItems }),
      })
      await askOnce(provider, { messages: [user, answer] })
      const back = sent[1]?.prompt.find(({ role }) => role === 'assistant')?.content
      const ids = parts.length === 2 ? [begun.toolCallId, 'c1'].map((toolCallId) => ({ toolCallId })) : []
      expect(back ?? []).toMatchObject(ids)
      expect(back ?? []).toHaveLength(ids.length)
    }
  })

  it('an edited answer is written in full if the provider would look up the original', async () => {
    const sent: CallOptions[] = []
    const metadata = { providerMetadata: { mine: { itemId: 'a' } } }
    const parts = [
      { type: 'reasoning', text: 'Hm.', ...metadata },
      { type: 'text', text: 'The code is 4711.', ...metadata },
    ]
    const provider = languageModel(sdkModel(parts, { version, sent }))
    const { response } = await askOnce(provider, { stream: false })
    const answer = message('assistant', {
      content: 'The code is [hidden].',
      provider_items: response.providerItems ?? { from: '', items: [] },
    })
    await askOnce(provider, { messages: [user, answer, user] })
    expect(sent[1]?.prompt[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'The code is [hidden].' }],
    })
  })

  it('an edited call is sent back without its provider data, and so is its neighbor', async () => {
    const sent: CallOptions[] = []
    const signed = (id: string) => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: 'look',
      input: `{"at":"${id}"}`,
      providerMetadata: { mine: { signature: id } },
    })
    const provider = languageModel(sdkModel([signed('a'), signed('b')], { version, sent }))
    const { response } = await askOnce(provider, { stream: false })
    const calls = response.toolCalls.map((call, i) =>
      i === 0 ? { ...call, function: { name: 'look', arguments: '{"at":"[hidden]"}' } } : call,
    )
    const answer = message('assistant', {
      content: null,
      tool_calls: calls,
      ...(response.providerItems && { provider_items: response.providerItems }),
    })
    const results = calls.map(({ id }) => message('tool', { tool_call_id: id, content: 'Seen.' }))
    await askOnce(provider, { messages: [user, answer, ...results] })
    expect(sent[1]?.prompt[1]?.content).toEqual([
      { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: { at: '[hidden]' } },
      {
        type: 'tool-call',
        toolCallId: 'b',
        toolName: 'look',
        input: { at: 'b' },
        providerOptions: { mine: { signature: 'b' } },
      },
    ])
  })

  it('a call without an end is a call, so that the truncation is visible', async () => {
    const parts = [
      { type: 'tool-input-start', id: 'c1', toolName: 'add' },
      { type: 'tool-input-delta', id: 'c1', delta: '{"a": 1' },
      {
        type: 'finish',
        finishReason: version === 'v2' ? 'length' : { unified: 'length', raw: 'max' },
        usage: {},
      },
    ]
    const { response } = await askOnce(languageModel(sdkModel(parts, { version })))
    expect(response).toMatchObject({
      finishReason: 'length',
      toolCalls: [{ id: 'c1', function: { name: 'add', arguments: '{"a": 1' } }],
    })
  })

  it('reasoning has paragraphs, streamed or whole', async () => {
    const streamed = [
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-delta', id: '1', delta: 'One.' },
      { type: 'reasoning-end', id: '1' },
      { type: 'reasoning-start', id: '2' },
      { type: 'reasoning-delta', id: '2', delta: 'Two.' },
    ]
    const { response, deltas } = await askOnce(languageModel(sdkModel(streamed, { version })))
    expect(response.reasoning).toBe('One.\n\nTwo.')
    expect(deltas.map(([, reasoning]) => reasoning).join('')).toBe(response.reasoning)
    const whole = ['One.', 'Two.'].map((text) => ({ type: 'reasoning', text }))
    const again = await askOnce(languageModel(sdkModel(whole, { version })), { stream: false })
    expect(again.response.reasoning).toBe('One.\n\nTwo.')
  })

  it('a request for approval of a provider-executed tool is refused with a remedy', async () => {
    const parts = [
      ...hosted.slice(0, 4),
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 's1' },
    ]
    await expect(askOnce(languageModel(sdkModel(parts, { version })))).rejects.toMatchObject({
      failure: {
        kind: 'fatal',
        code: 'unsupported_approval',
        message: expect.stringContaining('needsApproval'),
      },
    })
  })

  it('extraBody is refused, naming providerOptions', async () => {
    await expect(
      askOnce(languageModel(sdkModel([], { version })), { extraBody: { top_k: 3 } }),
    ).rejects.toMatchObject({
      failure: {
        code: 'unsupported_option',
        message: expect.stringMatching(/extraBody\.top_k .* providerOptions/),
      },
    })
  })

  it('reasoning effort is a field of v4, a provider option of some earlier models, and a warning for others', async () => {
    const sent: CallOptions[] = []
    const sampling = { reasoningEffort: 'low' } as const
    const own = await askOnce(languageModel(sdkModel([], { version, sent })), { sampling })
    await askOnce(languageModel(sdkModel([], { version, sent, provider: 'openai.chat' })), { sampling })
    const isV4 = version === 'v4'
    expect(own.warnings).toEqual(isV4 ? [] : [expect.stringContaining('sampling.reasoningEffort is ignored')])
    expect(sent.map(({ reasoning }) => reasoning)).toEqual(isV4 ? ['low', 'low'] : [undefined, undefined])
    expect(sent[1]?.providerOptions).toEqual(isV4 ? undefined : { openai: { reasoningEffort: 'low' } })
  })

  it('other settings, tools and formats have the names of the specification', async () => {
    const sent: CallOptions[] = []
    const search = { type: 'provider', id: 'mine.search', args: { limit: 3 } }
    const provider = languageModel(sdkModel([], { version, sent }), {
      headers: { 'x-a': 'b' },
      providerOptions: { mine: { mood: 'calm' } },
      providerTools: { search },
    })
    await askOnce(provider, {
      instructions: 'Be brief.',
      nudges: ['Hurry.'],
      tools: [{ name: 'add', description: 'Adds.', parameters: { type: 'object' } }],
      toolChoice: { name: 'add' },
      sampling: {
        temperature: 0,
        topP: 1,
        maxTokens: 9,
        seed: 4,
        stop: 'END',
        presencePenalty: 1,
        frequencyPenalty: 2,
      },
      responseFormat: { name: 'out', schema: { type: 'object' }, strict: true },
    })
    expect(sent[0]).toMatchObject({
      prompt: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello.' },
            { type: 'text', text: 'Hurry.' },
          ],
        },
      ],
      tools: [
        { type: 'function', name: 'add', description: 'Adds.', inputSchema: { type: 'object' } },
        {
          type: version === 'v2' ? 'provider-defined' : 'provider',
          id: 'mine.search',
          name: 'search',
          args: { limit: 3 },
        },
      ],
      toolChoice: { type: 'tool', toolName: 'add' },
      temperature: 0,
      topP: 1,
      maxOutputTokens: 9,
      seed: 4,
      stopSequences: ['END'],
      presencePenalty: 1,
      frequencyPenalty: 2,
      responseFormat: { type: 'json', name: 'out', schema: { type: 'object' } },
      headers: { 'x-a': 'b' },
      providerOptions: { mine: { mood: 'calm' } },
    })
  })
})

it.each([
  ['v2', 'unknown', null, false],
  ['v2', 'other', 'other', true],
  ['v2', 'content-filter', 'content_filter', true],
  ['v2', 'tool-calls', 'tool_calls', true],
  ['v3', { unified: 'other' }, null, false],
  ['v3', { unified: 'other', raw: 'pause_turn' }, 'pause_turn', true],
  ['v3', { unified: 'content-filter', raw: 'refusal' }, 'refusal', true],
  ['v3', { unified: 'error' }, null, false],
  ['v4', { unified: 'interrupted' }, null, false],
  ['v4', { unified: 'length', raw: 'max_tokens' }, 'length', true],
] as const)('the end %s %j is %s, complete %s', async (version, finishReason, reason, complete) => {
  const parts = [
    { type: 'text', text: 'So.' },
    { type: 'finish', finishReason, usage: {} },
  ]
  const { response } = await askOnce(languageModel(sdkModel(parts, { version })))
  expect(response).toMatchObject({ finishReason: reason, complete })
})

it.each([
  ['v2', { inputTokens: 5, outputTokens: 3, totalTokens: 8, cachedInputTokens: 2 }, [5, 3, 2, 0]],
  ['v2', { inputTokens: 5, outputTokens: 3, totalTokens: 12, reasoningTokens: 4 }, [5, 7, 0, 4]],
  ['v3', { inputTokens: { total: 9, cacheRead: 4 }, outputTokens: { total: 3, reasoning: 1 } }, [9, 3, 4, 1]],
  [
    'v4',
    { inputTokens: { noCache: 5, cacheRead: 4 }, outputTokens: { text: 2, reasoning: 1 } },
    [9, 3, 4, 1],
  ],
] as const)('usage of %s, %j, is %j', async (version, usage, [input, output, cached, reasoning]) => {
  const finishReason = version === 'v2' ? 'stop' : { unified: 'stop', raw: 'stop' }
  const { response } = await askOnce(
    languageModel(sdkModel([{ type: 'finish', finishReason, usage }], { version })),
  )
  expect(response.usage).toMatchObject({
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    cachedInputTokens: cached,
    reasoningTokens: reasoning,
  })
})

it.each([
  [{}, null],
  [{ inputTokens: { total: undefined }, outputTokens: {} }, null],
  [undefined, null],
])('empty usage, %j, is estimated', async (usage, known) => {
  const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage }
  expect((await askOnce(languageModel(sdkModel([finish])))).response.usage).toBe(known)
})

it('options that the package omits cause a warning, and pings and empty parts are ignored', async () => {
  const warnings = [
    { type: 'unsupported', feature: 'seed' },
    { type: 'unsupported-setting', setting: 'topK', details: 'not here' },
    { type: 'other', message: 'Beware.' },
  ]
  const parts = [
    { type: 'stream-start', warnings },
    { type: 'response-metadata', modelId: 'm-1-2026' },
    { type: 'ping' },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'So.' },
    { type: 'raw', rawValue: {} },
    { type: 'of the future' },
  ]
  const { response, warnings: notices, activity } = await askOnce(languageModel(sdkModel(parts)))
  expect(notices).toEqual([
    'unsupported_setting: seed is ignored by the provider',
    'unsupported_setting: topK is ignored by the provider: not here',
    'provider_warning: Beware.',
  ])
  expect(response.model).toBe('m-1-2026')
  // Stream start, seven parts, one of them with text, and the end.
  expect(activity.filter((kind) => kind === 'content')).toHaveLength(2)
  expect(activity.filter((kind) => kind === 'keep_alive')).toHaveLength(7)
})
