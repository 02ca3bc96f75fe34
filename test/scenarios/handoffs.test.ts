import {
  type Agent,
  type AgentEvent,
  type AgentOptions,
  createAgent,
  defineAgents,
  defineGuard,
  defineShield,
  defineTool,
  handoff,
  memoryStore,
  openaiChat,
  type Run,
  type SessionStore,
  type Tool,
} from '../../src/index.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { checkSessions } from '../../src/core/drive/stranded-sessions.js'
import { createTranscript } from '../../src/studio/shown-values.js'
import { skills } from '../../src/skills/index.js'
import { type Rehearsal, startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { createRecordedAgent, recordSession, replaySession } from '../../src/testing/index.js'
import { findUnlawful } from '../support/find-unlawful.js'
import { textOf } from '../support/play.js'
import { call, calls, clientTool, text, tool } from '../support/tools.js'

interface Sent {
  model: string
  tools?: { function: { name: string } }[]
}

const rehearsals: Rehearsal[] = []
afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((one) => one.close()))
})

/** The settings of each desk agent other than its model and instructions. */
interface DeskOptions {
  triage?: Partial<AgentOptions>
  billing?: Partial<AgentOptions>
  store?: SessionStore
}

/** A triage agent that hands over to billing, as created in one process. */
class Desk {
  readonly refund = tool('refund', () => 'Refunded.')
  readonly look = tool('look', () => 'Seen.')
  readonly rehearsal: Rehearsal
  readonly billing: Agent
  readonly agent: Agent

  constructor(rehearsal: Rehearsal, { triage, billing, store }: DeskOptions = {}) {
    this.rehearsal = rehearsal
    this.billing = createAgent({
      model: this.model('gpt-5-mini'),
      instructions: 'You are billing.',
      tools: [this.refund],
      ...billing,
    })
    this.agent = createAgent({
      model: this.model('gpt-5'),
      instructions: 'You are triage.',
      tools: [this.look, handoff(this.billing, { name: 'billing' })],
      ...(store && { store }),
      ...triage,
    })
  }

  model(model: string) {
    return openaiChat({ model, baseURL: this.rehearsal.url, apiKey: 'none' })
  }

  /** A summary of each request with its instructions, model and tools. */
  get summaries(): string[] {
    return this.rehearsal.requests.map(({ sent, body }) => {
      const { model, tools = [] } = sent as Sent
      return `${textOf(body.messages[0])} ${model}: ${tools.map(({ function: { name } }) => name).join(' ')}`
    })
  }
}

async function open(turns: readonly Turn[], options: DeskOptions = {}): Promise<Desk> {
  const rehearsal = await startRehearsal({ scenario: { turns, onExhausted: 'error' }, strict: true })
  rehearsals.push(rehearsal)
  return new Desk(rehearsal, options)
}

async function listEvents(run: Run): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of run) events.push(event)
  return events
}

const handedOff = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === 'handed_off' ? [[event.from, event.to]] : []))

const toBilling = 'transfer_to_billing'
const triageAsked = 'You are triage. gpt-5: look transfer_to_billing'
const billingAsked = 'You are billing. gpt-5-mini: refund'

