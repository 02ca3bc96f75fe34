import { runAbortable, findCallAbort, CallAbort, attachSignal } from '../../../src/core/base/abort.js'

describe('a lazily created signal', () => {
  const made = () => {
    const abort = new CallAbort()
    return { abort, told: attachSignal({ callId: 'call_1' }, abort) }
  }

  test('is always the same object, also on a copy', () => {
    const { abort, told } = made()
    const copy = { ...told }
    expect(copy.signal).toBe(told.signal)
    abort.abort(new Error('enough'))
    expect(told.signal.aborted).toBe(true)
    expect(copy.signal.reason).toEqual(new Error('enough'))
  })

  test('is already aborted if the abort came before the first access', () => {
    const { abort, told } = made()
    abort.abort('early')
    expect(told.signal.reason).toBe('early')
  })

  test('is the only visible part of its implementation', () => {
    const { told } = made()
    expect(Reflect.ownKeys({ ...told })).toEqual(['callId', 'signal'])
    expect(JSON.stringify(told)).toBe('{"callId":"call_1","signal":{}}')
  })

  test('is linked to its abort, unless it has been replaced', () => {
    const { abort, told } = made()
    expect(findCallAbort(told)).toBe(abort)
    expect(findCallAbort({ ...told, signal: new AbortController().signal })).toBeUndefined()
    expect(findCallAbort({ signal: new AbortController().signal })).toBeUndefined()
  })

  test('works through a proxy and an heir, which tracing libraries create', () => {
    const { told } = made()
    expect(new Proxy(told, {}).signal).toBe(told.signal)
    expect((Object.create(told) as typeof told).signal).toBe(told.signal)
  })
})

describe('an abort listener', () => {
  test('is called once, in order of registration, and not after it was removed', () => {
    const abort = new CallAbort()
    const told: string[] = []
    const stop = abort.follow(() => told.push('first'))
    abort.follow(() => {
      told.push('second')
      stopThird()
    })
    const stopThird = abort.follow(() => told.push('third'))
    stop()
    abort.abort('now')
    abort.abort('again')
    expect(told).toEqual(['second'])
  })

  test.each([
    ['a signal', () => new AbortController()],
    ['an abort', () => new CallAbort()],
  ])('rejects immediately while it waits for %s', async (_, made) => {
    const outer = made()
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
