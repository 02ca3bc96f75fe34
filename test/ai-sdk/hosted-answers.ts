/** An answer with a provider-executed tool, in its wire format. */
export interface HostedAnswer {
  /** Events of the stream. */
  events: object[]
  /** The same without streaming. */
  whole: object
}

interface Said {
  text: string
  /** Whether the answer calls `add`, a tool of the agent. */
  calls: boolean
  /** Whether the provider has searched; `unanswered` cuts the answer off before the result. */
  searches?: boolean | 'unanswered'
}

const found = [
  { type: 'web_search_result', url: 'https://herons.test', title: 'Herons', encrypted_content: 'Q' },
]

export function anthropicAnswer({ text, calls, searches }: Said): HostedAnswer {
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'herons' } }
  const content = [
    ...(searches ? [search] : []),
    ...(searches === true
      ? [{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: found }]
      : []),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...(calls ? [{ type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1 } }] : []),
  ]
  return anthropicMessage(content, calls ? 'tool_use' : 'end_turn', { input_tokens: 5, output_tokens: 5 })
}

/** An Anthropic answer with these blocks. */
export function anthropicMessage(content: readonly object[], stop: string, usage: object): HostedAnswer {
  const message = { type: 'message', id: 'msg_1', role: 'assistant', model: 'claude', stop_sequence: null }
  const blocks = content.flatMap((block, index) => {
    const [begun, delta] = inPieces(block)
    return [
      { type: 'content_block_start', index, content_block: begun },
      ...(delta ? [{ type: 'content_block_delta', index, delta }] : []),
      { type: 'content_block_stop', index },
    ]
  })
  return {
    whole: { ...message, content, stop_reason: stop, usage },
    events: [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
      ...blocks,
      { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ],
  }
}

/** A block at its start, and its deltas. */
function inPieces(block: object): [begun: object, delta: object | null] {
  if ('input' in block)
    return [
      { ...block, input: {} },
      { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
    ]
  if ('text' in block)
    return [
      { ...block, text: '' },
      { type: 'text_delta', text: block.text },
    ]
  if ('type' in block && block.type === 'compaction' && 'content' in block)
    return [
      { ...block, content: null },
      { type: 'compaction_delta', content: block.content },
    ]
  return [block, null]
}

/** Gemini's code execution, which has no id on the wire. */
export function geminiAnswer(text: Said): HostedAnswer {
  return geminiParts(text, [
    { executableCode: { language: 'PYTHON', code: 'print(4)' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '4' } },
  ])
}

/** A search of Gemini 3, which has an id. */
export function gemini3Answer(text: Said): HostedAnswer {
  const id = 'search-1'
  return geminiParts(text, [
    {
      toolCall: { toolType: 'GOOGLE_SEARCH_WEB', args: { queries: ['herons'] }, id },
      thoughtSignature: 'sig',
    },
    { toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', response: { found: 1 }, id }, thoughtSignature: 'sig' },
  ])
}

function geminiParts({ text, calls, searches }: Said, hosted: object[]): HostedAnswer {
  const parts = [
    ...(searches ? hosted.slice(0, searches === true ? 2 : 1) : []),
    ...(text === '' ? [] : [{ text }]),
    ...(calls ? [{ functionCall: { name: 'add', args: { a: 1 } }, thoughtSignature: 'sig' }] : []),
  ]
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 5, totalTokenCount: 10 }
  const answer = (own: object[], end: object) => ({
    candidates: [{ content: { role: 'model', parts: own }, index: 0, ...end }],
    usageMetadata,
  })
  const end = { finishReason: 'STOP' }
  return {
    whole: answer(parts, end),
    events: [...parts.map((part) => answer([part], {})), answer([], end)],
  }
}

/** The length of OpenAI's ids. */
export const searchId = `ws_${'0f'.repeat(25)}`

export function responsesAnswer({ text, calls, searches }: Said): HostedAnswer {
  const search = {
    id: searchId,
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'herons' },
  }
  const output = [
    ...(searches ? [search] : []),
    ...(text === ''
      ? []
      : [
          {
            id: 'msg_1',
            type: 'message',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ]),
    ...(calls
      ? [
          {
            id: 'fc_1',
            type: 'function_call',
            status: 'completed',
            call_id: 'call_1',
            name: 'add',
            arguments: '{"a":1}',
          },
        ]
      : []),
  ]
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'gpt-5-mini',
    incomplete_details: null,
  }
  const usage = {
    input_tokens: 5,
    output_tokens: 5,
    total_tokens: 10,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  }
  const whole = { ...response, status: 'completed', output, usage }
  const items = output.flatMap((item, output_index) => [
    { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } },
    ...('content' in item
      ? [
          {
            type: 'response.output_text.delta',
            item_id: item.id,
            output_index,
            content_index: 0,
            delta: text,
          },
        ]
      : []),
    { type: 'response.output_item.done', output_index, item },
  ])
  return {
    whole,
    events: [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
      ...items,
      { type: 'response.completed', response: whole },
    ].map((event, sequence_number) => ({ ...event, sequence_number })),
  }
}
