import { internalsByAgent } from '../../src/core/agent/agent-internals.js'
import { createInspector } from '@statelyai/inspect'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentContext } from '../../machines/agent/context.js'
import { listPendingCalls } from '../../machines/agent/questions.js'
import {
  type AgentEvent,
  type AgentOptions,
  createAgent,
  defineGuard,
  defineTool,
  type SessionAnswer,
  createEventFormatter,
  type ModelProvider,
  openaiChat,
  type OpenAIChatOptions,
  openaiResponses,
  type OpenAIResponsesOptions,
  patternShield,
  type SessionSnapshot,
  type Run,
  type SessionMessage,
  type Shield,
  ToolError,
  toolContent,
  type UserInput,
} from '../../src/index.js'
import type { ShieldPoint, ShieldsOptions } from '../../src/core/shields/index.js'
import { createInspectorOptions } from '../../src/diagram/index.js'
import { BudgetError, createBudget } from '../../src/fleet/index.js'
import { recordSession } from '../../src/testing/index.js'
import { type Rehearsal, startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import type { SessionStore } from '../../src/core/sessions/store/store.js'
import { createSessionData, renderShared } from '../../src/studio/export-session.js'
import { createAGUIFold } from '../../src/agui/agui-fold.js'
import { toAGUIMessages } from '../../src/agui/index.js'
import { createAnswerFold } from '../../src/ui/answer-fold.js'
import { toUIMessages, type UIMessageChunk } from '../../src/ui/index.js'
import { cli } from '../cli/support.js'
import { askingServer, httpServer, json } from '../mcp/http-server.js'
import { open } from '../mcp/support.js'
import { distant } from '../support/distant.js'
import { placesOf } from '../support/places.js'
import { tick, until } from '../support/play.js'
import { Recorded } from '../support/spans.js'
import { Engines } from './engines.js'
import { canary, type Cell, entrances, type Other, searched, type Slots } from './tables.js'

const harmless: Slots = {
  input: 'Go.',
  parts: ['See', 'this.'],
  fileName: 'a.txt',
  fileText: 'A file.',
  address: 'https://a.example/a.png',
  attachment: 'An attachment.',
  steering: 'Hurry.',
  reply: 'And then?',
  queued: '',
  aside: 'Let me see.',
  reasoning: 'Two and two.',
  callName: 'echo',
  callArguments: '{"text":"x"}',
  hostedName: 'shorten',
  hostedUrl: 'https://a.example',
  edit: 'y',
  rejection: '',
  toolResult: 'Echo.',
  toolError: '',
  toolMedia: {},
  progress: 'half',
  clientOutput: 'Picked.',
  mcpResult: 'Gone.',
  mcpQuestion: '',
  childWords: 'Found.',
  childFailure: '',
  answer: ['Done.'],
  refusal: '',
  providerMessage: '',
  providerCode: '',
}

/** The exits for text, by name. A match in one is a leak. */
export type Exits = Record<string, unknown>

/** Plays one cell of the table and searches for the planted text. */
export async function leaksOf(cell: Cell): Promise<{ leaks: string[]; planted: boolean }> {
  const world = new World(cell)
  try {
    await world.play()
    const exits = await world.exits()
    const leaks = Object.entries(exits).flatMap(([exit, value]) => placesOf(searched, value, exit))
    return { leaks, planted: world.isPlanted }
  } finally {
    await world.close()
  }
}

class World {
  readonly #cell: Cell
  readonly #slots: Slots
  readonly #has: (other: Other) => boolean
  readonly #events: AgentEvent[] = []
  readonly #results: unknown[] = []
  readonly #inspected: unknown[] = []
  readonly #recorded = new Recorded()
  readonly #printed: string[] = []
  readonly #requestTexts: string[] = []
  readonly #watched: unknown[] = []
  readonly #unwatch = new AbortController()
  /** They read the store, which is closed after they end. */
  readonly #watchings: Promise<void>[] = []
  #engines: Engines | undefined
  #teller: Agent | undefined
  #left: unknown
  #current: Run | undefined
  #rehearsal: Rehearsal | undefined
  #childModel: Rehearsal | undefined
  #folder: string | undefined
  #near: SessionStore | undefined
  #turns: Turn[] = []
  #silence: () => void = () => undefined
  readonly #budget = createEmptyingBudget(() => this.#waitsAt)

  constructor(cell: Cell) {
    this.#cell = cell
    this.#slots = { ...harmless, ...entrances[cell.entrance]?.plant }
    this.#has = (other) => cell.on.includes(other)
  }

  /** Whether a shield received it or a provider sent it. Otherwise the cell is not evidence. */
  get isPlanted(): boolean {
    const { points, isUnseen = false } = entrances[this.#cell.entrance] ?? { points: [] }
    return points.length === 0 || isUnseen || this.#requestTexts.some((text) => text.includes(searched))
  }

  get #scene() {
    return entrances[this.#cell.entrance]?.scene
  }

  async play(): Promise<void> {
    this.#listen()
    this.#turns = this.#script()
    this.#rehearsal = await startRehearsal({
      turns: [() => this.#turns.shift() ?? { text: this.#final }],
      onExhausted: 'loop',
    })
    this.#childModel = await startRehearsal({ turns: this.#childScript(), onExhausted: 'loop' })
    if (this.#has('the command line')) this.#folder = await mkdtemp(join(tmpdir(), 'taint-'))
    this.#near = this.#folder ? fileStore({ dir: this.#folder }) : memoryStore()
    const options = await this.#options()
    const agent = createAgent(options)
    this.#teller = createAgent(options)
    if (this.#has('driven'))
      this.#engines = new Engines(() => createAgent({ ...options, ...this.#inspecting() }))
    if (this.#engines) await this.#drive(this.#engines, options, 1, this.#input())
    else await this.#run(agent.run(this.#input(), this.#runOptions()), options)
    if (this.#scene === 'credentials') return
    // The next run drops the text left there.
    for (let i = 0; i < 20; i += 1) await tick()
    this.#left = await this.#near.inbox?.read('s')
    // The session's stored data is sent with its next run.
    this.#turns = [{ text: this.#final }]
    if (this.#engines) {
      await this.#drive(this.#engines, options, 2, 'And now?')
      await this.#engines.end()
    } else await this.#run(await this.#second(agent), options, 'the last')
  }

  async #second(agent: Agent): Promise<Run> {
    const { queued } = this.#slots
    if (queued === '') return agent.run('And now?', { session: 's', ...this.#inspecting() })
    await this.#teller?.send('s', { type: 'message', when: 'next', input: queued })
    const findSender = () => ({ context: undefined, tags: undefined })
    const stored = await internalsByAgent.get(agent)?.openStored()
    const start = await stored?.beginQueued('s', { findSender, afterStop: true })
    if (!start) throw new Error('The message waits.')
    return start()
  }

  async exits(): Promise<Exits> {
    const options = await this.#options()
    const agent = createAgent(options)
    const replayed = await agent.replay('s')
    const exits: Exits = {
      events: this.#events,
      printed: this.#printed,
      results: this.#results,
      formatted: this.#events.map(createEventFormatter({ width: 10_000 })),
      requests: this.#rehearsal?.requests.map(({ body, sent }) => [body, sent]),
      replayed: { messages: replayed.messages, run: replayed.run },
      read: (await agent.readSession('s')).toJSON(),
      listed: await options.store?.list({ children: true }),
      chat: this.#chat(replayed),
      inspected: this.#inspected,
      chart: agent.machine.config,
      spans: JSON.parse(this.#recorded.words),
      recorded: await recordSession(agent, 's'),
      watched: [this.#watched, await watchedIn(agent)],
      inbox: this.#left,
      driven: this.#engines?.returned,
      ...(await this.#ofStore(options.store as SessionStore)),
    }
    if (this.#has('forks and replays of every record')) {
      const studio = await createSessionData(options.store as SessionStore, 's')
      const rewound = await this.#rewound(agent, replayed.seq)
      Object.assign(exits, { rewound, studio, film: await renderShared(studio, { form: 'film' }) })
    }
    if (this.#folder) Object.assign(exits, await this.#ofCommands(replayed.seq))
    return exits
  }

  /** The page's data with each client, and its display after a reload. */
  #chat({ messages, run }: SessionSnapshot): unknown {
    const chunks: UIMessageChunk[] = []
    for (const protocol of ['v6', 'v7'] as const) {
      const fold = createAnswerFold({ protocol, turn: null, showsTurn: true })
      chunks.push(...this.#events.flatMap((event) => fold.handleEvent(event)), ...fold.end())
    }
    const agui = createAGUIFold({ threadId: 's', runId: 'r', history: [] })
    const aguiEvents = [
      agui.begin(),
      ...this.#events.map((event) => agui.handleEvent(event)),
      agui.end(),
    ].flat()
    return {
      chunks,
      shown: toUIMessages(messages, run?.pending),
      told: aguiEvents,
      aguiShown: toAGUIMessages(messages),
    }
  }

  async close(): Promise<void> {
    this.#silence()
    this.#unwatch.abort()
    await Promise.all(this.#watchings)
    await Promise.all([this.#rehearsal?.close(), this.#childModel?.close()])
    await this.#near?.close()
    if (this.#folder) await rm(this.#folder, { recursive: true })
    delete process.env.OPENAI_API_KEY
  }

  // The scenario.

  async #run(started: Run, options: AgentOptions, which: 'the first' | 'the last' = 'the first') {
    let run = started
    this.#follow(run)
    if (this.#scene === 'cancelled' && which === 'the first') this.#cancelWhenHeld(run)
    let replies = which === 'the first' ? 1 : 0
    for (let rests = 0; rests < 12; rests += 1) {
      await until(() => atRest.test(run.state))
      const isFinal = !/^(PAUSED|WAITING_FOR_INPUT)$/.test(run.state)
      this.#results.push(await run.result)
      if (isFinal) return
      if (this.#has('another process at each rest')) {
        run = await this.#resumed(options)
        this.#follow(run)
      }
      const { context } = run.snapshot() as { context: AgentContext }
      const moves = this.#moves
      const due = this.#due(context, () => replies-- > 0)
      if (this.#has('told from another process')) {
        const isLeft = await this.#tell(due)
        if (isLeft) {
          run = await this.#resumed(options)
          this.#follow(run)
        }
      } else for (const message of due) say(run, message)
      await until(() => this.#moves > moves)
    }
    throw new Error(`The run did not come to an end: ${run.state}`)
  }

  /** The same with each engine, without a handle. */
  async #drive(engines: Engines, options: AgentOptions, turn: number, input: UserInput): Promise<void> {
    if (turn === 1) this.#watchings.push(this.#watchSoon(options))
    const agent = createAgent(options)
    let rest = await engines.begin({ turn, input: () => input })
    for (let rests = 0; /^(PAUSED|WAITING_FOR_INPUT)$/.test(rest.state); rests += 1) {
      if (rests === 12) throw new Error(`The run did not come to an end: ${rest.state}`)
      const { snapshot } = await agent.replay('s')
      const due = this.#due((snapshot as unknown as { context: AgentContext }).context, () => false)
      const isTold = this.#has('told from another process')
      if (isTold) await this.#tell(due)
      rest = await engines.goOn(isTold ? [] : (due as SessionAnswer[]), rest.head)
    }
    const events = (await watchedIn(agent)) as AgentEvent[]
    this.#events.splice(0, Infinity, ...events)
    this.#results.push((await agent.replay('s')).run)
  }

  async #watchSoon({ store }: AgentOptions): Promise<void> {
    while (!(await store?.get('s')) && !this.#unwatch.signal.aborted) await tick()
    if (!this.#unwatch.signal.aborted) await this.#watch()
  }

  /** After the write, the waiting run needs a moment to release its session. */
  async #resumed(options: AgentOptions): Promise<Run> {
    for (let i = 0; ; i += 1) {
      try {
        return await createAgent(options).resume('s')
      } catch (error) {
        if (i >= 1_000 || (error as { code?: unknown }).code !== 'session_busy') throw error
        await tick()
      }
    }
  }

  /** The number of state changes. */
  get #moves(): number {
    return this.#events.filter(({ type }) => type === 'state_changed').length
  }

  /** The run's pending request. */
  #due(context: AgentContext, replies: () => boolean): SessionMessage[] {
    const { reply, edit, rejection, clientOutput } = this.#slots
    if (context.state === 'PAUSED') return [{ type: 'resume' }]
    if (context.reason === 'message')
      return replies() ? [{ type: 'reply', input: reply }] : [{ type: 'cancel' }]
    return listPendingCalls(context).map(({ callId, needs, hosted }): SessionMessage => {
      const isEdited = this.#has('an edit') && hosted !== true
      if (needs === 'approval' && rejection !== '') return { type: 'reject', callId, why: rejection }
      if (needs === 'approval')
        return { type: 'approve', callId, ...(isEdited && { editedInput: { text: edit } }) }
      const value = this.#scene === 'client fails' ? new Error(clientOutput) : clientOutput
      return { type: 'toolOutput', callId, value }
    })
  }

  /** Whether a process must resume the session to receive its messages. */
  async #tell(messages: readonly SessionMessage[]): Promise<boolean> {
    const statuses: (string | undefined)[] = []
    for (const message of messages) statuses.push((await this.#teller?.send('s', message))?.status)
    return statuses.some((status) => status !== 'sent')
  }

  /** When the shields start, before any clearance. */
  #cancelWhenHeld(run: Run): void {
    run.events$.subscribe((event) => {
      const isLook = event.type === 'step_started' && event.stepType === 'shield_call'
      if (isLook && event.point === this.#cell.shield?.point) run.cancel()
    })
  }

  #follow(run: Run): void {
    this.#current = run
    const next = (event: AgentEvent): void => {
      this.#events.push(event)
      if (event.type === 'run_started') void this.#watch()
    }
    run.events$.subscribe({ next, error: () => undefined })
  }

  /** As another process does, while it runs. */
  async #watch(): Promise<void> {
    const events = this.#teller?.watch('s', { until: 'end', signal: this.#unwatch.signal }) ?? []
    for await (const event of events) this.#watched.push(event)
  }

  // Its parts.

  get #final(): string {
    return this.#has('an output schema') ? '{"done":true}' : 'Fine.'
  }

  #script(): Turn[] {
    const slots = this.#slots
    if (this.#scene === 'credentials') {
      return [{ status: 401, error: { message: slots.providerMessage, code: slots.providerCode } }]
    }
    const calls = [
      { name: slots.callName, arguments: slots.callArguments },
      ...(this.#has('a client call') ? [{ name: 'pick', arguments: {} }] : []),
      ...(this.#has('a hosted approval')
        ? [{ server: 'zip', name: slots.hostedName, arguments: { url: slots.hostedUrl } }]
        : []),
      ...(this.#has('a sub-agent') ? [{ name: 'ask', arguments: { task: 'Find it.' } }] : []),
      ...(this.#has('MCP') ? [{ name: 'web_go', arguments: {} }] : []),
    ]
    const first: Turn = {
      text: slots.aside,
      reasoning: slots.reasoning,
      toolCalls: calls,
      ...(this.#scene === 'cut call' && { finishReason: 'length' }),
    }
    if (slots.refusal !== '') return [first, { refusal: slots.refusal }]
    const isObject = this.#has('an output schema')
    const planted = entrances[this.#cell.entrance]?.plant.answer
    const pieces =
      planted ?? (isObject ? ['{"done":true}'] : this.#has('an answer in pieces') ? ['Do', 'ne.'] : ['Done.'])
    return [
      first,
      ...pieces.map(
        (text, i): Turn => ({
          text,
          reasoning: slots.reasoning,
          ...(i < pieces.length - 1 && { finishReason: 'length' }),
        }),
      ),
    ]
  }

  #childScript(): Turn[] {
    const { childWords, childFailure } = this.#slots
    if (this.#scene === 'child fails') {
      return [{ status: 429, error: { message: childFailure, code: 'insufficient_quota' } }]
    }
    const looks = { name: 'look', arguments: { at: childWords } }
    return [{ text: childWords, reasoning: childWords, toolCalls: [looks] }, { text: childWords }]
  }

  #input(): UserInput {
    const { input, parts, fileName, fileText, address } = this.#slots
    const data = `data:text/plain;base64,${Buffer.from(fileText).toString('base64')}`
    return [
      { content: input },
      {
        content: [
          ...parts.map((text) => ({ type: 'text' as const, text })),
          { type: 'file', file: { filename: fileName, file_data: data } },
          { type: 'image_url', image_url: { url: address } },
        ],
      },
    ]
  }

  #runOptions() {
    const attachments = [{ name: 'note', text: this.#slots.attachment }]
    return { session: 's', attachments, ...this.#inspecting() }
  }

  #inspecting() {
    if (!this.#has('an inspector')) return {}
    const send = (event: object): void => void this.#inspected.push(event)
    const inspector = createInspector(
      { send } as never,
      createInspectorOptions({ maxText: 1e6, maxItems: 1e6 }) as never,
    )
    return { inspect: inspector.inspect }
  }

  async #options(): Promise<AgentOptions> {
    const near = this.#near as SessionStore
    return {
      model: this.#speak({
        model: 'm',
        baseURL: this.#rehearsal?.url,
        ...this.#credentials(),
        ...(this.#has('a hosted approval') && { hostedTools }),
      }),
      store: this.#has('a store that answers later') ? distant(near) : near,
      stream: !this.#has('one response instead of a stream'),
      interactive: this.#has('an interactive run'),
      retry: { maxAttempts: 1 },
      telemetry: this.#recorded.otel({ captureContent: true }),
      tools: await this.#tools(),
      shields: this.#shields(),
      limits: this.#scene === 'conclusion' ? { maxSteps: 1, onLimit: 'conclude' } : {},
      completion: { maxOutputRepairs: 1 },
      ...(this.#has('an output schema') && { output: objectSchema }),
      ...(this.#has('a window to fit') && { context: { window: 4_000, strategy: 'compact' }, tokenizer }),
      ...(this.#has('a budget that is waited for') && { budgets: [this.#budget] }),
      ...(this.#has('guards that watch') && { guardrails: watching, guards: [ownGuard] }),
    }
  }

  /** The request that must wait. If possible, after text has entered through a call. */
  get #waitsAt(): number {
    return this.#scene === 'conclusion' || this.#scene === 'credentials' ? 1 : 2
  }

  get #speak(): (options: OpenAIChatOptions & OpenAIResponsesOptions) => ModelProvider {
    return this.#has('the Responses API') || this.#has('a hosted approval') ? openaiResponses : openaiChat
  }

  #credentials(): Partial<OpenAIChatOptions & OpenAIResponsesOptions> {
    if (this.#scene !== 'credentials') return { apiKey: 'none' }
    switch (this.#cell.way) {
      case 'option':
        return { apiKey: canary }
      case 'function':
        return { apiKey: () => Promise.resolve(canary) }
      case 'environment':
        process.env.OPENAI_API_KEY = canary
        return {}
      case 'header':
        return { apiKey: 'none', headers: { 'x-gateway': canary } }
      default:
        return { apiKey: 'none', query: { access_key: canary } }
    }
  }

  #shields(): ShieldsOptions {
    const { shield } = this.#cell
    const at = (point: ShieldPoint): Shield[] => [
      ...(shield?.point === point ? [this.#shield(shield?.action ?? 'block')] : []),
      ...(this.#has('harmless shields everywhere') ? [never] : []),
    ]
    return {
      input: at('input'),
      toolInput: at('toolInput'),
      toolOutput: at('toolOutput'),
      output: at('output'),
    }
  }

  #shield(action: 'block' | 'redact'): Shield {
    const shield = patternShield({ name: 'planted', patterns: [new RegExp(canary, 'g')], action })
    return {
      ...shield,
      check: (content, question) => {
        this.#requestTexts.push(content)
        return shield.check(content, question)
      },
    }
  }

  async #tools(): Promise<NonNullable<AgentOptions['tools']>> {
    const input = { type: 'object' as const }
    const slots = this.#slots
    const described = { description: 'A tool.', input }
    const echo = defineTool({
      name: 'echo',
      ...described,
      needsApproval: this.#has('approval'),
      execute: async (_input, { progress }) => {
        progress({ [slots.progress]: slots.progress })
        if (entrances[this.#cell.entrance]?.plant.steering) {
          const steer = { type: 'steer', text: slots.steering } as const
          if (this.#has('told from another process') || this.#engines) await this.#tell([steer])
          else this.#current?.steer(slots.steering)
        }
        if (slots.toolError !== '') throw new ToolError('failed', slots.toolError)
        if (Object.keys(slots.toolMedia).length === 0) return slots.toolResult
        const { text = 'Here.', filename = 'b.txt', fileText = 'A file.' } = slots.toolMedia
        const data = new TextEncoder().encode(fileText)
        const file = { type: 'file' as const, data, mediaType: 'text/plain', filename }
        return toolContent([{ type: 'text', text }, file], { mediaOptional: true })
      },
    })
    const pick = defineTool({ name: 'pick', ...described, client: true })
    const look = defineTool({ name: 'look', ...described, execute: () => slots.childWords })
    const child = createAgent({
      model: this.#speak({ model: 'm', baseURL: this.#childModel?.url, apiKey: 'none' }),
      tools: [look],
      retry: { maxAttempts: 1 },
    })
    const ask = child.asTool({ name: 'ask', description: 'Asks.', maxSteps: 3 })
    return [
      echo,
      pick,
      ...(this.#has('a sub-agent') ? [ask] : []),
      ...(this.#has('MCP') ? await this.#mcp() : []),
    ]
  }

  async #mcp() {
    const { mcpResult, mcpQuestion } = this.#slots
    const content = [{ type: 'text', text: mcpResult }]
    const { url } = await (mcpQuestion === ''
      ? httpServer((request, response) => json(response, request, { content, _meta: { note: mcpResult } }))
      : askingServer(mcpQuestion, content))
    return (await open({ url })).tools
  }

  // The outputs.

  /** Records that hold it must be marked. The machine's state, which is never displayed, may hold it. */
  async #ofStore(store: SessionStore): Promise<Exits> {
    const exits: Exits = {}
    for (const { id } of await store.list({ children: true })) {
      // A sub-agent's shields filter its session.
      if (id !== 's') continue
      for (const { seq, type, data } of await store.read(id)) {
        if (!data.includes(searched) || type === 'snapshot' || type === 'opened') continue
        const { event } = JSON.parse(data) as { event?: { withheld?: true } }
        const isInput = type === 'start' && this.#cell.shield?.point === 'input'
        if (!isInput && event?.withheld !== true) exits[`record ${seq}`] = data
      }
    }
    return exits
  }

  async #rewound(agent: Agent, last: number): Promise<unknown[]> {
    const found: unknown[] = []
    for (let at = 1; at <= last; at += 1) {
      const { messages, run } = await agent.replay('s', { to: at })
      found.push({ at, messages, run })
    }
    const fork = await agent.fork('s', Math.ceil(last / 2))
    const { messages, run } = await agent.replay(fork)
    return [...found, { fork, messages, run }, await this.#changed(agent)]
  }

  /** The message shields also check replacement messages. */
  async #changed(agent: Agent): Promise<unknown> {
    if (this.#cell.shield?.point !== 'input') return null
    try {
      const edit = { message: 'm1', content: canary }
      const branched = await this.#branched(agent)
      return [branched, await agent.replay(await agent.fork('s', undefined, { edit }))]
    } catch (error) {
      return String(error)
    }
  }

  /** The same on a branch, in the session's branches and records. */
  async #branched(agent: Agent): Promise<unknown> {
    const id = await agent.fork('s')
    const { output, messages } = await agent.branch(id, { from: 'm1', edit: canary }).result
    await agent.run(canary, { session: id }).result
    const branches = await agent.listBranches(id)
    const replayed = await Promise.all(branches.map(({ branch }) => agent.replay(id, { branch })))
    const shown = replayed.map((one) => [one.messages, one.run])
    return [output, messages, branches, shown, await recordSession(agent, id)]
  }

  async #ofCommands(last: number): Promise<Exits> {
    await this.#near?.close()
    const at = (seq: number) => ['sessions', 'show', 's', '--at', String(seq)]
    const commands = [
      ['sessions', 'list'],
      ['sessions', 'list', '--json'],
      ['sessions', 'show', 's'],
      ['sessions', 'show', 's', '--events'],
      ['sessions', 'show', 's', '--json'],
      ['sessions', 'export', 's'],
      ['sessions', 'export', 's', '--markdown'],
      ['guards', 's'],
      ['send', 's', 'cancel'],
      ['send', 's', 'steer', 'Hurry.'],
      at(Math.max(1, Math.floor(last / 4))),
      at(Math.ceil(last / 2)),
    ]
    const exits: Exits = {}
    for (const command of commands) {
      const output = await cli([...command, '--store', `file:${this.#folder}`], { cwd: '/' })
      exits[`statewright ${command.join(' ')}`] = output
    }
    return exits
  }

  /** The terminal output during the cell. */
  #listen(): void {
    // oxlint-disable-next-line unbound-method -- restored afterwards
    const streams = [process.stdout, process.stderr].map((stream) => ({ stream, write: stream.write }))
    for (const { stream, write } of streams) {
      stream.write = ((...args: Parameters<typeof write>) => {
        this.#printed.push(String(args[0]))
        return write.apply(stream, args)
      }) as typeof write
    }
    this.#silence = () => {
      for (const { stream, write } of streams) stream.write = write
      this.#silence = () => undefined
    }
  }
}

type Agent = ReturnType<typeof createAgent>

/** On the run's handle. */
function say(run: Run, message: SessionMessage): void {
  if (message.type === 'resume') run.resume()
  else if (message.type === 'cancel') run.cancel()
  else if (message.type === 'reply') run.reply(message.input)
  else if (message.type === 'approve') run.approve(message.callId, message.editedInput)
  else if (message.type === 'reject') run.reject(message.callId, message.why)
  else if (message.type === 'toolOutput') run.addToolOutput(message.callId, message.value)
}

/** From the log alone, after the end. */
async function watchedIn(agent: Agent): Promise<unknown[]> {
  const received: unknown[] = []
  for await (const event of agent.watch('s')) received.push(event)
  return received
}

const atRest =
  /^(COMPLETED|CANCELLED|TIMED_OUT|MAX_STEPS|BUDGET_EXCEEDED|BLOCKED|ERROR|PAUSED|WAITING_FOR_INPUT)$/

/** One of the requests finds it empty and waits for the next window. */
function createEmptyingBudget(waitsAt: () => number) {
  const id = 'tenant'
  const budget = createBudget({ id, tokens: 1e9, per: 'hour', onEmpty: 'wait', store: memoryStore() })
  let reserveCount = 0
  const reserve: typeof budget.reserve = async (...args) => {
    reserveCount += 1
    if (reserveCount === waitsAt())
      throw new BudgetError('budget_exceeded', 'It is empty.', id, { waitMs: 3_600_000 })
    return budget.reserve(...args)
  }
  return { ...budget, reserve }
}

const objectSchema = {
  type: 'object' as const,
  properties: { done: { type: 'boolean' } },
  required: ['done'],
  additionalProperties: false,
}

const hostedTools = [{ type: 'mcp', server_label: 'zip', require_approval: 'always' }]
const never = patternShield({ name: 'never', patterns: [/never there/], action: 'block' })
const tokenizer = { count: (words: string) => Math.ceil(words.length / 4) }
const watching = { repeatedCall: {}, failing: {}, cycle: {}, repeatedOutput: {} } as const
const ownGuard = defineGuard({
  name: 'own',
  initial: 0,
  observe: (count: number) => count + 1,
  verdict: () => undefined,
})
