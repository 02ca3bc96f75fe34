// The tools' actual effects. One server outside all processes counts every started payment.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

export async function openLedger({ takesMs = 120 } = {}) {
  /** How often each payment has started. */
  const paid = new Map()
  /** The processes that are currently in a payment of a session. */
  const inside = new Map()
  const overlaps = []
  const server = createServer(async (request, response) => {
    const [, , session, n, pid] = (request.url ?? '').split('/')
    const key = `${session}/${n}`
    paid.set(key, (paid.get(key) ?? 0) + 1)
    const others = inside.get(session) ?? new Set()
    inside.set(session, others)
    if ([...others].some((other) => other !== pid))
      overlaps.push(`${session}: ${[...others, pid].join(' and ')}`)
    others.add(pid)
    response.once('close', () => others.delete(pid))
    await sleep(takesMs)
    response.end(`paid ${key}`)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, paid, overlaps, close: () => server.close() }
}
