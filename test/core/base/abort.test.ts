import { runAbortable, findCallAbort, CallAbort, attachSignal } from '../../../src/core/base/abort.js'

describe('a signal that is made when it is asked for', () => {
  const made = () => {
    const abort = new CallAbort()
    return { abort, told: attachSignal({ callId: 'call_1' }, abort) }
  }

  test('is one and the same however often it is asked for, and of a copy, too', () => {
    const { abort, told } = made()
    const copy = { ...told }
    expect(copy.signal).toBe(told.signal)
    abort.abort(new Error('enough'))
    expect(told.signal.aborted).toBe(true)
    expect(copy.signal.reason).toEqual(new Error('enough'))
  })

  test('has aborted when that was before anybody asked', () => {
    const { abort, told } = made()
    abort.abort('early')
    expect(told.signal.reason).toBe('early')
  })

  test('is all that is seen of what is behind it', () => {
    const { told } = made()
    expect(Reflect.ownKeys({ ...told })).toEqual(['callId', 'signal'])
    expect(JSON.stringify(told)).toBe('{"callId":"call_1","signal":{}}')
  })

  test('stands for its abort, but not where somebody has put another in its place', () => {
    const { abort, told } = made()
    expect(findCallAbort(told)).toBe(abort)
    expect(findCallAbort({ ...told, signal: new AbortController().signal })).toBeUndefined()
    expect(findCallAbort({ signal: new AbortController().signal })).toBeUndefined()
  })

  test('is there through a proxy and an heir, as tracing libraries make them', () => {
    const { told } = made()
    expect(new Proxy(told, {}).signal).toBe(told.signal)
    expect((Object.create(told) as typeof told).signal).toBe(told.signal)
  })
})

describe('what follows an abort', () => {
  test('is told once, in the order of following, and no longer when it has ended that', () => {
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
  ])('gives up at once what waits behind %s', async (_, made) => {
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
