// One address for several processes, as any deployment has it: each request goes to one of those that answer.
import { connect, createServer } from 'node:http2'

export async function openBalancer(ports) {
  const sessions = new Map()
  const sessionOf = (port) => {
    const known = sessions.get(port)
    if (known && !known.closed && !known.destroyed) return known
    const session = connect(`http://127.0.0.1:${port}`)
    session.on('error', () => sessions.delete(port))
    session.on('close', () => sessions.delete(port))
    sessions.set(port, session)
    return session
  }
  let next = 0
  const server = createServer()
  server.on('sessionError', () => undefined)
  server.on('stream', (stream, headers) => {
    const port = ports[(next += 1) % ports.length]
    const fail = () => stream.destroyed || stream.close(2)
    try {
      const forwarded = sessionOf(port).request(headers)
      forwarded.on('response', (answer) => stream.destroyed || stream.respond(answer))
      forwarded.on('error', fail)
      forwarded.on('close', () => stream.writableEnded || fail())
      stream.on('error', () => forwarded.close(8))
      stream.on('close', () => forwarded.closed || forwarded.close(8))
      stream.pipe(forwarded)
      forwarded.pipe(stream)
    } catch {
      fail()
    }
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      for (const session of sessions.values()) session.destroy()
      server.close()
    },
  }
}
