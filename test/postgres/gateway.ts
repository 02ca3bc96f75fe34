import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A closable proxy in front of a server. To a client, a closed proxy looks like a stopped server. */
export interface Gateway {
  /** The server's address through the gateway. */
  url: string
  open(): Promise<void>
  /** Refuses new connections and closes open ones. */
  close(): Promise<void>
  /** Closes a connection after the clients have sent `count` more messages and the last one was forwarded. */
  breakAtData(count?: number): void
  /** Whether the connection of `breakAtData` is still open. */
  readonly isIntact: boolean
}

export async function openGateway(serverUrl: string): Promise<Gateway> {
  const server = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let messagesLeft = 0

  const listener = createServer((client) => {
    const upstream = connect(Number(server.port), server.hostname)
    for (const [from, to] of [[client, upstream] as const, [upstream, client] as const]) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.on('data', (bytes) => {
        to.write(bytes)
        if (messagesLeft === 0 || from !== client) return
        messagesLeft -= 1
        if (messagesLeft === 0) client.destroy()
      })
    }
  })

  const open = async (port: number): Promise<void> => {
    messagesLeft = 0
    listener.listen(port, '127.0.0.1')
    await once(listener, 'listening')
  }
  await open(0)
  const { port } = listener.address() as AddressInfo
  const url = new URL(serverUrl)
  url.host = `127.0.0.1:${port}`

  return {
    url: url.href,
    open: () => open(port),
    async close() {
      if (!listener.listening) return
      const closed = once(listener, 'close')
      listener.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
    breakAtData(count = 1) {
      messagesLeft = count
    },
    get isIntact() {
      return messagesLeft > 0
    },
  }
}
