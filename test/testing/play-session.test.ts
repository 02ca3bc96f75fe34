import { readFileSync } from 'node:fs'
import {
  createAgent,
  defineShield,
  defineTool,
  memoryStore,
  openaiChat,
  toolSearch,
  type AgentOptions,
  type Run,
  type Tool,
  type SessionStore,
} from '../../src/index.js'
import { startRehearsal, type Rehearsal, type Turn } from '../../src/rehearsal/index.js'
import {
  replaySession,
  ReplayError,
  createRecordedAgent,
  recordSession,
  type ReplaySessionOptions,
  type Recording,
} from '../../src/testing/index.js'
import { openRecord, sealRecord } from '../../src/core/sessions/log/log-record.js'
import { call, calls, text, times, tool } from '../support/tools.js'

let rehearsals: Rehearsal[] = []
afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((one) => one.close()))
})

async function modelOf(turns: readonly Turn[]) {
  const rehearsal = await startRehearsal({ turns: [...turns], onExhausted: 'error' } as never)
  rehearsals.push(rehearsal)
  return openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' })
}

/** Fails on any request, because sessions are replayed without a model. */
const silent = openaiChat({ model: 'rehearsal', baseURL: 'http://127.0.0.1:9', apiKey: 'none' })

const weather = (what: object = {}): Tool =>
  defineTool({
    name: 'weather',
    description: 'Tells the weather of a city.',
    input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    readOnly: true,
    execute: () => 'Rain.',
    ...what,
  } as never) as Tool

const plainOptions = (): Partial<AgentOptions> => ({
  instructions: 'You are a careful analyst.\nAnswer briefly.',
  tools: [weather()],
})

/** A recorded session of an agent with these options. */
async function recorded(
  options: Partial<AgentOptions>,
  turns: readonly Turn[],
  lead: (run: Run) => unknown = () => undefined,
): Promise<{ recording: Recording; store: SessionStore }> {
  const store = memoryStore() as SessionStore
  const agent = createAgent({ prices: null, ...options, model: await modelOf(turns), store })
  const run = agent.run('How is the weather in Paris?', { session: 's' })
  await lead(run)
  await run.result
  return { recording: JSON.parse(JSON.stringify(await recordSession(agent, 's'))) as Recording, store }
}

const played = (options: Partial<AgentOptions>, recording: object, how?: ReplaySessionOptions) =>
  replaySession(createAgent({ prices: null, ...options, model: silent }), recording, how)

async function refusal(playing: Promise<unknown>): Promise<ReplayError> {
  try {
    await playing
  } catch (error) {
    if (error instanceof ReplayError) return error
    throw error
  }
  throw new Error('It was played.')
}

const question = [call('weather', { city: 'Paris' }), text('It rains.')]

