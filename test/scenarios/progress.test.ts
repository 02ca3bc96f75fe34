import { type AgentConfigInput, defineGuard, memoryStore, presets, ToolError } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { again, type Play, played, type Stage, stage } from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'

const done = text('Done.')
const lastWords = text('I found nothing.')
const seen = (play: Pick<Play, 'of'>) => play.of('guardrail').map(({ action, rule }) => `${action} ${rule}`)
const clock = (n: number) => `2026-03-01 10:${String(n).padStart(2, '0')}:07`

/** A run that the default policy stops. The turns repeat on demand, then the last words follow. */
async function halted(turn: Turn, responses: number, options: Parameters<typeof stage>[1]) {
  const theatre = await stage([...times(responses, turn), lastWords], options)
  const play = theatre.run()
  const result = await play.rest()
  expect(result).toMatchObject({ state: 'PAUSED', resumable: true, output: 'I found nothing.' })
  expect(theatre.requests).toHaveLength(responses + 1)
  return { theatre, play, result }
}

describe('the same call with a clock in its result', () => {
  const looking = () => {
    let n = 0
    return tool('look', () => `${clock(n++)} nothing here`, { readOnly: true })
  }

  it('is nudged, then refused, then pauses the run with an answer', async () => {
    const look = looking()
    const { theatre, play, result } = await halted(call('look', { at: 'a' }), 21, { tools: [look] })
    expect(result).toMatchObject({ reason: 'no_progress', steps: 22 })
    expect(result.error).toMatchObject({ code: 'no_progress', recoverable: true })
    expect(result.error?.message).toMatch(
      /called look .*21 times.*guardrails\.progress\.stale\.haltAt \(now 20\)/,
    )
    expect(look.inputs).toHaveLength(5)
    expect(seen(play)).toEqual(['nudge stale', ...times(16, 'block stale'), 'halt stale'])
    expect(play.of('guardrail')[0]?.evidence).toContain('look({"at":"a"})')
    expect(theatre.wire(3).at(-1)?.content).toMatch(/called look with the same arguments 3 times/)
    expect(theatre.wire(6).at(-1)?.content).toMatch(/^Not executed\. .*16 more/s)
    expect(theatre.requests.at(-1)?.body['tools']).toBeUndefined()
    expect(theatre.wire(21).at(-1)?.content).toMatch(/run stops here/)
  })

  it('continues after a resume, with that guard reset', async () => {
    const look = looking()
    const theatre = await stage([...times(21, call('look')), lastWords, call('look'), done], {
      tools: [look],
    })
    const play = theatre.run()
    await play.rest()
    play.run.resume()
    expect(await play.end(24)).toMatchObject({ state: 'COMPLETED', output: 'Done.' })
    expect(look.inputs).toHaveLength(6)
    expect(theatre.wire(22).at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringMatching(/^Continue/),
    })
  })

  it("continues with a person's message, if resumed with one", async () => {
    const theatre = await stage([...times(21, call('look')), lastWords, done], { tools: [looking()] })
    const play = theatre.run()
    await play.rest()
    play.run.steer('Look at b.')
    expect((await play.end(23)).state).toBe('COMPLETED')
    expect(theatre.wire(22).at(-1)).toMatchObject({ role: 'user', content: 'Look at b.' })
  })

  it('pauses without an answer if configured, or if no answer is possible', async () => {
    const few: AgentConfigInput['guardrails'] = {
      progress: { stale: { blockAt: null, haltAt: 2 }, lastWords: false },
    }
    const silent = await stage(times(3, call('look')), { tools: [looking()], guardrails: few })
    expect(await silent.run().rest()).toMatchObject({ state: 'PAUSED', steps: 3, output: '' })
    const soon = { progress: { stale: { blockAt: null, haltAt: 2 } } }
    const failing = await stage([...times(3, call('look')), { status: 500 }], {
      tools: [looking()],
      guardrails: soon,
    })
    const play = failing.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'no_progress', steps: 3 })
    expect(play.of('warning')).toMatchObject([{ code: 'no_conclusion' }])
    const capped = await stage(times(3, call('look')), {
      tools: [looking()],
      guardrails: soon,
      limits: { maxSteps: 3 },
    })
    expect(await capped.run().rest()).toMatchObject({ state: 'PAUSED', reason: 'no_progress', steps: 3 })
  })

  it('ends in ERROR with onHalt error', async () => {
    const guardrails = { progress: { stale: { blockAt: null, haltAt: 2 }, onHalt: 'error' as const } }
    const { result } = await played(times(3, call('look')), { tools: [looking()], guardrails })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'no_progress', steps: 3 })
  })

  it('is recognized in another process, too', async () => {
    const store = memoryStore()
    const theatre: Stage = await stage([...times(21, call('look')), lastWords, done], {
      tools: [looking()],
      store,
    })
    const play = theatre.run('Go.', { session: 's' })
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'no_progress' })
    const run = await again(theatre, { tools: [looking()], store }).resume('s')
    expect(await run.result).toMatchObject({ state: 'PAUSED', output: 'I found nothing.' })
    run.resume()
    expect(await run.result).toMatchObject({ state: 'COMPLETED' })
  })
})

