import type { Message, AssistantMessage, MediaPart, ToolCall } from '../../../machines/agent/messages.js'
import {
  type ModelFailure,
  type ModelResponse,
  classifyResponse,
} from '../../../machines/agent/model-response.js'
import { normalizeResponse } from '../../core/models/normalize-response.js'
import { toModelFailure } from '../../core/models/to-model-failure.js'
import type { ModelProvider, ModelRequest, ToolSpec } from '../../core/models/provider.js'
import {
  CheckFailure,
  expectSame as same,
  expectTrue as ok,
  formatValue as show,
  type CheckReport,
  checkNames,
  runChecks,
  findCheckProblem,
} from '../check-assertions.js'
import { parseJsonOr } from '../../core/base/json.js'
import { optionsRule, functionRule, expectArgument } from '../../core/base/values.js'

/** The fields of a rehearsal turn that the checks use for one response from the test server. */
export interface ProviderTurn {
  text?: string | undefined
  reasoning?: string | undefined
  toolCalls?:
    | { id?: string | undefined; name: string; arguments?: Record<string, unknown> | string | undefined }[]
    | undefined
  /** Chat Completions values: `stop`, `length`, `tool_calls`, `content_filter`. */
  finishReason?: string | undefined
  /** `null` means not reported. `cached` is part of `input`. */
  usage?: { input: number; output: number; cached?: number | undefined } | null | undefined
  /** An HTTP error, with its body and `Retry-After` in seconds. */
  status?: number | undefined
  error?: { message: string; type?: string | undefined } | undefined
  retryAfter?: number | undefined
  /** Characters per delta. */
  chunkSize?: number | undefined
  /** Sends the bytes one by one. */
  split?: 'bytes' | undefined
  /** The connection breaks, or stops sending, after this many deltas. `true` means no response at all. */
  cutAfter?: number | undefined
  hang?: true | number | undefined
  /** The stream closes without an end marker. */
  endWithout?: 'both' | undefined
  /** Sends an error after this many deltas. */
  errorInStream?: { after: number; error: { message: string; type?: string | undefined } } | undefined
  /** Exact bytes to send instead of an answer. */
  raw?: { headers?: Record<string, string> | undefined; body: string } | undefined
}

/**
 * A server that plays one turn per request and records the requests. `startRehearsal` creates one for the APIs
 * of OpenAI, Anthropic and Gemini.
 */
export interface ProviderServer {
  readonly url: string
  /** The received requests, in arrival order. */
  readonly requests: readonly ServedRequest[]
  close(): Promise<void>
}

/** A received request, converted to Chat Completions. */
export interface ServedRequest {
  readonly body: {
    readonly messages: readonly ServedMessage[]
    readonly tools?:
      | readonly { readonly function?: { readonly name: string } | undefined }[]
      | null
      | undefined
    readonly stream?: boolean | null | undefined
  }
  /** Why the server rejected the request, or null. */
  readonly refused: string | null
  /** Whether the client closed the connection before the response ended. */
  readonly aborted: boolean
}

export interface ServedMessage {
  readonly role: string
  /** A text, or parts with a `text`. */
  readonly content?: string | readonly { readonly type: string }[] | null | undefined
  readonly tool_calls?:
    | readonly {
        readonly id: string
        readonly function: { readonly name: string; readonly arguments: string }
      }[]
    | null
    | undefined
  readonly tool_call_id?: string | undefined
}

function textOf({ content }: ServedMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => String(Reflect.get(part, 'text') ?? '')).join('\n')
}

interface ProviderScene {
  provider: ModelProvider
  server: ProviderServer
  stream: boolean
  over: AbortSignal
}

interface ProviderAnswer {
  response: ModelResponse
  text: string
  reasoning: string
  pieces: number
  activity: number
}

const emptyRequest: Omit<ModelRequest, 'stream'> = {
  instructions: null,
  messages: [],
  nudges: [],
  tools: [],
  sampling: {},
  extraBody: {},
}

const hello: Message = { role: 'user', id: 'm1', createdAt: 0, content: 'Hello?' }

