import { type AgentOptions, ToolError } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import * as theatre from '../support/play.js'
import { call, calls, text, times, tool } from '../support/tools.js'

const done = text('Done.')

/** This guard counts the listed names. The default policy has other settings. */
const classic = (options: Partial<AgentOptions> = {}) => ({
  ...options,
  guardrails: { failing: {}, ...options.guardrails },
})
const played = (turns: Turn[], options?: Partial<AgentOptions>) => theatre.played(turns, classic(options))
const stage = (turns: Turn[], options?: Partial<AgentOptions>) => theatre.stage(turns, classic(options))

/** Fails as listed, call by call: `ok`, `fail`, `timeout`, `deny`. */
function flaky(...outcomes: ('ok' | 'fail' | 'timeout' | 'deny')[]) {
  let n = 0
  return tool('work', () => {
    const outcome = outcomes[n++] ?? outcomes.at(-1)
    if (outcome === 'fail') throw new Error('It broke.')
    if (outcome === 'timeout') throw new Error('The request timed out.')
    if (outcome === 'deny') throw new ToolError('policy_denied', 'Not on weekends.')
    return `ok ${n}`
  })
}

describe('failing calls', () => {
  it('halt after the third identical failure, with a nudge after the second', async () => {
    const { result, stage } = await played(times(3, call('work')), { tools: [flaky('fail')] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'repeated_failure', steps: 3 })
    expect(result.error?.message).toMatch(/work failed 3 times.*guardrails\.failing\.identical/)
    expect(stage.wire(2).at(-1)?.content).toMatch(/failed twice/)
    expect(stage.wire(1).at(-1)?.content).toMatch(/It broke/)
  })

  it('do not halt with a success in between: fail, fail, ok, fail, fail', async () => {
    const { result } = await played([...times(5, call('work')), done], {
      tools: [flaky('fail', 'fail', 'ok', 'fail', 'fail')],
    })
    expect(result.state).toBe('COMPLETED')
  })

  it('of any kind halt after the sixth in a row', async () => {
    const turns = [1, 2, 3, 4, 5, 6].map((n) => call('work', { n }))
    const { result } = await played(turns, { tools: [flaky('fail')] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'repeated_failure', steps: 6 })
  })

  it('that are temporary have eight attempts: seven timeouts and a success complete', async () => {
    const { result } = await played([...times(8, call('work')), done], {
      tools: [flaky(...times(7, 'timeout' as const), 'ok')],
    })
    expect(result.state).toBe('COMPLETED')
    const eighth = await played(times(8, call('work')), { tools: [flaky('timeout')] })
    expect(eighth.result).toMatchObject({ state: 'ERROR', reason: 'repeated_failure', steps: 8 })
  })

  it('that a policy denies halt at the second identical call, but not at different calls', async () => {
    const { result } = await played(times(2, call('work')), { tools: [flaky('deny')] })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'policy_denied', steps: 2 })
    expect(result.messages.at(-1)).toMatchObject({ data: { status: 'denied' } })
    const others = await played([1, 2, 3].map((n) => call('work', { n })).concat(done), {
      tools: [flaky('deny')],
    })
    expect(others.result.state).toBe('COMPLETED')
  })

  it('of six different unknown tools do not halt, but of one unknown tool do', async () => {
    const six = await played([...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => call(name)), done])
    expect(six.result.state).toBe('COMPLETED')
    const one = await played(times(3, call('a')))
    expect(one.result.reason).toBe('repeated_failure')
  })

  it('of invalid arguments count as failures', async () => {
    const { result } = await played(times(3, call('work', '{"n":')), { tools: [flaky('ok')] })
    expect(result.reason).toBe('repeated_failure')
  })

  it('are refused with onRepeat block, and halt at the second refusal', async () => {
    const failing = flaky('fail')
    const options = { tools: [failing], guardrails: { failing: { onRepeat: 'block' as const } } }
    const heeded = await played([...times(4, call('work')), done], options)
    expect(heeded.result.state).toBe('COMPLETED')
    expect(failing.inputs).toHaveLength(3)
    const ignored = await played(times(5, call('work')), options)
    expect(ignored.result.reason).toBe('repeated_failure')
  })

  it('pause with onHalt pause, and a resume resets their count', async () => {
    const opened = await stage([...times(3, call('work')), call('work'), done], {
      tools: [flaky('fail', 'fail', 'fail', 'fail')],
      guardrails: { failing: { onHalt: 'pause' } },
    })
    const play = opened.run()
    expect(await play.rest()).toMatchObject({ state: 'PAUSED', reason: 'repeated_failure' })
    play.run.resume()
    expect((await play.end(5)).state).toBe('COMPLETED')
  })

  it('are not hidden by a success next to them', async () => {
    const turns = times(3, calls([['work'], ['fine']]))
    const { result } = await played(turns, { tools: [flaky('fail'), tool('fine')] })
    expect(result.reason).toBe('repeated_failure')
  })

  it('can be ignored by configuration', async () => {
    const { result } = await played([...times(7, call('work')), done], {
      tools: [flaky('fail')],
      guardrails: { failing: null },
    })
    expect(result.state).toBe('COMPLETED')
  })

  it('show no secret of the arguments as evidence', async () => {
    const turns = times(3, call('work', { password: 'hunter2-hunter2', note: 'x'.repeat(5_000) }))
    const { of } = await played(turns, { tools: [flaky('fail')] })
    const evidence = of('guardrail').map((event) => event.evidence)
    expect(evidence).toHaveLength(2)
    for (const text of evidence) {
      expect(text.length).toBeLessThanOrEqual(600)
      expect(text).not.toContain('hunter2')
    }
  })
})

describe('the failure counts of a run', () => {
  it('are reset by a user message', async () => {
    const opened = await stage([call('work'), call('work'), done, call('work'), call('work'), done], {
      tools: [flaky('fail')],
    })
    expect((await opened.run('Go.', { session: 's' }).end(3)).state).toBe('COMPLETED')
    expect((await opened.run('Again.', { session: 's' }).end(6)).state).toBe('COMPLETED')
  })

  it('are reset by a reply', async () => {
    const opened = await stage([call('work'), call('work'), done, call('work'), call('work'), done], {
      tools: [flaky('fail')],
      interactive: true,
      limits: { maxSteps: 3 },
    })
    const play = opened.run()
    const first = await play.event('state_changed', ({ reason }) => reason === 'message')
    play.run.reply('Again.')
    await play.event('state_changed', ({ reason, seq }) => reason === 'message' && seq > first.seq)
    play.run.cancel()
    expect((await play.end(6)).state).toBe('CANCELLED')
  })

  it('are not reset by steering or resume()', async () => {
    const opened = await stage(times(3, call('work')), { tools: [flaky('fail')] })
    const play = opened.run()
    await play.event('tool_result')
    play.run.steer('Try harder.')
    play.run.pause()
    await play.rest()
    play.run.resume()
    expect(await play.end(3)).toMatchObject({ state: 'ERROR', reason: 'repeated_failure' })
  })
})