describe('a recorded session', () => {
  it('plays without a model on the agent that it was recorded with', async () => {
    const { recording, store } = await recorded(plainOptions(), question)
    expect(await played(plainOptions(), recording)).toEqual({
      session: 's',
      records: recording.records.length,
      runs: 1,
      calls: 1,
      state: 'COMPLETED',
      reason: 'end_turn',
      notCompared: [],
      subAgents: [],
    })
    const { notCompared } = await played(plainOptions(), await store.read('s'))
    expect(notCompared.map((what) => what.split(',')[0])).toEqual(['the prompt', 'the tool specifications'])
  })

  it('fails after a change of its prompt, and names the line', async () => {
    const { recording } = await recorded(plainOptions(), question)
    const error = await refusal(
      played({ ...plainOptions(), instructions: 'You are a careful analyst.\nAnswer at length.' }, recording),
    )
    expect(error.code).toBe('session_differs')
    expect(error.differences).toMatchObject([{ by: 'prompt', subject: 'instructions', step: null }])
    expect(error.message).toContain('  (line 2)\n  - Answer briefly.\n  + Answer at length.')
    expect(error.message).toContain('statewright sessions export s --as test --update')
  })

  it('reports removed and new tools, and changed descriptions and schemas', async () => {
    const { recording } = await recorded(plainOptions(), question)
    const gone = await refusal(played({ ...plainOptions(), tools: [tool('clock')] }, recording))
    expect(gone.differences.map(({ by, subject, now }) => [by, subject, now])).toEqual([
      ['tools', 'weather', 'gone'],
      ['tools', 'clock', 'there'],
    ])
    expect(gone.message).toContain(
      "Tool 'weather' is missing. The session calls it in step 1. Current tools: clock.",
    )

    const other = weather({
      description: 'Tells the weather.',
      input: {
        type: 'object',
        properties: { city: { type: 'string' }, unit: { type: 'string' } },
        required: ['city', 'unit'],
      } as never,
    })
    const changed = await refusal(played({ ...plainOptions(), tools: [other] }, recording))
    expect(changed.differences.map(({ by, step }) => [by, step])).toEqual([
      ['tools', null],
      ['tools', null],
      ['arguments', 1],
    ])
    expect(changed.message).toContain('required: was ["city"], is ["city","unit"]')
    expect(changed.message).toMatch(
      /Step 1: The arguments of weather\(city: "Paris"\) no longer match the tool's schema: [^]*unit: Missing/,
    )
  })

  it('reports where a run diverges, and the changes of the agent', async () => {
    const { recording } = await recorded(plainOptions(), question)
    const limits = await refusal(played({ ...plainOptions(), limits: { maxSteps: 1 } }, recording))
    expect(limits.differences).toMatchObject([{ by: 'state', step: 1, now: 'MAX_STEPS (done)' }])
    expect(limits.message).toContain('limits.maxSteps was 50 and is now 1')

    const approval = await refusal(
      played({ ...plainOptions(), tools: [weather({ needsApproval: true })] }, recording),
    )
    expect(approval.differences.map(({ by, now }) => [by, now])).toEqual([
      ['approval', 'waits for a person to approve it'],
      ['state', 'WAITING_FOR_INPUT.approval'],
    ])
    const shields = { output: [defineShield({ name: 'x', check: () => ({ action: 'allow' }) })] }
    const shielded = await refusal(played({ ...plainOptions(), shields }, recording))
    expect(shielded.message).toContain('it now has output shields')
  })

  it('executes tools marked as live, and compares their results', async () => {
    const { recording } = await recorded(plainOptions(), question)
    const inputs: unknown[] = []
    const live = weather({ execute: (input: unknown) => (inputs.push(input), 'Rain.') })
    await played({ ...plainOptions(), tools: [live] }, recording, { tools: 'live' })
    expect(inputs).toEqual([{ city: 'Paris' }])
    await played({ ...plainOptions(), tools: [live] }, recording)
    expect(inputs).toHaveLength(1)

    const dry = weather({ execute: () => 'Sun.' })
    const error = await refusal(played({ ...plainOptions(), tools: [dry] }, recording, { tools: 'live' }))
    expect(error.differences).toMatchObject([
      { by: 'result', subject: 'weather', recorded: 'Rain.', now: 'Sun.', step: 1 },
    ])
    await played({ ...plainOptions(), tools: [dry] }, recording, {
      tools: 'live',
      isSame: () => true,
    })
  })

  it('accepts different ids and times in the results of live tools', async () => {
    const at = (time: string, id: string) => weather({ execute: () => `At ${time}, see ${id}.` })
    const { recording } = await recorded(
      { tools: [at('2026-05-01T10:00:00Z', '6f1cdd8c-6a6e-4a86-8df5-2f9e2a9a61c1')] },
      question,
    )
    const now = at('2027-01-01T00:00:00.123Z', '00000000-6a6e-4a86-8df5-2f9e2a9a61c1')
    await played({ tools: [now] }, recording, { tools: 'live' })
  })

  it('plays on an agent created from the recording alone, until it changes', async () => {
    const { recording } = await recorded(plainOptions(), question)
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({
      state: 'COMPLETED',
      notCompared: [],
    })
    const pirate = createRecordedAgent(recording, { instructions: 'You are a pirate.' })
    expect((await refusal(replaySession(pirate, recording))).differences).toMatchObject([{ by: 'prompt' }])
  })
})