describe('legitimate work continues', () => {
  const completes = async (turns: Turn[], tools: ReturnType<typeof tool>[]) => {
    const play = await played([...turns, done], { tools })
    expect(play.result.state).toBe('COMPLETED')
    expect(seen(play).filter((one) => !one.startsWith('nudge'))).toEqual([])
    return play
  }

  it('with four different searches without results', async () => {
    const turns = ['a', 'b', 'c', 'd'].map((pattern) => call('grep', { pattern }))
    const play = await completes(turns, [tool('grep', () => 'No matches.', { readOnly: true })])
    expect(seen(play)).toEqual([])
  })

  it('with eight thoughts without results', async () => {
    const thoughts = [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
      call('think', { thought: `and ${'so '.repeat(n)}on` }),
    )
    expect(seen(await completes(thoughts, [tool('think', () => '', { readOnly: true })]))).toEqual([])
  })

  it('with six different failing shell commands', async () => {
    const turns = ['a', 'b', 'c', 'd', 'e', 'f'].map((cmd) => call('shell', { cmd }))
    const shell = tool('shell', ({ cmd }) => {
      throw new Error(`${cmd}: command not found`)
    })
    expect(seen(await completes(turns, [shell]))).toEqual([])
  })

  it('with a status that is requested once per message', async () => {
    const theatre = await stage(times(6, [call('look'), done]).flat(), { tools: [tool('look')] })
    for (const n of [1, 2, 3, 4, 5, 6]) {
      const play = theatre.run('Status?', { session: 's' })
      expect((await play.end(2 * n)).state).toBe('COMPLETED')
      expect(play.of('guardrail')).toEqual([])
    }
  })

  it('with calls of a polling tool', async () => {
    const play = await completes(times(40, call('poll')), [tool('poll', () => 'not yet', { polling: true })])
    expect(seen(play)).toEqual([])
  })

  it.each([
    [
      'an error of the tool',
      (n: number) => Promise.reject(new ToolError('failed', `429: slow down, try ${n}`)),
    ],
    ['a text', () => '429 Too Many Requests. Retry after 20 s.'],
    ['an error of a client', () => Promise.reject(new Error('timeout of 5000ms exceeded'))],
  ])('with nine temporary failures that only their text reveals, and a success: %s', async (_, answer) => {
    let n = 0
    const fetch = tool('fetch', () => (++n < 10 ? answer(n) : 'ok'), { readOnly: true })
    expect(seen(await completes(times(10, call('fetch')), [fetch]))).toEqual(['nudge transient'])
    expect(fetch.inputs).toHaveLength(10)
  })

  it('with seven temporary errors and a success', async () => {
    let n = 0
    const fetch = tool('fetch', () => {
      if (n++ < 7) throw new ToolError('transient', 'Timed out.')
      return 'ok'
    })
    expect(seen(await completes(times(8, call('fetch')), [fetch]))).toEqual(['nudge transient'])
  })
})

describe('a lack of progress', () => {
  const pauses = async (turns: Turn[], tools: ReturnType<typeof tool>[], rule: string, more = {}) => {
    const theatre = await stage([...turns, lastWords], { tools, ...more })
    const play = theatre.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'no_progress' })
    expect(seen(play).at(-1)).toBe(`halt ${rule}`)
    expect(theatre.requests).toHaveLength(turns.length + 1)
    return { play, theatre }
  }

  it('is detected for tools that do not exist, with any names', async () => {
    const { play } = await pauses(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => call(name)),
      [tool('look')],
      'unknownTools',
    )
    expect(play.of('guardrail')[0]?.message).toMatch(/do not exist.*exact names/)
  })

  it('is detected for different calls that a shield refuses', async () => {
    const pay = tool('pay')
    const turns = [1, 2, 3, 4, 5, 6, 7, 8].map((to) => call('pay', { to }))
    const check = () => ({ action: 'block' as const, message: 'No payments.' })
    await pauses(turns, [pay], 'refused', { shields: { toolInput: [{ name: 'no-payments', check }] } })
    expect(pay.inputs).toEqual([])
  })

  it('is detected for different calls that a custom guard refuses', async () => {
    const turns = [1, 2, 3, 4, 5, 6, 7, 8].map((to) => call('pay', { to }))
    const no = defineGuard({
      name: 'no',
      verdict: (_, { fact }) => fact.type !== 'calls' || { action: 'block', message: 'No.' },
    })
    await pauses(turns, [tool('pay')], 'refused', { guards: [no] })
  })

  it('is detected for the same call, refused by a shield: the fourth is refused earlier', async () => {
    const check = () => ({ action: 'block' as const, message: 'No payments.' })
    const shields = { toolInput: [{ name: 'no-payments', check }] }
    const { play } = await pauses(times(19, call('pay')), [tool('pay')], 'stale', { shields })
    expect(seen(play).filter((one) => one === 'block stale')).toHaveLength(16)
  })

  it('is detected for a cycle of five calls with a clock in each result', async () => {
    let n = 0
    const look = tool('look', ({ at }) => `${clock(n++)} ${at}`, { readOnly: true })
    const five = [1, 2, 3, 4, 5].map((at) => call('look', { at }))
    await pauses(times(5, five).flat(), [look], 'mixed')
    expect(look.inputs).toHaveLength(11)
  })

  it('is detected for one error, with any arguments and shell line', async () => {
    let line = 0
    const shell = tool('shell', () => {
      throw new Error(`/bin/bash: line ${++line}: jq: command not found`)
    })
    const turns = [1, 2, 3, 4, 5, 6, 7, 8].map((at) => call('shell', { command: `jq .${at}` }))
    await pauses(turns, [shell], 'sameError')
  })
})

