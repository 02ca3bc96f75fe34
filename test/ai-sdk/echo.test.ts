import { createAgent, memoryStore, openaiChat, patternShield } from '../../src/index.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import { startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { distant } from '../support/distant.js'
import { tool } from '../support/tools.js'
import { packages, playedBy, stageOf } from './support.js'

const add = tool('add', ({ a, b }) => Number(a) + Number(b), { readOnly: true })
const call = { name: 'add', arguments: { a: 1, b: 2 } }
const thinking = { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 2_000 } } } }

/** The server rejects reasoning with a wrong signature, and calls without their signature. */
const thinkers = Object.entries(packages).filter(([name]) => /^(anthropic|google)/.test(name))
const turns: Turn[] = [
  { reasoning: 'I have to add.', text: 'Let me see.', toolCalls: [call, call] },
  { reasoning: 'And once more.', toolCalls: [call] },
  { text: 'It is 3.' },
]

/** The reasoning in the requests. */
function thoughtsIn(sent: unknown): string[] {
  return [...JSON.stringify(sent).matchAll(/"(?:thinking|thoughtSignature)":"([^"]+)"/g)].map(
    ([, text]) => text ?? '',
  )
}

describe.each(thinkers)('%s', (name, make) => {
  const isAnthropic = name.startsWith('anthropic')
  const options = isAnthropic ? thinking : {}

  it.each([true, false])('receives its reasoning unchanged (stream: %s)', async (stream) => {
    const { result, stage } = await playedBy(make, turns, { tools: [add], stream }, options)
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'It is 3.' })
    const sent = thoughtsIn(stage.requests[2]?.sent)
    if (isAnthropic) expect(sent).toEqual(expect.arrayContaining(['I have to add.', 'And once more.']))
    else expect(sent).toHaveLength(2)
  })

  it.each([
    ['a store', memoryStore()],
    ['an asynchronous store', distant(memoryStore())],
  ])('receives them in another process, from %s, and in a fork', async (_what, store) => {
    const waiting = tool('add', ({ a, b }) => Number(a) + Number(b), { needsApproval: true })
    const stage = await stageOf(
      make,
      [turns[0] ?? {}, { text: 'One.' }, { text: 'Two.' }],
      { tools: [waiting], store },
      options,
    )
    const result = await stage.run('Add.', { session: 's' }).run.result
    expect(result.state).toBe('WAITING_FOR_INPUT')

    const model = languageModel(make(stage.rehearsal.url), options)
    const other = createAgent({ model, tools: [waiting], store, clock: stage.clock })
    const resumed = await other.resume('s')
    for (const { callId } of result.pending ?? []) resumed.approve(callId)
    expect(await resumed.result).toMatchObject({ state: 'COMPLETED', output: 'One.' })
    const forked = await other.fork('s')
    expect(await other.run('Again.', { session: forked }).result).toMatchObject({ output: 'Two.' })
    for (const { sent } of stage.requests.slice(1, 2)) expect(thoughtsIn(sent)).toHaveLength(1)
    expect(stage.requests.map(({ refused }) => refused)).toEqual([null, null, null])
  })

  it('continues after a shield has redacted its text, which is rewritten', async () => {
    const hide = patternShield({ name: 'hide', patterns: [/Let me/], action: 'redact' })
    const { result, stage } = await playedBy(
      make,
      turns,
      { tools: [add], shields: { output: [hide] } },
      options,
    )
    expect(result.state).toBe('COMPLETED')
    expect(JSON.stringify(stage.requests.slice(1).map(({ sent }) => sent))).not.toContain('Let me')
  })
})

it.each(Object.entries(packages).filter(([name]) => name.startsWith('anthropic')))(
  '%s continues without reasoning until the calls are answered, after a shield has removed it',
  async (_name, make) => {
    const hide = patternShield({ name: 'hide', patterns: [/I have to/], action: 'redact' })
    const { result, stage } = await playedBy(
      make,
      [...turns.slice(0, 1), { text: 'It is 3.' }],
      { tools: [add], shields: { output: [hide] } },
      thinking,
    )
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'It is 3.' })
    const requests = stage.requests.map(
      ({ sent }) => (sent as { thinking?: { type: string } }).thinking?.type,
    )
    expect([requests[0], requests[1] ?? 'disabled']).toEqual(['enabled', 'disabled'])
  },
)

it('provider data is not sent to another provider', async () => {
  const anthropic = packages['anthropic v3']
  if (!anthropic) throw new Error('There is no such package.')
  const store = memoryStore()
  const stage = await stageOf(
    anthropic,
    [turns[0] ?? {}, { text: 'One.' }],
    { tools: [add], store },
    thinking,
  )
  await stage.run('Add.', { session: 's' }).run.result
  const rehearsal = await startRehearsal({
    scenario: { turns: [{ text: 'Two.' }, { text: 'Three.' }] },
    strict: true,
  })
  const chat = openaiChat({ model: 'gpt-test', baseURL: rehearsal.url, apiKey: 'none' })
  const second = await createAgent({ model: chat, tools: [add], store }).run('And?', { session: 's' }).result
  const gemini = packages['google v3']?.(rehearsal.url)
  if (!gemini) throw new Error('There is no such package.')
  const third = await createAgent({ model: languageModel(gemini), tools: [add], store }).run('And?', {
    session: 's',
  }).result
  expect([second.output, third.output]).toEqual(['Two.', 'Three.'])
  expect(JSON.stringify(rehearsal.requests)).not.toMatch(/"signature"|provider_items|I have to add/)
  await rehearsal.close()
})