describe('a handoff', () => {
  it("continues with the other agent's instructions, tools and model, in the same session", async () => {
    const desk = await open([
      call(toBilling),
      call('refund', { bill: 7 }),
      text('You have your money back.'),
      text('You are welcome.'),
    ])
    const run = desk.agent.run('I want my money back.', { session: 'ann' })
    const events = await listEvents(run)
    const { state, output, messages, steps } = await run.result
    expect([state, output, steps]).toEqual(['COMPLETED', 'You have your money back.', 3])
    expect(desk.refund.inputs).toEqual([{ bill: 7 }])
    expect(desk.summaries).toEqual([triageAsked, billingAsked, billingAsked])
    expect(handedOff(events)).toEqual([[null, 'billing']])
    expect(messages[2]).toMatchObject({
      role: 'tool',
      content: "The conversation was handed over to 'billing', which replies from now on.",
      data: { handoff: { to: 'billing' } },
    })
    // The next run of the session also uses the other agent.
    await desk.agent.run('Thank you.', { session: 'ann' }).result
    expect(desk.summaries[3]).toBe(billingAsked)
  })

  it('survives another process, a crash, a fork and a branch', async () => {
    const store = memoryStore()
    const desk = await open([call(toBilling), call('refund'), text('Done.'), text('Again.'), text('Fork.')], {
      store,
      billing: { tools: [tool('refund', () => 'Refunded.', { needsApproval: true })] },
    })
    const run = desk.agent.run('My money back.', { session: 'ann' })
    const { pending } = await run.result
    expect(pending).toMatchObject([{ name: 'refund' }])
    const other = new Desk(desk.rehearsal, {
      store,
      billing: { tools: [tool('refund', () => 'Refunded.', { needsApproval: true })] },
    })
    const resumed = await other.agent.resume('ann')
    for (const one of (await resumed.result).pending ?? []) resumed.approve(one)
    expect(await resumed.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(desk.summaries).toEqual([triageAsked, billingAsked, billingAsked])
    const session = await other.agent.readSession('ann')
    expect(other.agent.createInput('And now?', { session }).speaker).toBe('billing')
    // The log records the handoff at each record and in a fork of any record.
    const records = store.read('ann')
    expect(records.map(({ data }) => data).filter((data) => data.includes('"HANDED_OFF"'))).toHaveLength(1)
    const forked = await other.agent.fork('ann')
    expect((await other.agent.run('And now?', { session: forked }).result).output).toBe('Again.')
    expect(desk.summaries[3]).toBe(billingAsked)
    // A branch before the handoff belongs to the first agent.
    await other.agent.branch('ann', { from: 'm1', edit: 'Hello.' }).result
    expect(desk.summaries[4]).toBe(triageAsked)
    expect(await findUnlawful(store)).toEqual([])
  })

  it('can go back and forth within the limits', async () => {
    const desk = await open([
      call(toBilling),
      call('transfer_to_triage'),
      call(toBilling),
      call('transfer_to_triage'),
    ])
    const agents: { triage?: Agent } = {}
    const triage = () => agents.triage as Agent
    const billing = createAgent({
      model: desk.model('gpt-5-mini'),
      instructions: 'You are billing.',
      tools: [handoff(triage, { name: 'triage' })],
    })
    agents.triage = createAgent({
      model: desk.model('gpt-5'),
      instructions: 'You are triage.',
      tools: [handoff(billing, { name: 'billing' })],
      limits: { maxSteps: 4 },
    })
    const run = agents.triage.run('Go.')
    const events = await listEvents(run)
    expect(await run.result).toMatchObject({ state: 'MAX_STEPS', steps: 4 })
    expect(handedOff(events)).toEqual([
      [null, 'billing'],
      ['billing', 'triage'],
      ['triage', 'billing'],
      ['billing', 'triage'],
    ])
    expect(desk.summaries.map((one) => one.slice(0, 15))).toEqual([
      'You are triage.',
      'You are billing',
      'You are triage.',
      'You are billing',
    ])
  })

  it('takes effect after the other calls of its answer, and the first of two counts', async () => {
    const desk = await open([calls([[toBilling], ['look'], [toBilling]]), text('Billing here.')])
    const run = desk.agent.run('Go.')
    const events = await listEvents(run)
    const { messages } = await run.result
    const types = events.map(({ type }) => type).filter((type) => /^(tool_result|handed_off)$/.test(type))
    expect(types).toEqual(['tool_result', 'tool_result', 'tool_result', 'handed_off'])
    expect(messages.slice(2, 5).map((message) => textOf(message))).toEqual([
      "The conversation was handed over to 'billing', which replies from now on.",
      'Seen.',
      'Not executed: an earlier call of this answer already hands the conversation over, and each answer can do so only once.',
    ])
    expect(desk.summaries).toEqual([triageAsked, billingAsked])
  })

  it('waits for approvals and for the client, and does not happen if its call is refused', async () => {
    const book = tool('book', () => 'Booked.', { needsApproval: true })
    const triage = (desk: Desk, more: Partial<AgentOptions> = {}) =>
      createAgent({
        model: desk.model('gpt-5'),
        instructions: 'You are triage.',
        tools: [book, clientTool('pick'), handoff(desk.billing, { name: 'billing' })],
        ...more,
      })
    const desk = await open([calls([[toBilling], ['book'], ['pick']]), text('Billing here.')])
    const run = triage(desk).run('Go.')
    const { pending = [] } = await run.result
    expect(pending.map(({ name }) => name)).toEqual(['book', 'pick'])
    expect(run.snapshot()).toMatchObject({ context: { speaker: null } })
    for (const one of pending) if (one.needs === 'approval') run.approve(one)
    for (const one of (await run.result).pending ?? []) run.addToolOutput(one, 'Picked.')
    expect((await run.result).output).toBe('Billing here.')
    expect(run.snapshot()).toMatchObject({ context: { speaker: 'billing' } })
    const refused = await open([call(toBilling), text('Triage here.')])
    const second = triage(refused, { prepareStep: () => ({ tools: ['book'] }) }).run('Go.')
    expect(handedOff(await listEvents(second))).toEqual([])
    expect((await second.result).output).toBe('Triage here.')
    expect(refused.summaries.map((one) => one.slice(0, 15))).toEqual(['You are triage.', 'You are triage.'])
  })

  it('is cancelled with its run, and the other agent runs next if the call succeeded', async () => {
    const book = tool('book', () => 'Booked.', { needsApproval: true })
    const desk = await open([calls([[toBilling], ['book']]), text('Billing here.')])
    const agent = createAgent({
      model: desk.model('gpt-5'),
      instructions: 'You are triage.',
      tools: [book, handoff(desk.billing, { name: 'billing' })],
    })
    const run = agent.run('Go.', { session: 'ann' })
    await run.result
    run.cancel()
    expect((await run.result).state).toBe('CANCELLED')
    expect((await agent.run('And now?', { session: 'ann' }).result).output).toBe('Billing here.')
    expect(desk.summaries[1]).toBe(billingAsked)
  })
})

describe('a handoff with other features', () => {
  it('follows the rules of logs if a snapshot is between the call and the end of its answer', async () => {
    const store = memoryStore()
    const book = tool('book', () => 'Booked.', { needsApproval: true })
    // Long enough that a snapshot follows.
    const read = tool('read', () => 'Money. '.repeat(20_000))
    const desk = await open([calls([[toBilling], ['read'], ['book']]), text('Billing here.')])
    const agent = createAgent({
      model: desk.model('gpt-5'),
      tools: [book, read, handoff(desk.billing, { name: 'billing' })],
      toolCalls: { maxResultChars: 200_000 },
      store,
    })
    const run = agent.run('Go.', { session: 'ann' })
    const { pending = [] } = await run.result
    const isPending = /"handoff":\{"to":"billing"/
    expect(
      store.read('ann').filter(({ type, data }) => type === 'snapshot' && isPending.test(data)),
    ).toHaveLength(1)
    for (const one of pending) run.approve(one)
    expect((await run.result).output).toBe('Billing here.')
    expect(await findUnlawful(store)).toEqual([])
  })

  it('unloads skills, and sends no model the provider data of another', async () => {
    const desk = await open([
      call('load_skill', { name: 'reading' }),
      call(toBilling, {}, { reasoning: 'Hm.' }),
      call('refund'),
      text('Done.'),
    ])
    const agent = createAgent({
      model: desk.model('gpt-5'),
      instructions: 'You are triage.',
      tools: [handoff(desk.billing, { name: 'billing' })],
      skills: skills({
        list: [{ name: 'reading', description: 'How to read.', allowedTools: [toBilling] }],
        load: () => 'Read.',
      }),
    })
    const run = agent.run('Go.', { session: 'ann' })
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(desk.refund.inputs).toHaveLength(1)
    expect(run.snapshot()).toMatchObject({ context: { skills: [] } })
    expect(desk.summaries[2]).toBe(billingAsked)
    expect(JSON.stringify(desk.rehearsal.requests[2]?.sent)).not.toContain('Hm.')
    expect(agent.createInput('And now?', { session: 'ann' }).speaker).toBe('billing')
  })

  it('yields to a tool that ends the run, and the other agent runs next', async () => {
    const submit = defineTool({
      name: 'submit',
      description: 'Submits.',
      input: { type: 'object' },
      endsRun: true,
      execute: () => 'Submitted.',
    })
    const desk = await open([calls([[toBilling], ['submit']]), text('Billing here.')])
    const agent = createAgent({
      model: desk.model('gpt-5'),
      instructions: 'You are triage.',
      tools: [submit as Tool, handoff(desk.billing, { name: 'billing' })],
    })
    const run = agent.run('Go.', { session: 'ann' })
    expect(handedOff(await listEvents(run))).toEqual([[null, 'billing']])
    expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Submitted.' })
    expect((await agent.run('And now?', { session: 'ann' }).result).output).toBe('Billing here.')
    expect(desk.summaries[1]).toBe(billingAsked)
  })

  it("lets a fork that asks first ask about the other agent's running calls", async () => {
    const store = memoryStore()
    const desk = await open([call(toBilling), call('refund'), text('Done.'), text('Done.')], { store })
    await desk.agent.run('Go.', { session: 'ann' }).result
    const states = await Promise.all(
      store.read('ann').map(async ({ seq }) => {
        const { snapshot } = await desk.agent.replay('ann', { to: seq })
        const context = snapshot?.context as AgentContext | undefined
        const isUnderWay = context?.speaker === 'billing' && context.calls.some(({ started }) => started)
        return { seq, isUnderWay }
      }),
    )
    const seq = states.find(({ isUnderWay }) => isUnderWay)?.seq
    const id = await desk.agent.fork('ann', seq, { askFirst: true })
    const run = await desk.agent.resume(id)
    expect((await run.result).pending).toMatchObject([{ name: 'refund', needs: 'approval' }])
    expect(desk.refund.inputs).toHaveLength(1)
    run.cancel()
    await run.result
  })

  it("shows the agent's name above its messages in the studio", async () => {
    const desk = await open([call(toBilling), text('Billing here.')])
    const { messages } = await desk.agent.run('Go.').result
    const session = { run: null, state: { messages } }
    const { transcript } = createTranscript(
      { session: session } as never,
      { durations: new Map(), decisions: new Map(), forkPoints: new Map() } as never,
    )
    expect(transcript.map(({ role, speaker }) => [role, speaker])).toEqual([
      ['user', undefined],
      ['assistant', undefined],
      ['assistant', 'billing'],
    ])
  })
})

describe('a session with several agents', () => {
  it('uses the limits and budgets of its first agent throughout', async () => {
    const desk = await open([call(toBilling), call('refund'), text('Never.')], {
      triage: { limits: { maxSteps: 2 } },
      billing: { limits: { maxSteps: 20 } },
    })
    expect(await desk.agent.run('Go.').result).toMatchObject({ state: 'MAX_STEPS', steps: 2 })
  })

  it('applies the shields and guards of its first agent to the others', async () => {
    const hide = defineShield({
      name: 'hide',
      check: (content) => ({ action: 'redact', content: content.replaceAll('secret', '…') }),
    })
    const seen: string[] = []
    const watch = defineGuard({
      name: 'watch',
      observe: (state, fact) => {
        if (fact.type === 'calls') seen.push(...fact.calls.map(({ name }) => name))
        return state
      },
      verdict: () => undefined,
    })
    const desk = await open([call(toBilling), call('refund'), text('A secret.')], {
      triage: { shields: { output: [hide] }, guards: [watch] },
    })
    expect((await desk.agent.run('Go.').result).output).toBe('A ….')
    expect(seen).toEqual([toBilling, 'refund'])
  })

  it.each([
    [
      'shields.output',
      { shields: { output: [defineShield({ name: 'own', check: () => ({ action: 'allow' }) })] } },
    ],
    ['guards', { guards: [defineGuard({ name: 'own', verdict: () => undefined })] }],
    ['memory', { memory: { retrieve: async () => [] } }],
    ['stopWhen', { stopWhen: () => false }],
    ['output', { output: { type: 'object', properties: {} } as never }],
  ] satisfies [string, Partial<AgentOptions>][])(
    'refuses an agent with %s that the first agent does not have, and accepts one that shares it',
    async (key, own) => {
      const rehearsal = await startRehearsal({ scenario: { turns: [text('Fine.')] }, strict: true })
      rehearsals.push(rehearsal)
      expect(() => new Desk(rehearsal, { billing: own })).toThrow(
        expect.objectContaining({ code: 'invalid_handoff', subject: key }),
      )
      expect(() => new Desk(rehearsal, { billing: own, triage: own })).not.toThrow()
    },
  )
})

describe('an invalid handoff', () => {
  it('is refused with a remedy: no agent, no name, two with one name, and the agent itself', async () => {
    const desk = await open([text('Fine.')])
    const invalid = (problem: RegExp, subject?: string) =>
      expect.objectContaining({
        code: 'invalid_handoff',
        message: expect.stringMatching(problem),
        ...(subject !== undefined && { subject }),
      })
    expect(() => handoff({} as Agent, { name: 'billing' })).toThrow(invalid(/createAgent\(\)/, 'billing'))
    expect(() => handoff(undefined as never, { name: 'billing' })).toThrow(invalid(/createAgent\(\)/))
    expect(() => handoff(desk.billing, undefined as never)).toThrow(
      invalid(/name must be 1 to 50 letters/, 'name'),
    )
    expect(() => handoff(desk.billing, { name: 'Bill ing' })).toThrow(invalid(/1 to 50 letters/, 'name'))
    expect(() => handoff(desk.billing, { name: 'b', to: 1 } as never)).toThrow(
      invalid(/no option 'to'/, 'to'),
    )
    expect(() => handoff(desk.billing, { name: 'b', description: ' ' })).toThrow(
      invalid(/a string that the model reads/, 'description'),
    )
    const model = desk.model('gpt-5')
    const one = createAgent({ model })
    expect(() =>
      createAgent({ model, tools: [handoff(one, { name: 'b' }), handoff(desk.billing, { name: 'b' })] }),
    ).toThrow(expect.objectContaining({ code: 'duplicate_tool', subject: 'transfer_to_b' }))
    const through = createAgent({ model, tools: [handoff(one, { name: 'b' })] })
    expect(() =>
      createAgent({ model, tools: [handoff(through, { name: 'c' }), handoff(desk.billing, { name: 'b' })] }),
    ).toThrow(expect.objectContaining({ code: 'duplicate_handoff', subject: 'b' }))
    const self: Agent = createAgent({ model, tools: [handoff(() => self, { name: 'self' })] })
    expect(() => self.run('Go.')).toThrow(invalid(/points to its own agent/, 'self'))
    expect(() => self.createInput('Go.')).toThrow(invalid(/points to its own agent/, 'self'))
    const lost = createAgent({ model, tools: [handoff(() => 'nothing' as never, { name: 'lost' })] })
    expect(() => lost.run('Go.')).toThrow(invalid(/a function that returns one/, 'lost'))
  })

  it('is explained by a hint for the option of another library', () => {
    expect(() => createAgent({ model: {} as never, handoffs: [] } as never)).toThrow()
    const model = openaiChat({ model: 'gpt-5', apiKey: 'none' })
    expect(() => createAgent({ model, handoffs: [] } as never)).toThrow(
      /handoff\(agent, { name, description }\)/,
    )
  })

  it('leaves a session that names the missing agent, for runs and for a resume', async () => {
    const store = memoryStore()
    const turns = [call(toBilling), calls([['refund']]), text('Never.')]
    const billing = { tools: [tool('refund', () => 'Refunded.', { needsApproval: true })] }
    const desk = await open(turns, { store, billing })
    await desk.agent.run('Go.', { session: 'ann' }).result
    const lost = { code: 'unknown_agent', subject: 'billing', message: expect.stringContaining("'billing'") }
    const without = new Desk(desk.rehearsal, { store, triage: { tools: [] } }).agent
    await expect(without.resume('ann')).rejects.toMatchObject(lost)
    const found = []
    for await (const one of checkSessions(defineAgents({ desk: without }), store)) found.push(one)
    expect(found).toMatchObject([{ session: 'ann', ok: false, verdict: 'missing_agent' }])
    const back = new Desk(desk.rehearsal, { store, billing }).agent
    const run = await back.resume('ann')
    run.cancel()
    await run.result
    const refused = without.run('And now?', { session: 'ann' })
    await expect(refused.result).rejects.toMatchObject(lost)
    const session = await back.readSession('ann')
    expect(() => without.createInput('Go.', { session })).toThrow(expect.objectContaining(lost))
  })
})

describe('an agent whose handoff leads to a different agent than before', () => {
  it('is listed as changed with the sessions that can continue', async () => {
    const store = memoryStore()
    const billing = { tools: [tool('refund', () => 'Refunded.', { needsApproval: true })] }
    const desk = await open([call(toBilling), call('refund')], { store, billing })
    const agentOf = (options: Partial<AgentOptions>) =>
      new Desk(desk.rehearsal, { store, billing: { ...billing, ...options } }).agent
    const begun = agentOf({})
    defineAgents({ desk: begun })
    await begun.run('Go.', { session: 'ann' }).result
    const judge = async (options: Partial<AgentOptions>) => {
      const found = []
      const agents = defineAgents({ desk: agentOf(options) })
      for await (const { verdict } of checkSessions(agents, store)) found.push(verdict)
      return found
    }
    expect(await judge({})).toEqual(['same'])
    expect(await judge({ instructions: 'You are rude.' })).toEqual(['changed'])
    expect(await judge({ model: desk.model('gpt-5-nano') })).toEqual(['changed'])
    expect(await judge({ tools: [...billing.tools, desk.look] })).toEqual(['changed'])
    expect(await judge({ limits: { maxSteps: 3 } })).toEqual(['same'])
  })
})

describe('a recorded handoff', () => {
  it('plays without a model, on the recorded agents and those of the recording', async () => {
    const store = memoryStore()
    const desk = await open([call(toBilling), call('refund'), text('Done.'), text('Bye.')], { store })
    await desk.agent.run('Go.', { session: 'ann' }).result
    await desk.agent.run('Thanks.', { session: 'ann' }).result
    const recording = await recordSession(desk.agent, 'ann')
    expect(recording.agent.team?.['billing']).toMatchObject({ instructions: 'You are billing.' })
    const state = { state: 'COMPLETED', runs: 2, calls: 2 }
    expect(await replaySession(desk.agent, recording)).toMatchObject(state)
    expect(await replaySession(desk.agent, recording, { tools: 'live' })).toMatchObject(state)
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject(state)
    const records = store.read('ann')
    expect(await replaySession(createRecordedAgent(records), records)).toMatchObject(state)
    const changed = new Desk(desk.rehearsal, { store, billing: { instructions: 'You are rude.' } })
    await expect(replaySession(changed.agent, recording)).rejects.toMatchObject({
      code: 'session_differs',
      message: expect.stringContaining("The agent 'billing': The prompt has changed"),
    })
    const gone = new Desk(desk.rehearsal, { store, triage: { tools: [desk.look] } })
    await expect(replaySession(gone.agent, recording)).rejects.toMatchObject({ code: 'session_differs' })
  })

  it('plays a sub-agent on the agent that called it, if both agents have one with that name', async () => {
    const store = memoryStore()
    const helpers = (rehearsal: Rehearsal, words: string): DeskOptions => {
      const model = openaiChat({ model: 'gpt-5-nano', baseURL: rehearsal.url, apiKey: 'none' })
      const helper = (instructions: string) =>
        createAgent({ model, instructions }).asTool({ name: 'helper', description: 'Helps.' })
      const billing = { tools: [helper(words)] }
      const handedTo = createAgent({ model, instructions: 'You are billing.', ...billing })
      return { store, triage: { tools: [helper('Help triage.'), handoff(handedTo, { name: 'billing' })] } }
    }
    const turns = [call(toBilling), call('helper', { task: 'Look.' }), text('Seen.'), text('Done.')]
    const { rehearsal } = await open(turns)
    const desk = (words: string) => new Desk(rehearsal, helpers(rehearsal, words)).agent
    const agent = desk('Help billing.')
    expect(await agent.run('Go.', { session: 'ann' }).result).toMatchObject({ output: 'Done.' })
    const recording = await recordSession(agent, 'ann')
    expect(recording.subAgents).toMatchObject([
      { speaker: 'billing', recording: { agent: { instructions: 'Help billing.' } } },
    ])
    const whole = { state: 'COMPLETED', subAgents: [{ state: 'COMPLETED' }] }
    expect(await replaySession(agent, recording)).toMatchObject(whole)
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject(whole)
    await expect(replaySession(desk('Help no one.'), recording)).rejects.toMatchObject({
      differences: expect.arrayContaining([expect.objectContaining({ by: 'prompt', path: ['helper'] })]),
    })
  })
})
