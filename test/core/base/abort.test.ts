import { runAbortable, findCallAbort, CallAbort, attachSignal } from '../../../src/core/base/abort.js'

describe('a lazily created signal', () => {
  const create = () => {
    const abort = new CallAbort()
    return { abort, execution: attachSignal({ callId: 'call_1' }, abort) }
  }

  test('is always the same object, also on a copy', () => {
    const { abort, execution } = create()
    const copy = { ...execution }
    expect(copy.signal).toBe(execution.signal)
    abort.abort(new Error('enough'))
    expect(execution.signal.aborted).toBe(true)
    expect(copy.signal.reason).toEqual(new Error('enough'))
  })

  test('is already aborted if the abort came before the first access', () => {
    const { abort, execution } = create()
    abort.abort('early')
    expect(execution.signal.reason).toBe('early')
  })

  test('is the only visible part of its implementation', () => {
    const { execution } = create()
    expect(Reflect.ownKeys({ ...execution })).toEqual(['callId', 'signal'])
    expect(JSON.stringify(execution)).toBe('{"callId":"call_1","signal":{}}')
  })

  test('is linked to its abort, unless it has been replaced', () => {
    const { abort, execution } = create()
    expect(findCallAbort(execution)).toBe(abort)
    expect(findCallAbort({ ...execution, signal: new AbortController().signal })).toBeUndefined()
    expect(findCallAbort({ signal: new AbortController().signal })).toBeUndefined()
  })

  test('works through a proxy and an heir, which tracing libraries create', () => {
    const { execution } = create()
    expect(new Proxy(execution, {}).signal).toBe(execution.signal)
    expect((Object.create(execution) as typeof execution).signal).toBe(execution.signal)
  })
})

describe('an abort listener', () => {
  test('is called once, in order of registration, and not after it was removed', () => {
    const abort = new CallAbort()
    const calls: string[] = []
    const stop = abort.follow(() => calls.push('first'))
    abort.follow(() => {
      calls.push('second')
      stopThird()
    })
    const stopThird = abort.follow(() => calls.push('third'))
    stop()
    abort.abort('now')
    abort.abort('again')
    expect(calls).toEqual(['second'])
  })

  test.each([
    ['a signal', () => new AbortController()],
    ['an abort', () => new CallAbort()],
  ])('rejects immediately while it waits for %s', async (_, create) => {
    const outer = create()
    let own: CallAbort | undefined
    const waiting = runAbortable(outer instanceof CallAbort ? outer : outer.signal, (abort) => {
      own = abort
      return new Promise(() => undefined)
    })
    outer.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect(own?.reason).toEqual(new Error('enough'))
  })
})