/** Makes one request in the same way as the loop. */
async function ask(
  { provider, stream }: ProviderScene,
  request: Partial<ModelRequest> = {},
  signal: AbortSignal = new AbortController().signal,
  onText: (text: string) => void = () => undefined,
): Promise<ProviderAnswer> {
  const collected = { text: '', reasoning: '', pieces: 0, activity: 0 }
  const answer = await provider.request(
    { ...emptyRequest, messages: [hello], stream, ...request },
    {
      signal,
      onSent: () => undefined,
      onDelta: (text, reasoning) => {
        collected.text += text
        collected.reasoning += reasoning
        if (text !== '') collected.pieces += 1
        onText(collected.text)
      },
      onActivity: (kind = 'content') => {
        if (kind === 'content') collected.activity += 1
      },
    },
  )
  return { response: normalizeResponse(answer), ...collected }
}

/** The failure of a request as the loop receives it. @throws CheckFailure if it succeeds */
async function failure(scene: ProviderScene, request: Partial<ModelRequest> = {}): Promise<ModelFailure> {
  const outcome = await ask(scene, request).then(
    ({ response }) => ({ response }),
    (error: unknown) => ({ error }),
  )
  if ('error' in outcome) return toModelFailure(outcome.error)
  throw new CheckFailure(`it should have failed, but answered ${show(outcome.response.text)}`)
}

/** Polls in real time, because the checked provider has its own timers and connections. */
async function until({ over }: ProviderScene, isSo: () => boolean): Promise<void> {
  while (!isSo() && !over.aborted) await new Promise((resolve) => setTimeout(resolve, 5))
}

interface ProviderCheckSpec {
  only?: 'stream'
  turns: ProviderTurn[]
  run(scene: ProviderScene): Promise<void>
}

const sampleText = 'Héllo 👋 wörld — and so on.'

const add: ToolSpec = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
}

const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const picture: MediaPart = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }

const unwanted: ProviderTurn = { text: 'There must not be a second request.' }

const twoCalls = [
  { name: 'add', arguments: { a: 1, b: 2 } },
  { name: 'add', arguments: { a: 3, b: 4 } },
]

const check = (turns: ProviderTurn[], run: ProviderCheckSpec['run']): ProviderCheckSpec => ({
  turns,
  run,
})
const streamed: typeof check = (turns, run) => ({ turns, run, only: 'stream' })

