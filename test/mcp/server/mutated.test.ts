import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import {
  type Agent,
  type Clock,
  createAgent,
  defineAgents,
  defineTool,
  memoryStore,
  piiShield,
  StatewrightError,
  systemClock,
} from '../../../src/index.js'
import { mcpServer, type McpHandler } from '../../../src/mcp/server/index.js'
import type { SyncSessionStore } from '../../../src/stores/index.js'
import { chance } from '../../chaos/world.js'
import { sampled } from '../../support/extent.js'
import { plainAnswer, settled } from '../../support/manual-model.js'
import { type Mutated, RequestMutator, type WireRequest } from '../../support/mutate-request.js'
import { tasks } from './support.js'

/**
 * Clients call agents that pay after an approval. The server also receives copies of their requests: randomly
 * mutated, from another person, late, or at another process. No copy may cause a payment without an approval
 * by an authorized person, or a second payment. `MCP_MUTATED=SEED` plays one episode.
 */
const only = process.env['MCP_MUTATED']
const episodes = only === undefined ? Array.from({ length: sampled(64) }, (_, i) => i + 1) : [Number(only)]

/** Copies per episode, 1,600 in total. */
const copiesOfEpisode = 25

const secret = 'KOLIBRI'

/** The reader can see the owner's sessions but cannot continue them. */
const grants = {
  owner: { prefix: 'team', context: 'owner', mayContinue: true },
  reader: { prefix: 'team', context: 'reader' },
  stranger: { prefix: 'other', context: 'stranger' },
} as const
type Person = keyof typeof grants

/** Waits for another process take a fiftieth of their usual time. */
const fast: Clock = { ...systemClock, setTimeout: (fn, ms) => systemClock.setTimeout(fn, ms / 50) }

interface Effect {
  session: string
  prefix: string
  n: number
  context: unknown
}

/** An approval in a sent request, accepted or not. */
interface Approval {
  person: Person
  key: string
}

class Episode {
  readonly faults: string[] = []
  readonly effects: Effect[] = []
  readonly approvals: Approval[] = []
  /** The payments that forms have shown, by the keys of their questions. */
  readonly shown = new Map<string, number>()
  readonly store: SyncSessionStore = memoryStore()
  readonly #draw: () => number
  readonly #mutator: RequestMutator
  readonly #handlers: readonly McpHandler[]
  /** Sessions that the reader has called. The call runs with the reader's rights. */
  readonly #calledByReader = new Set<string>()
  #agent: Agent | undefined
  #calls = 0
  copies = 0