test('a recording plays parallel calls in any order', async () => {
  const tools = ['a', 'b', 'c'].map((name) => tool(name, () => name))
  const { recording } = await recorded({ tools }, [calls([['a'], ['b'], ['c']]), text('Done.')])
  expect(await played({ tools }, recording, { tools: 'live' })).toMatchObject({ calls: 3 })
})

describe('an unplayable recording is refused, with a remedy', () => {
  const take = async () => (await recorded(plainOptions(), question)).recording

  test.each([
    ['a string', () => '{}' as unknown as object, /invalid_recording.*Parse it with JSON.parse/],
    ['nothing', () => null as unknown as object, /invalid_recording/],
    ['an empty log', () => [], /invalid_recording.*no such session/],
    ['a list of other values', () => [1, 2], /invalid_recording.*store\.read/],
    ['a session as JSON', () => ({ version: 1, messages: [], usage: {} }), /invalid_recording.*no log/],
  ])('%s', async (_what, input, expected) => {
    const { code, message } = await refusal(played(plainOptions(), input()))
    expect(`${code} ${message}`).toMatch(expected)
  })

  it('if it is of a newer version, or has records of one', async () => {
    const recording = await take()
    expect((await refusal(played(plainOptions(), { ...recording, version: 2 }))).code).toBe('newer_recording')
    const [first, ...records] = recording.records
    const newer = { ...recording, check: undefined, records: [{ ...first, version: 99 }, ...records] }
    const { code, message } = await refusal(played(plainOptions(), newer))
    expect([code, message]).toEqual(['newer_recording', expect.stringContaining('log version 99')])
  })

  it('if it is damaged anywhere, or has no end', async () => {
    const recording = await take()
    const { records, check: _check, ...rest } = recording
    const damages: object[] = [
      { ...recording, session: 'other' },
      { ...recording, records: records.slice(0, -1) },
      { ...rest, records: [] },
      { ...rest, records: records.slice(1) },
      { ...rest, records: records.toReversed() },
      { ...rest, records: records.filter(({ type }) => type !== 'start') },
      { ...rest, records, messages: 7 },
      { ...rest, records: records.map((record) => ({ ...record, event: undefined })) },
    ]
    for (const damage of damages) {
      const { code, message } = await refusal(played(plainOptions(), damage))
      expect([code, message]).toEqual([
        'damaged_recording',
        expect.stringMatching(/damaged|cannot be read|leads nowhere|leads to an impossible state/),
      ])
    }
    // Intentional. A missing checksum is not compared.
    await played(plainOptions(), { ...rest, records })
  })

  it('with an invalid agent, and with unknown options', async () => {
    const recording = await take()
    const none = await refusal(replaySession({} as never, recording))
    expect([none.code, none.message]).toEqual(['not_an_agent', expect.stringContaining('createAgent()')])
    for (const options of [{ tool: 'live' }, { tools: 'yes' }, { isSame: 1 }, { limits: { maxSteps: -1 } }]) {
      const { code } = await refusal(played(plainOptions(), recording, options as never))
      expect(code).toBe('invalid_option')
    }
    await expect(
      recordSession(createAgent({ model: silent, store: memoryStore() }), 'nobody'),
    ).rejects.toMatchObject({
      code: 'unknown_session',
    })
    await expect(recordSession(createAgent({ model: silent }), 's')).rejects.toMatchObject({
      code: 'invalid_option',
    })
  })
})

