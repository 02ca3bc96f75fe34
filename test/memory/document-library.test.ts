import { SharedWork } from '../../src/memory/memory.js'

function gated() {
  const signals: AbortSignal[] = []
  let finish = () => {}
  const work = new SharedWork((signal) => {
    signals.push(signal)
    return new Promise((resolve, reject) => {
      finish = resolve
      signal.addEventListener('abort', () => {
        reject(new Error('stopped'))
      })
    })
  })
  return { work, signals, finish: () => finish() }
}

const never = () => new AbortController().signal

it('runs once for all who wait, and anew for those who come later', async () => {
  const { work, signals, finish } = gated()
  const both = [work.join(never()), work.join(never())]
  finish()
  await Promise.all(both)
  const later = work.join(never())
  finish()
  await later
  expect(signals).toHaveLength(2)
})

it('goes on when one gives up, and stops when the last one does', async () => {
  const { work, signals } = gated()
  const [first, second] = [new AbortController(), new AbortController()]
  const both = [work.join(first.signal), work.join(second.signal)]
  first.abort('first')
  await expect(both[0]).rejects.toBe('first')
  expect(signals[0]?.aborted).toBe(false)
  second.abort('second')
  await expect(both[1]).rejects.toBe('second')
  expect(signals[0]?.aborted).toBe(true)
})

it('a failure reaches all who wait, and the next one tries again', async () => {
  let tries = 0
  const work = new SharedWork(async () => {
    tries += 1
    if (tries === 1) throw new Error('down')
  })
  const both = await Promise.allSettled([work.join(never()), work.join(never())])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await work.join(never())
  expect(tries).toBe(2)
})

it('is not started for one who has given up already', async () => {
  const { work, signals } = gated()
  await expect(work.join(AbortSignal.abort('early'))).rejects.toBe('early')
  expect(signals).toEqual([])
})
