import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TestServer {
  url: string
  requests: { path: string; headers: NodeJS.Dict<string | string[]> }[]
  close(): Promise<void>
}

/** A loopback server that records its requests. */
export async function startServer(listener: RequestListener, host = '127.0.0.1'): Promise<TestServer> {
  const requests: TestServer['requests'] = []
  const server: Server = createServer((request, response) => {
    requests.push({ path: request.url ?? '', headers: request.headers })
    listener(request, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host}:${port}`,
    requests,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