describe('shields', () => {
  const secret = 'falcon-7'
  const hides = defineShield({
    name: 'hides',
    check: (content) =>
      content.includes(secret)
        ? { action: 'redact', content: content.replaceAll(secret, '[hidden]') }
        : { action: 'allow' },
  })
  const everywhere = { input: [hides], toolInput: [hides], toolOutput: [hides], output: [hides] }

  it('leave no withheld content in a recording, which still plays', async () => {
    const options = { tools: [weather({ execute: () => `Rain at ${secret}.` })], shields: everywhere }
    const { recording } = await recorded(
      options,
      [call('weather', { city: secret }), text(`It rains at ${secret}.`)],
      (run) => run.steer(`Mind ${secret}.`),
    )
    expect(JSON.stringify(recording)).not.toContain(secret)
    const { state, notCompared } = await played(options, recording)
    expect(state).toBe('COMPLETED')
    expect(notCompared).toContainEqual(expect.stringMatching(/^record \d+, where shields withheld/))
    await replaySession(createRecordedAgent(recording), recording)
    await played(options, recording, { tools: 'live' })
  })

  it('end a recording if withheld content determines how the run continues', async () => {
    const changing = () => {
      let n = 0
      return weather({ execute: () => `Rain, ${++n}.`, readOnly: false })
    }
    const turns = [...times(6, call('weather', { city: 'Paris' })), text('It rains.')]
    const { store } = await recorded({ tools: [changing()] }, turns)
    // Simulates that no shield screened the tool's result. The report must not claim that the result changed each time.
    const other = memoryStore()
    const records = (await store.read('s')).map((record) => {
      const entry = openRecord(record, record.seq - 1, 's')
      const isResult = entry.type === 'event' && entry.event.type === 'TOOL_RESULT'
      return isResult
        ? sealRecord(record.seq, record.at, { ...entry, event: { ...entry.event, withheld: true } })
        : record
    })
    other.append(other.acquire('s', { holder: 'the test', ttlMs: 1_000 }), records)
    const agent = createAgent({ tools: [changing()], model: silent, prices: null, store: other })
    const recording = await recordSession(agent, 's')
    expect(JSON.stringify(recording)).not.toContain('Rain, ')
    const { state, notCompared } = await replaySession(agent, recording)
    expect(state).toBe('RUNNING')
    expect(notCompared).toContainEqual(
      expect.stringMatching(/^everything after record \d+, which depends on content withheld/),
    )
  })
})

