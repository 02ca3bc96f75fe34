import { SimulatedClock } from 'xstate'
import { toAGUI, aguiHandler, type AGUIEvent } from '../../src/agui/index.js'
import {
  type Agent,
  type AgentEvent,
  type AgentOptions,
  createAgent,
  defineGuard,
  memoryStore,
  patternShield,
  type SessionStore,
} from '../../src/index.js'
import { chatHandler, foldTranscript, type Transcript, toUIMessageStream } from '../../src/ui/index.js'
import { AGUIPage } from '../agui/page.js'
import { distant } from '../support/distant.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { until } from '../support/play.js'
import { tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'
import { Chat, chunksOf, messageOf, protocol } from '../ui/client.js'

interface Scene {
  model: ManualModel
  clock: SimulatedClock
  cancel: () => unknown
}

interface End {
  options?: Partial<AgentOptions>
  /** Runs to the end, after the first request was sent. */
  lead: (scene: Scene) => unknown
  state: string
  reason: string
}

const halting = defineGuard({
  name: 'halting',
  verdict: (_state, { fact }) =>
    fact.type === 'calls' ? { action: 'halt', message: 'This tool is closed today.' } : undefined,
})

/** The model calls a tool, and receives another request if the run continues. */
const callTool = ({ model }: Scene): unknown =>
  model.pending?.answer({ toolCalls: [call('a', 'look')], finishReason: 'tool_calls' })

const ends: Record<string, End> = {
  'a step limit': {
    options: { limits: { maxSteps: 1 } },
    lead: callTool,
    state: 'MAX_STEPS',
    reason: 'max_steps',
  },
  'a limit of tool calls': {
    options: { limits: { maxToolCalls: 1 } },
    lead: async (scene) => {
      const { model } = scene
      callTool(scene)
      await until(() => model.pending !== null)
      callTool(scene)
    },
    state: 'MAX_STEPS',
    reason: 'max_tool_calls',
  },
  'a token budget': {
    options: { limits: { tokenBudget: 10 }, guardrails: { reserveTokens: 0 } },
    lead: callTool,
    state: 'BUDGET_EXCEEDED',
    reason: 'token_budget',
  },
  'a deadline': {
    options: { limits: { timeoutMs: 1000 } },
    lead: ({ clock }) => clock.increment(1001),
    state: 'TIMED_OUT',
    reason: 'timeout',
  },
  'a guard': { options: { guards: [halting] }, lead: callTool, state: 'ERROR', reason: 'user_guard' },
  'a shield': {
    options: {
      shields: { output: [patternShield({ name: 'words', patterns: [/zebra/], action: 'block' })] },
    },
    lead: ({ model }) => model.pending?.answer({ text: 'A zebra.' }),
    state: 'BLOCKED',
    reason: 'shield',
  },
  'a person': { lead: ({ cancel }) => cancel(), state: 'CANCELLED', reason: 'cancelled' },
  'a failure': {
    lead: ({ model }) =>
      model.pending?.fail({ kind: 'fatal', code: 'http_401', message: 'No such key.', status: 401 }),
    state: 'ERROR',
    reason: 'provider_error',
  },
  'a content filter': {
    lead: ({ model }) => model.pending?.answer({ text: 'It', finishReason: 'content_filter' }),
    state: 'COMPLETED',
    reason: 'content_filter',
  },
}

const stores = [
  ['a store that answers at once', () => memoryStore()],
  ['a store that answers later', () => distant(memoryStore())],
] as const

/** A process with both handlers over a store. */
function open(store: SessionStore, { options = {} }: Pick<End, 'options'> = {}) {
  const model = new ManualModel()
  const clock = new SimulatedClock()
  const agent = createAgent({ model, store, clock, tools: [tool('look')], ...options }) as Agent
  const chat = chatHandler({ agent, authorize: 'none', protocol })
  const agui = aguiHandler({ agent, authorize: 'none' })
  const at = (path: string, init?: RequestInit): Request => new Request(`http://chat.test/api/${path}`, init)
  const send = (path: string, body: object = {}): Request =>
    at(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const words = (id: string, text: string): object => ({
    id: 'c',
    messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
  })
  return {
    model,
    clock,
    agent,
    untilRequest: () => until(() => model.pending !== null),
    say: (id: string, text: string) => chat(send('chat', words(id, text))),
    stop: () => chat(send('chat/c/stop')),
    regenerate: (id: string, text: string) =>
      chat(send('chat', { ...words(id, text), trigger: 'regenerate-message' })),
    branch: async (branch: number) => (await (await chat(at(`chat/c?branch=${branch}`))).json()) as Shown[],
    hasEnded: async () =>
      !['RUNNING', 'WAITING_FOR_TOOL'].includes((await agent.replay('c')).run?.state ?? ''),
    history: async () => (await (await chat(at('chat/c'))).json()) as Shown[],
    stream: () => chat(at('chat/c/stream')),
    aguiSay: (messages: object[]) => agui(send('agui', { threadId: 'c', runId: 'r', messages })),
    aguiStop: () => agui(send('agui/c/stop')),
    aguiRead: async () => (await (await agui(at('agui/c'))).json()) as { ends?: AGUIEnds },
    aguiStream: () => agui(at('agui/c/stream')),
  }
}

type AGUIEnds = { messageId: string; state: string; reason: string; message: string }[]
interface Shown {
  id: string
  role: string
  parts: { type: string; data?: unknown; id?: string }[]
}

const endsOf = (messages: readonly { parts: readonly object[] }[]): unknown[][] =>
  messages.map(({ parts }) =>
    parts.flatMap((part) => ('id' in part && part.id === 'run_ended' && 'data' in part ? [part.data] : [])),
  )

const frames = async (response: Response): Promise<AGUIEvent[]> =>
  (await response.text())
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => JSON.parse(frame.slice(6)) as AGUIEvent)

const page = async (response: Response): Promise<AGUIPage> => {
  const shown = new AGUIPage()
  await shown.take(await frames(response))
  return shown
}

const stateOf = ({ state }: AGUIPage): { ends?: AGUIEnds } =>
  (state['statewright'] ?? {}) as { ends?: AGUIEnds }

const rows = sampledKinds(stores).flatMap(([kind, createStore]) =>
  Object.entries(ends).map(([name, end]) => [name, kind, end, createStore] as const),
)

describe.each(rows)('a run that %s ended, over %s', (_name, _kind, end, createStore) => {
  const data = {
    type: 'run_ended',
    state: end.state,
    reason: end.reason,
    message: expect.any(String) as string,
  }
  const shown = [[], [data]]

  it('shows its end to a chat page that reads, reconnects or continues', async () => {
    const store = createStore()
    const here = open(store, end)
    const answer = here.say('u1', 'Go.').then(chunksOf)
    await here.untilRequest()
    await end.lead({ ...here, cancel: here.stop })
    const live = await messageOf(await answer)
    expect(endsOf([live ?? { parts: [] }])).toEqual([[data]])
    for (const process of [here, open(store)]) {
      const history = await process.history()
      expect(endsOf(history)).toEqual(shown)
      // The page shows the same before and after a reload.
      expect(history[1]?.parts.find(({ id }) => id === 'run_ended')).toEqual(
        live?.parts.find((part) => 'id' in part && part.id === 'run_ended'),
      )
    }
    const again = open(store)
    const next = again.say('u2', 'Go on.').then(chunksOf)
    await again.untilRequest()
    // In the middle of the next answer, and after it.
    expect(endsOf(await again.history())).toEqual([[], [data], []])
    again.model.pending?.answer({ text: 'Done.' })
    await next
    expect(endsOf(await again.history())).toEqual([[], [data], [], []])
    const branched = open(store)
    const other = branched.regenerate('u1', 'Go.').then(chunksOf)
    await branched.untilRequest()
    branched.model.pending?.answer({ text: 'Now it works.' })
    await other
    expect(endsOf(await branched.history())).toEqual([[], []])
    expect(endsOf(await branched.branch(1))).toEqual([[], [data], [], []])
  })

  it('shows its end to useChat if no page saw the failure', async () => {
    const store = createStore()
    const here = open(store, end)
    void here.say('u1', 'Go.').then((response) => response.body?.cancel())
    await here.untilRequest()
    await end.lead({ ...here, cancel: here.stop })
    while (!(await here.hasEnded())) await settled()
    const later = new Chat('c', () => here.stream(), { messages: (await here.history()) as never[] })
    await later.resumeStream()
    expect(endsOf(later.messages)).toEqual(shown)
    expect(later.status).toBe('ready')
  })

  it('shows its end to an AG-UI page', async () => {
    const store = createStore()
    const here = open(store, end)
    const known = {
      messageId: 'u1',
      state: end.state,
      reason: end.reason,
      message: expect.any(String) as string,
    }
    const answer = here.aguiSay([{ id: 'u1', role: 'user', content: 'Go.' }]).then(page)
    await here.untilRequest()
    await end.lead({ ...here, cancel: here.aguiStop })
    expect(stateOf(await answer).ends).toMatchObject([known])
    for (const process of [here, open(store)]) {
      expect((await process.aguiRead()).ends).toMatchObject([known])
      expect(stateOf(await page(await process.aguiStream())).ends).toMatchObject([known])
    }
    const again = open(store)
    const next = again.aguiSay([{ id: 'u2', role: 'user', content: 'Go on.' }]).then(page)
    await again.untilRequest()
    again.model.pending?.answer({ text: 'Done.' })
    expect(stateOf(await next).ends).toMatchObject([known])
    expect((await again.aguiRead()).ends).toMatchObject([known])
  })

  it('shows its end to pages that read events', async () => {
    const { agent, model, clock, untilRequest } = open(createStore(), end)
    const run = agent.run('Go.')
    const events: AgentEvent[] = []
    run.events$.subscribe((event) => events.push(event))
    const chunks = toUIMessageStream(run, { protocol })
    const agui = toAGUI(run)
    await untilRequest()
    await end.lead({ model, clock, cancel: () => run.cancel() })
    const result = await run.result
    const transcript = events.reduce<Transcript | undefined>(foldTranscript, undefined)
    expect(transcript?.items.at(-1)).toMatchObject({ type: 'end', state: end.state, reason: end.reason })
    const read: object[] = []
    for await (const chunk of chunks) read.push(chunk)
    expect(read).toContainEqual({ type: 'data-statewright', id: 'run_ended', data })
    const emitted: AGUIEvent[] = []
    for await (const event of agui) emitted.push(event)
    const last = new AGUIPage()
    await last.take(emitted)
    expect(stateOf(last).ends).toMatchObject([{ state: end.state, reason: result.reason }])
  })
})
