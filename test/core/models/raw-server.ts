import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/**
 * A server that writes raw bytes to the socket of each complete request. `host` is an address of this
 * machine.
 */
export async function rawServer(answer: (socket: Socket, request: number) => void, host = '127.0.0.1') {
  let requests = 0
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    let seen = ''
    socket.on('data', (data) => {
      seen += data.toString('latin1')
      const head = seen.indexOf('\r\n\r\n')
      const [, length] = /content-length: (\d+)/i.exec(seen) ?? []
      if (head === -1 || seen.length < head + 4 + Number(length)) return
      seen = ''
      requests += 1
      answer(socket, requests)
    })
  })
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    baseURL: `http://${host.includes(':') ? `[${host}]` : host}:${port}/v1`,
    get requests() {
      return requests
    },
    get connections() {
      return connections
    },
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A response with these headers, as bytes. */
export function raw(head: string, body = ''): string {
  return `HTTP/1.1 ${head.trim().replaceAll(/\s*\n\s*/g, '\r\n')}\r\n\r\n${body}`
}

/** One chunk of a chunked body. */
export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}
