import { createWorkSlots } from '../../src/memory/attachments/load-attachment.js'

it('never uses more than its slots, and serves all callers in order, also after failures', async () => {
  const run = createWorkSlots(2)
  const begun: number[] = []
  let running = 0
  let most = 0
  const results = await Promise.allSettled(
    [0, 1, 2, 3, 4, 5].map((number) =>
      run(async () => {
        begun.push(number)
        running += 1
        most = Math.max(most, running)
        await Promise.resolve()
        running -= 1
        if (number === 1) throw new Error('failed')
        return number
      }),
    ),
  )
  expect(most).toBe(2)
  expect(begun).toEqual([0, 1, 2, 3, 4, 5])
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
})
