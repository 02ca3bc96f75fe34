import { filter, map, mergeMap, of, share, tap } from 'rxjs'
import {
  type AgentEvent,
  BudgetExceededError,
  GuardrailError,
  MaxStepsError,
  NotFinishedError,
  orThrow,
  ProviderError,
  RunError,
} from '../../src/index.js'
import { played, stage, tick } from '../support/play.js'
import { call, text, times, tool } from '../support/tools.js'

describe('a subscriber of a run', () => {
  it('iterates its events up to the rest, and from there to the next', async () => {
    const theatre = await stage([call('pay'), text('Paid.')], {
      tools: [tool('pay', () => 'ok', { needsApproval: true })],
    })
    const play = theatre.run()
    const first: AgentEvent[] = []
    for await (const event of play.run) first.push(event)
    expect(first).toEqual(play.events)
    expect(first.at(-1)?.type).toBe('approval_requested')
    play.run.approve('call_1_1')
    const second: AgentEvent[] = []
    for await (const event of play.run) second.push(event)
    expect(second[0]).toMatchObject({ type: 'state_changed', to: 'WAITING_FOR_TOOL' })
    expect(second.at(-1)).toMatchObject({ type: 'run_ended', state: 'COMPLETED' })
    await play.end(2)
  })

  it('first receives the state if it joins late, and nothing else after the end', async () => {
    const theatre = await stage([{ text: 'Hi.', hang: 1 }, text('Hi.')])
    const play = theatre.run()
    await play.event('stream_chunk')
    const late: AgentEvent[] = []
    play.run.events$.subscribe((event) => late.push(event))
    expect(late).toMatchObject([{ type: 'state_changed', to: 'RUNNING' }])
    const states: string[] = []
    play.run.state$.subscribe((state) => states.push(state))
    play.run.cancel()
    await play.end(1)
    expect(states).toEqual(['RUNNING', 'CANCELLED'])
    const after: AgentEvent[] = []
    let completed = false
    play.run.events$.subscribe({ next: (event) => after.push(event), complete: () => (completed = true) })
    expect(after).toMatchObject([{ type: 'state_changed', to: 'CANCELLED', reason: 'cancelled' }])
    expect(completed).toBe(true)
    for await (const event of play.run) expect(event).toMatchObject({ to: 'CANCELLED' })
  })

  it('receives every event in order, whatever another subscriber does', async () => {
    const theatre = await stage([text('Hi.', { hang: 1 })])
    const { run } = theatre.run()
    const events: AgentEvent[] = []
    run.events$.subscribe(({ type }) => {
      if (type === 'stream_chunk') run.cancel()
      if (type === 'run_started') throw new Error('It fails.')
    })
    run.events$.subscribe((event) => events.push(event))
    await run.result
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
    expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ type: 'run_ended', state: 'CANCELLED' })
  })

  it('receives nothing after the terminal event, even if another subscriber throws at it', async () => {
    const theatre = await stage([text('Hi.')])
    const play = theatre.run()
    play.run.events$.subscribe(({ type }) => {
      if (type === 'run_ended') throw new Error('It fails.')
    })
    await play.end(1)
    expect(play.of('warning')).toEqual([])
  })

  it('reads only the text from text$', async () => {
    const theatre = await stage([text('One two.', { reasoning: 'Hm.' })])
    const play = theatre.run()
    let all = ''
    play.run.text$.subscribe((piece) => (all += piece))
    await play.end(1)
    expect(all).toBe('One two.')
  })

  it('that throws causes one warning, and affects neither the run nor the process', async () => {
    const theatre = await stage([call('look'), text('Done.')], { tools: [tool('look')] })
    const play = theatre.run()
    const { events$, state$, text$ } = play.run
    events$.subscribe(fail('a bare function'))
    events$.subscribe({ next: fail('an observer') })
    events$.subscribe({ complete: fail('a completion') })
    events$.pipe(map((event) => event.type)).subscribe(fail('a piped function'))
    events$.pipe(map(fail('an operator'))).subscribe()
    events$.pipe(tap(fail('a tap'))).subscribe({ error: fail('an error handler') })
    events$.pipe(share(), filter(Boolean)).subscribe(fail('a shared one'))
    events$.pipe(mergeMap((event) => of(event))).subscribe(fail('a merged one'))
    text$.subscribe(fail('a text'))
    state$.subscribe(fail('a state'))
    const result = await play.end(2)
    expect(result.state).toBe('COMPLETED')
    const warnings = play.of('warning').map(({ message }) => message)
    expect(warnings.sort()).toEqual(
      [
        'a bare function broke',
        'a merged one broke',
        'a piped function broke',
        'a shared one broke',
        'a state broke',
        'a text broke',
        'an error handler broke',
        'an observer broke',
        'an operator broke',
      ].map((what) => `A subscriber threw: ${what}`),
    )
    // rxjs throws undeliverable errors from a timer, and Jest fails the test that is running at that moment.
    await new Promise((resolve) => {
      setTimeout(resolve, 0)
    })
  })

  it('can throw in its own loop, and the run continues', async () => {
    const theatre = await stage([text('Done.')])
    const play = theatre.run()
    const loop = async (): Promise<void> => {
      for await (const event of play.run) if (event.type === 'stream_chunk') throw new Error('enough')
    }
    await expect(loop()).rejects.toThrow('enough')
    expect((await play.end(1)).output).toBe('Done.')
  })

  it('can unsubscribe, and subscribe again', async () => {
    const theatre = await stage([text('Done.')])
    const play = theatre.run()
    for await (const event of play.run) if (event.type === 'user_message') break
    await play.end(1)
    await tick()
    expect(play.of('warning')).toEqual([])
  })
})

