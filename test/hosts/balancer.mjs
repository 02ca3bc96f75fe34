// One address for several processes, as in any deployment. Each request goes to the available process with
// the fewest requests.
import { connect, createServer } from 'node:http2'

export async function openBalancer(ports) {
  const ups = new Map()
  const open = new Map(ports.map((port) => [port, 0]))
  let isOver = false
  /** Polled while it is unavailable. */
  const reach = (port) => {
    if (isOver) return
    const session = connect(`http://127.0.0.1:${port}`)
    session.on('error', () => undefined)
    session.once('connect', () => ups.set(port, session))
    session.once('goaway', () => ups.delete(port))
    session.once('close', () => {
      ups.delete(port)
      setTimeout(() => reach(port), 50).unref()
    })
  }
  for (const port of ports) reach(port)
  let turn = 0
  const least = () => {
    const at = (turn += 1)
    const order = ports.map((_, i) => ports[(i + at) % ports.length]).filter((port) => ups.has(port))
    return order.reduce((best, port) => (open.get(port) < open.get(best) ? port : best), order[0])
  }
  const server = createServer()
  server.on('sessionError', () => undefined)
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined)
    const fail = () => stream.destroyed || stream.close(2)
    const port = least()
    if (port === undefined) return fail()
    try {
      const forwarded = ups.get(port).request(headers)
      open.set(port, open.get(port) + 1)
      forwarded.once('close', () => open.set(port, open.get(port) - 1))
      forwarded.on('response', (answer) => stream.destroyed || stream.respond(answer))
      forwarded.on('error', fail)
      // A killed process's stream ends, too. Without a response, Restate would wait for it forever.
      forwarded.on('end', () => (stream.headersSent ? stream.end() : fail()))
      forwarded.on('close', () => stream.writableEnded || fail())
      stream.on('error', () => forwarded.close(8))
      stream.on('close', () => forwarded.closed || forwarded.close(8))
      stream.pipe(forwarded)
      forwarded.pipe(stream, { end: false })
    } catch {
      fail()
    }
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      isOver = true
      for (const session of ups.values()) session.destroy()
      server.close()
    },
  }
}