  constructor(seed: number) {
    this.#draw = chance(seed)
    this.#mutator = new RequestMutator(this.#draw, {
      'x-user': ['owner', 'reader', 'stranger', 'nobody'],
      'content-type': ['text/plain', 'application/json; charset=utf-16'],
      'mcp-method': ['tools/call', 'tasks/update', 'tasks/cancel', 'initialize'],
      'mcp-protocol-version': ['2025-06-18', '2025-11-25', '2026-07-28', '1999-01-01'],
      origin: ['https://evil.example', 'http://localhost'],
      'mcp-session-id': ['1'],
    })
    this.#handlers = [this.#start(), this.#start()]
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#draw() * items.length)] as Item
  }

  /** A process. Its provider repeats the same call ids for each message. */
  #start(): McpHandler {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object', properties: { n: { type: 'number' } } },
      needsApproval: true,
      execute: (input, { sessionId, context }) => {
        const prefix = sessionId.split(':')[0] ?? ''
        const { n } = input as { n: number }
        this.effects.push({ session: sessionId, prefix, n, context })
        return `${prefix === 'team' ? secret : 'payment'} ${n}`
      },
    })
    const model = {
      provider: 'script',
      model: 'script-1',
      request: ({ messages }: { messages: readonly { role: string; content?: unknown }[] }) => {
        const last = messages.at(-1)
        if (last?.role === 'tool')
          return Promise.resolve({ ...plainAnswer, text: `Done: ${String(last.content)}` })
        const toolCalls = [0, 1].map((i) => ({
          id: `call_${i}`,
          type: 'function' as const,
          function: { name: 'pay', arguments: JSON.stringify({ n: ++this.#calls }) },
        }))
        return Promise.resolve({ ...plainAnswer, text: '', toolCalls, finishReason: 'tool_calls' })
      },
    }
    const agents = defineAgents({
      payer: createAgent({
        model,
        store: this.store,
        tools: [pay],
        shields: { input: [piiShield()] },
        clock: fast,
      }),
    })
    this.#agent = agents.get('payer').agent as unknown as Agent
    return mcpServer({
      agents,
      authorize: (request) => grants[request.headers.get('x-user') as Person],
      pollMs: 10,
      maxBodyBytes: 100_000,
      onError: (error) => {
        const isTyped =
          error instanceof StatewrightError || (error as Error).constructor.name.endsWith('Error')
        if (!isTyped || error instanceof TypeError || error instanceof RangeError)
          this.faults.push(`threw ${String(error)}`)
      },
    })
  }

  /** The reader sends a call that claims to be the original call of a task. */
  async forge(request: WireRequest, taskId: string): Promise<void> {
    const [call] = readMessages(request.body)
    const params = {
      ...(call?.['params'] as object),
      name: 'payer',
      arguments: this.pick([{ message }, { message, session: taskId }, { message: 'Something else.' }]),
      requestState: JSON.stringify(this.pick([{ task: taskId }, { task: taskId, seal: '0'.repeat(32) }])),
    }
    const headers = {
      ...request.headers,
      'x-user': 'reader',
      'mcp-method': 'tools/call',
      'mcp-name': 'payer',
    }
    const body = JSON.stringify({ ...call, method: 'tools/call', params })
    await this.#deliver({ ...request, headers, body, how: ['forged'] })
  }

  /**
   * The owner approves on the command line while no process works on the session. The session waits for a
   * process that may continue it.
   */
  async approveElsewhere(session: string, key: string): Promise<void> {
    const { run } = (await this.#agent?.replay(session)) ?? {}
    const call = run?.pending?.find(({ callId }) => key.startsWith(`${callId}@`))
    if (call === undefined) return
    this.approvals.push({ person: 'owner', key })
    await this.#agent?.send(session, { type: 'approve', ...call }).catch((error: unknown) => {
      if (!(error instanceof StatewrightError)) this.faults.push(String(error))
    })
  }

  /** A client request. Mutated copies arrive first, then the request itself. */
  async send(request: WireRequest): Promise<Response> {
    this.#mutator.learn(request.body)
    for (let left = this.pick([0, 1, 2, 3]); left > 0 && this.copies < copiesOfEpisode; left -= 1) {
      this.copies += 1
      const copy = this.#mutator.mutate(request)
      const delivered = this.#deliver(copy)
      // Some arrive concurrently.
      if (this.#draw() < 0.7) await delivered
      else delivered.catch((error: unknown) => this.faults.push(String(error)))
    }
    return this.#deliver({ ...request, how: [] })
  }

  async #deliver(request: Mutated): Promise<Response> {
    this.#noteApprovals(request)
    const { method, url, headers, body } = request
    const handler = this.pick(this.#handlers)
    const leave = new AbortController()
    const answered = handler(
      new Request(url, { method, headers, signal: leave.signal, ...(method === 'POST' && { body }) }),
    )
    const response = await this.#await(answered, request)
    const text = await this.#await(response.text(), request)
    this.#check(request, response, text)
    return new Response(text === '' ? null : text, { status: response.status, headers: response.headers })
  }

  async #await<Value>(work: Promise<Value>, { how, body }: Mutated): Promise<Value> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer to ${body.slice(0, 500)} (${how.join('; ')})`)),
        20_000,
      )
    })
    try {
      return await Promise.race([work, late])
    } finally {
      clearTimeout(timer)
    }
  }

  #noteApprovals({ headers, body }: Mutated): void {
    const person = headers['x-user']
    if (person === undefined || !Object.hasOwn(grants, person)) return
    for (const message of readMessages(body)) {
      const {
        inputResponses,
        requestState,
        arguments: args,
      } = Object(message['params']) as Record<string, unknown>
      const { session } = Object(args) as { session?: unknown }
      if (person === 'reader' && requestState === undefined)
        this.#calledByReader.add(`team:${String(session)}`)
      for (const [key, input] of Object.entries(Object(inputResponses) as object)) {
        const { action, content } = Object(input) as { action?: unknown; content?: { confirm?: unknown } }
        if (action === 'accept' && content?.confirm === true)
          this.approvals.push({ person: person as Person, key })
      }
    }
  }

  #check({ headers, how, body }: Mutated, { status }: Response, text: string): void {
    const tell = (fault: string): void => {
      this.faults.push(
        `${fault}: ${body.slice(0, 1_000)} (${how.join('; ')}) → ${status} ${text.slice(0, 500)}`,
      )
    }
    if (status >= 500) tell('a failure of the server')
    if (/\n\s+at |node_modules|\(internal\)/.test(text)) tell('a stack trace or an untyped error')
    if (!['owner', 'reader'].includes(headers['x-user'] ?? '') && text.includes(secret))
      tell('another person was shown the session')
    for (const message of readMessages(text)) {
      this.#mutator.learn(JSON.stringify(message))
      const { inputRequests = {} } = (message['result'] ?? {}) as { inputRequests?: Record<string, unknown> }
      for (const [key, question] of Object.entries(inputRequests)) {
        const { params } = question as { params: { message: string } }
        const n = Number(/The agent wants to call pay\(\{"n":(\d+)\}\)\.$/.exec(params.message)?.[1])
        if (Number.isNaN(n) || (this.shown.get(key) ?? n) !== n) tell('a form does not show its payment')
        this.shown.set(key, n)
      }
    }
  }

  /** Plays until all started work has settled. */
  async end(): Promise<void> {
    for (const { drain } of this.#handlers) await drain()
    for (let i = 0; i < 20; i += 1) await settled()
    const payments = new Map<string, number>()
    for (const { session, prefix, n, context } of this.effects) {
      const payment = `${prefix} ${n}`
      payments.set(payment, (payments.get(payment) ?? 0) + 1)
      const granted = this.approvals.filter(
        ({ person, key }) => this.shown.get(key) === n && grants[person].prefix === prefix,
      )
      if (granted.length === 0) this.faults.push(`payment ${payment} without an approval`)
      const called = this.#calledByReader.has(session) ? ['reader'] : []
      const lenders = ['owner', ...called, ...granted.map(({ person }) => grants[person].context)]
      if (prefix === 'team' && !lenders.includes(context as string))
        this.faults.push(`payment ${payment} with the rights of ${String(context)}`)
      if (prefix === 'other' && context !== 'stranger')
        this.faults.push(`payment ${payment} with rights of the team`)
    }
    for (const [payment, count] of payments)
      if (count > 1) this.faults.push(`payment ${payment} came ${count} times`)
    this.#checkTurns()
  }

  /** A call with a key starts one turn. */
  #checkTurns(): void {
    for (const { id } of this.store.list()) {
      const starts = this.store.read(id).filter(({ type }) => type === 'start')
      const calls = starts.flatMap(({ data }) => /"clientId":"(mcp-[\da-f]+-)/.exec(data)?.[1] ?? [])
      if (new Set(calls).size < calls.length) this.faults.push(`a key began two turns of ${id}`)
    }
  }
}