describe('a session plays with', () => {
  const pay = () => tool('pay', () => 'paid', { needsApproval: true })

  test('an approved call, which is not reported as free of approval if the tool would refuse it now', async () => {
    const turns = [calls([['pay', { n: 1 }]]), text('Done.')]
    const { recording } = await recorded({ tools: [pay()] }, turns, async (run) => {
      const { pending = [] } = (await run.result) as { pending?: { callId: string }[] }
      run.approve(pending[0]?.callId ?? '')
    })
    const strict = defineTool({
      name: 'pay',
      description: 'Pays.',
      needsApproval: true,
      input: { type: 'object', properties: { n: { type: 'string' } }, required: ['n'] },
      execute: () => 'paid',
    }) as Tool
    const { differences } = await refusal(played({ tools: [strict] }, recording))
    expect(differences).toContainEqual(
      expect.objectContaining({ by: 'approval', now: 'is refused for invalid arguments' }),
    )
  })

  test('approvals with an edit, a rejection, steering and a pause', async () => {
    const options = { tools: [pay()] }
    const turns = [
      calls([
        ['pay', { n: 1 }],
        ['pay', { n: 2 }],
      ]),
      text('Done.'),
    ]
    const { recording } = await recorded(options, turns, async (run) => {
      const { pending = [] } = (await run.result) as { pending?: { callId: string }[] }
      run.steer('Quickly.')
      run.approve(pending[0]?.callId ?? '', { n: 3 } as never)
      run.reject(pending[1]?.callId ?? '', 'Too much.')
      run.pause()
      await run.result
      run.resume()
    })
    expect(await played(options, recording)).toMatchObject({ state: 'COMPLETED' })
    expect(await played(options, recording, { tools: 'live' })).toMatchObject({ state: 'COMPLETED' })
    const bold = { tools: [tool('pay', () => 'paid')] }
    expect((await refusal(played(bold, recording))).differences[0]).toMatchObject({
      by: 'approval',
      recorded: 'waited for a person to approve it',
      now: 'runs without approval',
    })
  })

  test('retries, and answers that were cut off', async () => {
    const options = { retry: { baseDelayMs: 1 } }
    const { recording } = await recorded(options, [
      { status: 503 } as Turn,
      text('It rains and', { finishReason: 'length' }),
      text(' pours.'),
    ])
    expect(await played(options, recording)).toMatchObject({ state: 'COMPLETED' })
    const strict = await refusal(played({ retry: { maxAttempts: 1 } }, recording))
    expect(strict.message).toContain('retry.maxAttempts was 3 and is now 1')
  })

  test('sub-agents, each on its own log, and a change of the prompt of one', async () => {
    const lead = (model: AgentOptions['model'], instructions: string): Partial<AgentOptions> => {
      const child = createAgent({ model, instructions, prices: null })
      return { tools: [child.asTool({ name: 'research', description: 'Looks things up.' })] as never }
    }
    const model = await modelOf([text('Found it.')])
    const { recording } = await recorded(lead(model, 'Look.'), [
      call('research', { task: 'Find it.' }),
      text('Done.'),
    ])
    expect(recording.subAgents).toMatchObject([
      { tool: 'research', recording: { agent: { instructions: 'Look.' } } },
    ])
    expect(await played(lead(silent, 'Look.'), recording)).toMatchObject({
      subAgents: [{ state: 'COMPLETED' }],
    })
    const error = await refusal(played(lead(silent, 'Look well.'), recording))
    expect(error.differences).toMatchObject([{ by: 'prompt', path: ['research'] }])
    expect(error.message).toContain('Sub-agent research: The prompt has changed')
    await replaySession(createRecordedAgent(recording), recording)
  })

  test('a deferred sub-agent, on an agent created from the recording alone', async () => {
    const helper = createAgent({ model: silent }).asTool({
      name: 'helper',
      description: 'Helps.',
      maxCalls: 1,
    })
    const search = toolSearch({ search: () => [] })
    const astray = call('tool_search', { n: 1 })
    // The call that only loads its tool does not count for guards. The searches are three in a row.
    const { recording } = await recorded({ tools: [{ ...helper, defer: true }, search] }, [
      astray,
      astray,
      call('helper', { task: 'Look.' }),
      astray,
      text('Fine.'),
    ])
    expect(await replaySession(createRecordedAgent(recording), recording)).toMatchObject({
      state: 'COMPLETED',
    })
  })

  test('objects as answers, and a schema that they no longer match', async () => {
    const output = (key: string) =>
      ({ type: 'object', properties: { [key]: { type: 'string' } }, required: [key] }) as const
    const { recording } = await recorded({ output: output('sky') as never }, [text('{"sky":"grey"}')])
    expect(await played({ output: output('sky') as never }, recording)).toMatchObject({ state: 'COMPLETED' })
    const error = await refusal(played({ output: output('sea') as never }, recording))
    expect(error.differences.map(({ by }) => by)).toEqual(expect.arrayContaining(['output', 'state']))
  })

  test('several runs, forks, and a limit of a run', async () => {
    const store = memoryStore() as SessionStore
    const model = await modelOf([...question, text('Still.'), call('weather', { city: 'Rome' })])
    const agent = createAgent({ ...plainOptions(), prices: null, model, store })
    await agent.run('How is it?', { session: 's' }).result
    await agent.run('And now?', { session: 's' }).result
    const id = await agent.fork('s', 5)
    await agent.run('In Rome?', { session: 's', limits: { maxSteps: 1 } }).result
    const recording = await recordSession(agent, 's')
    expect(await played(plainOptions(), recording)).toMatchObject({ runs: 3, state: 'MAX_STEPS' })
    const fork = await recordSession(agent, id)
    expect(await played(plainOptions(), fork)).toMatchObject({ session: id })
    const capped = { ...plainOptions(), limits: { maxSteps: 1 } }
    const error = await refusal(played(capped, recording))
    expect(error.differences).toMatchObject([{ by: 'state', run: 1, step: 1 }])
    expect(await played(plainOptions(), await store.read('s'))).toMatchObject({ state: 'MAX_STEPS' })
  })

  test('a changed chart, which is reported as such', async () => {
    const { recording } = await recorded(plainOptions(), question)
    const { check: _check, ...rest } = recording
    const moved = recording.records.map((record) =>
      record.reached === 'RUNNING.asking.requesting' ? { ...record, reached: 'RUNNING.requesting' } : record,
    )
    const error = await refusal(played(plainOptions(), { ...rest, records: moved }))
    expect(error.differences).toMatchObject([{ by: 'chart', recorded: 'RUNNING.requesting' }])
    const edited = { ...rest, messages: (rest.messages ?? []).toSpliced(1, 1, 'another') }
    expect((await refusal(played(plainOptions(), edited))).differences).toMatchObject([
      { by: 'chart', subject: 'm2' },
    ])
  })
})