describe('a call that recurs between others', () => {
  it('is nudged, but never refused, because its next result may be new', async () => {
    const turns = Array.from({ length: 20 }, (_, n) => calls([['look'], ['note', { n }]]))
    let n = 0
    const look = tool('look', () => (++n < 20 ? 'clean' : 'changed'), { readOnly: true })
    const { of, result } = await played([...turns, done], {
      tools: [look, tool('note', ({ n: at }) => `kept ${at}`)],
    })
    expect(result.state).toBe('COMPLETED')
    expect(look.inputs).toHaveLength(20)
    expect(of('tool_result').map(({ content }) => content)).toContain('changed')
    expect(of('guardrail')).toMatchObject([{ action: 'nudge', rule: 'stale' }])
  })
})

describe('fifty identical calls in one response', () => {
  it('run four times, and the rest are refused', async () => {
    const mail = tool('mail', () => 'sent')
    const batch = calls(times(50, ['mail', { to: 'Ann' }] as const))
    const { result, of, stage: theatre } = await played([batch, done], { tools: [mail] })
    expect(result.state).toBe('COMPLETED')
    expect(mail.inputs).toHaveLength(4)
    expect(of('tool_result').filter(({ status }) => status === 'blocked')).toHaveLength(46)
    expect(of('guardrail')).toMatchObject([{ action: 'block', rule: 'stale' }])
    expect(theatre.wire(1).at(-1)?.content).toMatch(
      /same call to mail 50 times, and only the first 4 were executed/,
    )
  })

  it('do not affect another call next to them', async () => {
    const mail = tool('mail', () => 'sent')
    const look = tool('look')
    const batch = calls([...times(6, ['mail', { to: 'Ann' }] as const), ['look']])
    await played([batch, done], { tools: [mail, look] })
    expect([mail.inputs.length, look.inputs.length]).toEqual([4, 1])
  })
})

describe('a policy that denies the same call again', () => {
  it('ends the run immediately, in ERROR', async () => {
    const write = tool('write', () => {
      throw new ToolError('policy_denied', 'Not on weekends.')
    })
    const { result, of } = await played(times(2, call('write')), { tools: [write] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'policy_denied', steps: 2 })
    expect(of('guardrail').map(({ action }) => action)).toEqual(['nudge', 'halt'])
  })
})

describe('a nudge', () => {
  it('never repeats the previous sentence', async () => {
    const look = tool('look', ({ at }) => `saw ${at}`, { readOnly: true })
    const turns = [1, 2, 3].flatMap((n) => [
      ...times(3, call('look', { at: 'a' })),
      call('look', { at: `new ${n}` }),
    ])
    const { of, result } = await played([...turns, done], { tools: [look] })
    expect(result.state).toBe('COMPLETED')
    const nudges = of('guardrail').filter(({ action }) => action === 'nudge')
    expect(nudges.length).toBeGreaterThan(2)
    expect(nudges.some(({ message }, i) => message === nudges[i - 1]?.message)).toBe(false)
  })
})

describe('a transcript that is fitted into a window', () => {
  it('allows repeated calls after it drops their results', async () => {
    const page = 'word '.repeat(400)
    const look = tool('look', ({ at }) => `${page}${at}`, { readOnly: true })
    const turns = times(
      4,
      ['a', 'b', 'c'].map((at) => call('look', { at })),
    ).flat()
    const tokenizer = { count: (words: string) => words.split(' ').length }
    const fitted = await played([...turns, done], {
      tools: [look],
      context: { window: 1_300, strategy: 'sliding_window' },
      tokenizer,
    })
    expect(fitted.of('context_fitted').length).toBeGreaterThan(2)
    expect(fitted.of('guardrail')).toEqual([])
    const whole = await played([...turns, done], { tools: [look] })
    expect(seen(whole)).toContain('nudge mixed')
  })
})

describe('presets', () => {
  it('keep the rules of their sources, and add none', async () => {
    for (const [preset, responses] of [
      [presets.aar, 4],
      [presets.openhuman, 3],
    ] as const) {
      const theatre = await stage(times(responses, call('look')), { ...preset, tools: [tool('look')] })
      const { reason } = await theatre.run().run.result
      expect(reason).toBe('repeated_call')
    }
  })
})