/** The messages of a JSON or event-stream body. */
function readMessages(text: string): Record<string, unknown>[] {
  const parts =
    text.trimStart().startsWith('event:') || text.includes('\ndata: ')
      ? [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data ?? '')
      : [text]
  return parts.flatMap((part) => {
    try {
      const value = JSON.parse(part) as unknown
      return [value]
        .flat()
        .filter((one): one is Record<string, unknown> => typeof one === 'object' && one !== null)
    } catch {
      return []
    }
  })
}

const message = 'Pay ann@example.com.'

/** A client of the official SDK. It lists tools, calls one, and answers elicitations. */
async function playSdk(episode: Episode, user: Person, era: 'auto' | 'legacy', named: object): Promise<void> {
  const capabilities: ClientCapabilities = { elicitation: { form: {} } }
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: era }, capabilities },
  )
  client.setRequestHandler('elicitation/create', () =>
    Promise.resolve({ action: 'accept' as const, content: { confirm: episode.pick([true, true, false]) } }),
  )
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
    fetch: (url, init) =>
      episode.send({
        method: init?.method ?? 'GET',
        url: String(url),
        headers: { ...Object.fromEntries(new Headers(init?.headers)), 'x-user': user },
        body: typeof init?.body === 'string' ? init.body : '',
      }),
  })
  try {
    await client.connect(transport)
    await client.callTool({ name: 'payer', arguments: { message, ...named } })
  } catch {
    // A copy has cancelled the run or taken the session.
  }
  await client.close()
}