describe('the report of a playback', () => {
  it('shows a change of the prompt as the documentation does', async () => {
    const store = memoryStore() as SessionStore
    const options = { ...plainOptions(), prices: null }
    const agent = createAgent({ ...options, model: await modelOf(question), store })
    await agent.run('How is the weather in Paris?', { session: 'ann' }).result
    const changed = { ...plainOptions(), instructions: 'You are a careful analyst.\nAnswer at length.' }
    const { message } = await refusal(played(changed, await recordSession(agent, 'ann')))
    const page = readFileSync(new URL('../../docs/a-run-as-a-test.md', import.meta.url), 'utf8')
    expect(/```text\n([^]*?)\n```/.exec(page)?.[1]).toBe(message)
  })

  it('compares settings, and guard messages', async () => {
    const { recording } = await recorded({ ...plainOptions(), sampling: { temperature: 0 } }, [
      ...times(4, call('weather', { city: 'Paris' })),
      text('It rains.'),
    ])
    const warm = await refusal(played({ ...plainOptions(), sampling: { temperature: 1 } }, recording))
    expect(warm.differences).toMatchObject([{ by: 'settings', subject: 'sampling.temperature', now: '1' }])
    const off = {
      ...plainOptions(),
      sampling: { temperature: 0 },
      guardrails: { progress: null, repeatedCall: null },
    }
    const { differences } = await refusal(played(off as never, recording))
    expect(differences.map(({ by }) => by)).toContain('guidance')
  })

  it('passes the app’s own object to live tools and needsApproval, and isSame may throw', async () => {
    const needsApproval = (_input: unknown, { context }: { context: unknown }) => context !== 'the app'
    const seen: unknown[] = []
    const execute = (_input: unknown, { context }: { context: unknown }) => (seen.push(context), 'Rain.')
    const options = { tools: [weather({ needsApproval, execute })] }
    const store = memoryStore() as SessionStore
    const agent = createAgent({ ...options, prices: null, model: await modelOf(question), store })
    await agent.run('Go.', { session: 's', context: 'the app' }).result
    const recording = await recordSession(agent, 's')
    await played(options, recording, { tools: 'live', context: 'the app' })
    expect(seen).toEqual(['the app', 'the app'])
    expect((await refusal(played(options, recording))).message).toContain('Pass it as { context }')
    const isSame = () => {
      throw new Error('Never.')
    }
    const { code } = await refusal(played(options, recording, { tools: 'live', context: 'the app', isSame }))
    expect(code).toBe('invalid_option')
  })

  it('reports damaged records of a store as everywhere', async () => {
    const { store } = await recorded(plainOptions(), question)
    const records = (await store.read('s')).map((record) => ({
      ...record,
      data: record.data.replace('Rain', 'Sun'),
    }))
    await expect(played(plainOptions(), records)).rejects.toMatchObject({ code: 'corrupt_log' })
  })
})