const answerChecks: Readonly<Record<string, ProviderCheckSpec>> = {
  text: check([{ text: sampleText, chunkSize: 3 }], async (scene) => {
    const { response, text, pieces, activity } = await ask(scene)
    same('the text', response.text, sampleText)
    same('the kind of response', classifyResponse(response), 'answer')
    same('complete', response.complete, true)
    same('the calls', response.toolCalls, [])
    ok(activity > 0, 'onActivity must be called when content arrives')
    const isStreamAsked = Boolean(scene.server.requests[0]?.body.stream)
    same(`whether the server was asked to stream`, isStreamAsked, scene.stream)
    if (!scene.stream) return
    same('the text passed to onDelta', text, sampleText)
    ok(pieces > 3, `a streamed answer must arrive in several chunks, not ${pieces}`)
  }),
  'text in chunks of one byte': streamed([{ text: sampleText, split: 'bytes' }], async (scene) => {
    same('the text', (await ask(scene)).response.text, sampleText)
  }),
  reasoning: check([{ reasoning: 'Let me think.', text: 'So.' }], async (scene) => {
    const { response, reasoning } = await ask(scene)
    same('the text', response.text, 'So.')
    same('the reasoning', response.reasoning, 'Let me think.')
    if (scene.stream) same('the reasoning passed to onDelta', reasoning, 'Let me think.')
  }),
  'calls in parallel': check([{ text: 'Let me see.', toolCalls: twoCalls, chunkSize: 4 }], async (scene) => {
    const { response } = await ask(scene, { tools: [add] })
    same('the text', response.text, 'Let me see.')
    same('the kind of response', classifyResponse(response), 'calls')
    same('the calls', toPlainCalls(response.toolCalls), twoCalls)
    const ids = new Set(response.toolCalls.map(({ id }) => id))
    ok(ids.size === 2, 'each call needs a unique id')
    same('the tools sent to the server', listOfferedTools(scene), ['add'])
  }),
  'empty arguments': check([{ toolCalls: [{ name: 'add' }] }], async (scene) => {
    const { response } = await ask(scene, { tools: [add] })
    same('the calls', toPlainCalls(response.toolCalls), [{ name: 'add', arguments: {} }])
  }),
  'results and the messages sent after them': check(
    [{ reasoning: 'Two sums.', text: 'Let me see.', toolCalls: twoCalls }, { text: 'Done.' }],
    async (scene) => {
      const first = await ask(scene, { tools: [add] })
      const answer = toMessage(first)
      const results = toResults(answer, ['3', '7'])
      const second = await ask(scene, {
        tools: [add],
        instructions: 'Be brief.',
        messages: [hello, answer, ...results],
        nudges: ['Do not repeat yourself.'],
      })
      same('the second answer', second.response.text, 'Done.')
      const { messages } = scene.server.requests[1]?.body ?? { messages: [] }
      const roles = messages.map(({ role }) => (role === 'developer' ? 'system' : role))
      const wantedRoles = ['system', 'user', 'assistant', 'tool', 'tool', 'user']
      same('the roles sent to the server', roles, wantedRoles)
      const sentResults = messages.filter(({ role }) => role === 'tool')
      same('the results', sentResults.map(textOf), ['3', '7'])
      const [system, userMessage, , , , nudge] = messages.map(textOf)
      const texts = ['Be brief.', 'Hello?', 'Do not repeat yourself.']
      same('the system, user and guard messages', [system, userMessage, nudge], texts)
      const sent = messages[2]?.tool_calls ?? []
      same('the calls sent back', toPlainCalls(sent as ToolCall[]), twoCalls)
      const sentIds = sent.map(({ id }) => id)
      const callIds = sentResults.map((message) => message.tool_call_id)
      same('the call ids of the results', callIds, sentIds)
    },
  ),
  'a picture': check([{ text: 'A dot.' }], async (scene) => {
    const content = [{ type: 'text' as const, text: 'What is this?' }, picture]
    await ask(scene, { messages: [{ role: 'user', id: 'm1', createdAt: 0, content }] })
    const [userMessage] = scene.server.requests[0]?.body.messages ?? []
    same('the text next to the picture', userMessage && textOf(userMessage).trim(), 'What is this?')
    ok(
      JSON.stringify(userMessage).includes(pixel),
      `the picture should be in the message, which is ${show(userMessage)}`,
    )
  }),
  'a picture in a tool result': check(
    [{ toolCalls: [{ name: 'add' }] }, { text: 'A dot.' }],
    async (scene) => {
      const answer = toMessage(await ask(scene, { tools: [add] }))
      const [result] = toResults(answer, ['The chart:\n[image: image/png]'])
      const messages = [hello, answer, ...(result ? [{ ...result, media: [picture] } as Message] : [])]
      await ask(scene, { tools: [add], messages })
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
      const answer = toMessage(await ask(scene, { tools: [add], instructions: 'Be brief.' }))
      const messages = [hello, answer, ...toResults(answer, ['3'])]
      await ask(scene, { tools: [add], instructions: 'Be brief.', messages })
      const [before, after] = scene.server.requests.map(({ body }) => body.messages)
      same('the start of a request', after?.slice(0, before?.length), before)
    },
  ),
  'real-world histories': check([{ text: 'Fine.' }], async (scene) => {
    const { response } = await ask(scene, { messages: troubledHistory })
    same('the answer', response.text, 'Fine.')
  }),
  usage: check([{ text: 'Hi.', usage: { input: 100, output: 20, cached: 60 } }], async (scene) => {
    const { usage } = (await ask(scene)).response
    const { inputTokens, outputTokens, totalTokens, cachedInputTokens } = usage ?? {}
    const wanted = { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedInputTokens: 60 }
    same('the usage', { inputTokens, outputTokens, totalTokens, cachedInputTokens }, wanted)
  }),
  'missing usage': check([{ text: 'Hi.', usage: null }], async (scene) => {
    same('the usage', (await ask(scene)).response.usage, null)
  }),
  'a truncated response': check([{ text: 'Once upon', finishReason: 'length' }], async (scene) => {
    const { response } = await ask(scene)
    same('the kind of response', classifyResponse(response), 'truncated')
    same('the text', response.text, 'Once upon')
  }),
  'a filtered response': check([{ text: 'Once', finishReason: 'content_filter' }], async (scene) => {
    const kind = classifyResponse((await ask(scene)).response)
    const isRight = kind === 'filtered' || kind === 'refusal'
    ok(isRight, `it should be filtered or a refusal, but is ${show(kind)}`)
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

function listOfferedTools({ server }: ProviderScene) {
  return (server.requests[0]?.body.tools ?? []).map((tool) => tool.function?.name)
}

function toMessage({ response }: ProviderAnswer): AssistantMessage {
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
const failureChecks: Readonly<Record<string, ProviderCheckSpec>> = {
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
      const { kind, message } = await failure(scene)
      same('the kind of failure', kind, 'fatal')
      const words = "its message should repeat the provider's reason, but is"
      expectIncludes(message, 'temperature: must be at most 1', words)
    },
  ),
  'a request beyond the context window': check(
    [{ status: 400, error: { message: 'prompt is too long: 210000 tokens > 200000 maximum' } }],
    async (scene) => {
      same('the kind of failure', (await failure(scene)).kind, 'context_overflow')
    },
  ),
  'a broken connection': streamed(
    [{ text: 'One two three four', chunkSize: 4, cutAfter: 2 }],
    async (scene) => {
      const { kind, partialText } = await failure(scene)
      ok(kind === 'transient' || kind === 'incomplete', `it should be retried, but its kind is ${kind}`)
      same('the text received so far', partialText, 'One two ')
    },
  ),
  'a stream without an end': streamed([{ text: 'One two', endWithout: 'both' }], async (scene) => {
    same('the answer', await readOutcome(scene, () => 'incomplete'), 'incomplete')
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
      ok(isTriedAgain, `it should be retried, but is ${outcome}`)
    },
  ),
  'an unreadable stream': streamed(
    [{ raw: { headers: { 'content-type': 'text/event-stream' }, body: 'data: {"broken\n\n' } }],
    async (scene) => {
      const outcome = await ask(scene).then(
        ({ response }) => (response.complete ? `an answer, ${show(response.text)}` : 'no answer'),
        () => 'no answer',
      )
      same('the outcome', outcome, 'no answer')
    },
  ),
  'an abort during the response': createAbort(
    { text: 'One two three four', chunkSize: 4, hang: 2 },
    'One two ',
  ),
  'an abort before the response': createAbort({ hang: true }),
  'an abort before the request': check([unwanted], async (scene) => {
    const reason = new Error('Enough.')
    await expectRejection(ask(scene, {}, AbortSignal.abort(reason)), reason)
    expectAttempts(scene, 0)
  }),
}

function createOutage(status: number): ProviderCheckSpec {
  return check([{ status }, unwanted], async (scene) => {
    await expectFailure(scene, { kind: 'transient', status })
    expectAttempts(scene, 1)
  })
}

/** Aborts a streamed response at this text, or any other as soon as the server has the request. */
function createAbort(turn: ProviderTurn, at?: string): ProviderCheckSpec {
  return check([turn], async (scene) => {
    const controller = new AbortController()
    const reason = new Error('Enough.')
    const answer = ask(scene, {}, controller.signal, (text) => {
      if (text === at) controller.abort(reason)
    })
    answer.catch(() => undefined)
    if (at === undefined || !scene.stream) {
      await until(scene, () => scene.server.requests.length > 0)
      controller.abort(reason)
    }
    await expectRejection(answer, reason)
    await until(scene, () => scene.server.requests[0]?.aborted === true)
  })
}

async function expectFailure(scene: ProviderScene, wanted: Partial<ModelFailure>): Promise<ModelFailure> {
  const found = await failure(scene)
  const compared = Object.keys(wanted).map((key) => [key, found[key as keyof ModelFailure]])
  same('the failure', Object.fromEntries(compared), wanted)
  return found
}

function readOutcome(scene: ProviderScene, nameFailure: (error: unknown) => string): Promise<string> {
  return ask(scene).then(({ response }) => (response.complete ? 'complete' : 'incomplete'), nameFailure)
}

function expectIncludes(text: string, part: string, words: string): void {
  ok(text.includes(part), `${words} ${show(text)}`)
}

function expectAttempts({ server }: ProviderScene, times: number): void {
  const { length } = server.requests
  ok(
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
  if (problem !== false) throw new CheckFailure(problem)
}

/** Checks are named `text` or `calls in parallel`, with the suffix `, whole` if the answer is not streamed. */
export interface ProviderReport extends CheckReport {
  provider: string
  model: string
}

/** Options for `checkProvider`. */
export interface CheckProviderOptions {
  /** Checks to skip by name, with the reason. */
  skip?: Record<string, string> | undefined
  /** The time limit per check in milliseconds. Defaults to 10,000. */
  withinMs?: number | undefined
}

/**
 * Checks a `ModelProvider` against the loop's requirements: text, reasoning, calls, usage, finish reasons, failures,
 * aborts, and histories that its server accepts. `make` creates the provider for a server URL. `serve` starts a server
 * that speaks the provider's API, such as `startRehearsal`.
 *
 * @example
 * const make = (url: string) => openaiChat({ model: 'any', baseURL: url, apiKey: 'none' })
 * const { broken } = await checkProvider(make, startRehearsal)
 * if (broken.length > 0) throw new Error(broken.join('\n'))
 *
 * @throws StatewrightError `bad_option` for a name in `skip` that no check has
 */
export async function checkProvider(
  make: (url: string) => ModelProvider,
  serve: (script: { scenario: { turns: ProviderTurn[] }; strict: true }) => Promise<ProviderServer>,
  options: CheckProviderOptions = {},
): Promise<ProviderReport> {
  expectArgument('checkProvider(make)', make, functionRule('a function that creates a provider for a URL'))
  expectArgument(
    'checkProvider(make, serve)',
    serve,
    functionRule('a function that starts a server, such as startRehearsal'),
  )
  expectArgument('checkProvider(make, serve, options)', options, optionsRule)
  const { skip = {}, withinMs = 10_000 } = options
  checkNames('skip', Object.keys(skip), Object.keys(all))
  const report: ProviderReport = { provider: '', model: '', checks: [], broken: [] }
  const checks = Object.entries(all).flatMap(([title, check]) => [
    { name: title, title, check, stream: true },
    ...(check.only === undefined ? [{ name: `${title}, whole`, title, check, stream: false }] : []),
  ])
  const findSkip = ({ title }: { title: string }) => skip[title]
  await runChecks(report, checks, findSkip, async ({ check, stream }) => {
    const problem = await findProblem(check, stream)
    return { outcome: problem === null ? 'kept' : 'broken', problem }
  })
  return report

  async function findProblem(check: ProviderCheckSpec, stream: boolean): Promise<string | null> {
    const over = new AbortController()
    const server = await serve({ scenario: { turns: check.turns }, strict: true })
    const run = async (): Promise<void> => {
      const provider = make(server.url)
      report.provider = provider.provider
      report.model = provider.model
      await check.run({ provider, server, stream, over: over.signal })
    }
    try {
      const problem = await findCheckProblem(withinMs, run())
      return findRefusal(server) ?? problem
    } finally {
      over.abort()
      await server.close()
    }
  }
}

const all = { ...answerChecks, ...failureChecks }

/** Describes the first rejected request, or returns null. A rejected request is the cause of any later failure. */
function findRefusal({ requests }: ProviderServer): string | null {
  const refused = requests.find((request) => request.refused !== null)?.refused
  return refused == null ? null : `the server refused a request: ${refused.replace(/\.$/, '')}`
}

/**
 * Formats reports side by side, with one row per check and one column per provider.
 *
 * @example
 * const make = (url: string) => openaiChat({ model: 'any', baseURL: url, apiKey: 'none' })
 * console.log(formatProviderReports({ openaiChat: await checkProvider(make, startRehearsal) }))
 */
export function formatProviderReports(reports: Readonly<Record<string, ProviderReport>>): string {
  expectArgument('formatProviderReports(reports)', reports, {
    is: (value) =>
      typeof value === 'object' &&
      value !== null &&
      Object.values(value).every((report: Partial<ProviderReport>) => Array.isArray(report?.checks)),
    phrase: 'an object that maps titles to reports',
  })
  const columns = Object.entries(reports)
  const names = [...new Set(columns.flatMap(([, { checks }]) => checks.map(({ name }) => name)))]
  const marks = { kept: 'yes', broken: 'NO', skipped: '–' }
  const cell = (report: ProviderReport, name: string) => {
    const outcome = report.checks.find((check) => check.name === name)?.outcome
    return outcome === undefined ? '' : marks[outcome]
  }
  const rows = [
    ['', ...columns.map(([title]) => title)],
    ...names.map((name) => [name, ...columns.map(([, report]) => cell(report, name))]),
    ['kept', ...columns.map(([, report]) => formatKept(report))],
  ]
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? []
  return rows
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function formatKept({ checks }: ProviderReport): string {
  const applicable = checks.filter(({ outcome }) => outcome !== 'skipped')
  return `${applicable.filter(({ outcome }) => outcome === 'kept').length} of ${applicable.length}`
}