describe('orThrow', () => {
  const look = tool('look', () => 'same', { readOnly: true })
  it.each([
    [MaxStepsError, times(1, call('look')), { limits: { maxSteps: 1 } }, 'max_steps'],
    [BudgetExceededError, [text('Hi.')], { limits: { tokenBudget: 1 } }, 'token_budget'],
    [ProviderError, [{ status: 401 }], {}, 'invalid_api_key'],
    [GuardrailError, times(4, call('look')), { guardrails: { maxRepeatedToolSteps: 3 } }, 'repeated_call'],
  ] as const)('throws a %p that contains the result', async (ErrorClass, turns, options, code) => {
    const { result } = await played(turns, { ...options, tools: [look] })
    const thrown = caught(() => orThrow(result))
    expect(thrown).toBeInstanceOf(ErrorClass)
    expect(thrown).toBeInstanceOf(RunError)
    expect(thrown).toMatchObject({ name: ErrorClass.name, code, result })
    expect(String(thrown)).not.toMatch(/^\w+: The run ended/)
  })

  it('throws for a cancelled, a timed-out and a waiting run, and returns a completed one', async () => {
    const theatre = await stage([{ hang: true }, { hang: true }, call('pay'), text('Hi.')], {
      tools: [tool('pay', () => 'ok', { needsApproval: true })],
    })
    const cancelled = theatre.run()
    await theatre.arrival(1)
    cancelled.run.cancel()
    const late = theatre.run('Go.', { limits: { timeoutMs: 1_000 } })
    await theatre.arrival(2)
    theatre.clock.increment(1_000)
    const [first, second] = [await cancelled.end(2), await late.end(2)]
    expect(caught(() => orThrow(first))).toMatchObject({ name: 'CancelledError', code: 'cancelled' })
    expect(caught(() => orThrow(second))).toMatchObject({ name: 'TimedOutError', code: 'timeout' })
    const play = theatre.run()
    const waiting = await play.rest()
    expect(caught(() => orThrow(waiting))).toBeInstanceOf(NotFinishedError)
    play.run.approve('call_3_1')
    const completed = await play.end(4)
    expect(orThrow(completed)).toBe(completed)
  })
})

/** A subscriber, or one of its callbacks, that throws. */
const fail = (what: string) => (): never => {
  throw new Error(`${what} broke`)
}

function caught(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