const clientCapabilities = { elicitation: { form: {} }, extensions: { [tasks]: {} } }

/** A client with task support, which the SDK lacks. */
async function playTasks(episode: Episode, user: Person, named: object, key?: string): Promise<void> {
  const createRequest = (method: string, params: Record<string, unknown>): WireRequest => {
    const name = params['taskId'] ?? params['name']
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': clientCapabilities,
      ...(key !== undefined && { 'statewright/key': key }),
    }
    return {
      method: 'POST',
      url: 'http://localhost/mcp',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        'mcp-name': String(name),
        'x-user': user,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
    }
  }
  const ask = async (method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> => {
    const response = await episode.send(createRequest(method, params))
    return ((await response.json()) as { result?: Record<string, unknown> }).result ?? {}
  }
  const call = { name: 'payer', arguments: { message, ...named } }
  const { taskId } = await ask('tools/call', call)
  if (typeof taskId !== 'string') return
  for (let looks = 0; looks < 20; looks += 1) {
    const { status, inputRequests } = await ask('tasks/get', { taskId })
    if (status === 'completed' || status === 'cancelled') break
    const keys = Object.keys(Object(inputRequests) as object)
    const answer = { action: 'accept', content: { confirm: true } }
    const inputResponses = Object.fromEntries(keys.slice(0, episode.pick([1, 2])).map((one) => [one, answer]))
    const isOwn = user === 'owner' && !taskId.includes('~')
    if (isOwn && episode.pick([true, false, false])) {
      for (const one of keys) await episode.approveElsewhere(`team:${taskId}`, one)
      await episode.forge(createRequest('tools/call', { name: 'payer' }), taskId)
    } else if (keys.length > 0) await ask('tasks/update', { taskId, inputResponses })
  }
  await ask('tools/call', call)
  if (episode.pick([true, false])) await ask('tasks/cancel', { taskId })
}

async function play(seed: number): Promise<Episode> {
  const episode = new Episode(seed)
  for (let turns = 0; episode.copies < copiesOfEpisode && turns < 40; turns += 1) {
    const user = episode.pick(['owner', 'owner', 'reader', 'stranger'] as const)
    const named = episode.pick([{}, { session: 's' }, { session: 't' }])
    if (episode.pick([true, false]))
      await playTasks(episode, user, named, episode.pick([undefined, 'k1', 'k2']))
    else await playSdk(episode, user, episode.pick(['auto', 'auto', 'legacy'] as const), named)
  }
  await episode.end()
  return episode
}

test('no mutated request has an effect without a grant, and each approval has one effect', async () => {
  const faults: string[] = []
  const totals = { copies: 0, payments: 0 }
  for (const seed of episodes) {
    const episode = await play(seed)
    faults.push(...new Set(episode.faults.map((fault) => `seed ${seed}: ${fault}`)))
    totals.copies += episode.copies
    totals.payments += episode.effects.length
  }
  expect(faults).toEqual([])
  // Mutations without any effect would make the test meaningless.
  expect(totals.copies).toBe(episodes.length * copiesOfEpisode)
  if (only === undefined) expect(totals.payments).toBeGreaterThan(episodes.length)
}, 600_000)
