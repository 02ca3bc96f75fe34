import { shareWork } from '../../src/memory/memory.js'

function gated() {
  const signals: AbortSignal[] = []
  let finish = () => {}
  const join = shareWork((signal) => {
    signals.push(signal)
    return new Promise((resolve, reject) => {
      finish = resolve
      signal.addEventListener('abort', () => {
        reject(new Error('stopped'))
      })
    })
  })
  return { join, signals, finish: () => finish() }
}

const never = () => new AbortController().signal

it('runs once for all waiting callers, and again for later ones', async () => {
  const { join, signals, finish } = gated()
  const both = [join(never()), join(never())]
  finish()
  await Promise.all(both)
  const later = join(never())
  finish()
  await later
  expect(signals).toHaveLength(2)
})

it('continues if one caller gives up, and stops if the last one does', async () => {
  const { join, signals } = gated()
  const [first, second] = [new AbortController(), new AbortController()]
  const both = [join(first.signal), join(second.signal)]
  first.abort('first')
  await expect(both[0]).rejects.toBe('first')
  expect(signals[0]?.aborted).toBe(false)
  second.abort('second')
  await expect(both[1]).rejects.toBe('second')
  expect(signals[0]?.aborted).toBe(true)
})

it('reports a failure to all waiting callers, and retries for the next', async () => {
  let tries = 0
  const join = shareWork(async () => {
    tries += 1
    if (tries === 1) throw new Error('down')
  })
  const both = await Promise.allSettled([join(never()), join(never())])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await join(never())
  expect(tries).toBe(2)
})

it('is not started for a caller that has already given up', async () => {
  const { join, signals } = gated()
  await expect(join(AbortSignal.abort('early'))).rejects.toBe('early')
  expect(signals).toEqual([])
})
