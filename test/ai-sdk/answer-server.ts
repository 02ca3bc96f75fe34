import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HostedAnswer } from './hosted-answers.js'

const servers: Server[] = []

afterEach(async () => {
  await Promise.all(
    servers.splice(0).map((server) => {
      server.closeAllConnections()
      return new Promise((closed) => server.close(closed))
    }),
  )
})

/** A server that returns the given answers, one per request, and records its requests. */
export async function serverOf(answers: readonly HostedAnswer[]): Promise<{ url: string; sent: unknown[] }> {
  const sent: unknown[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      const input = JSON.parse(body) as { stream?: boolean }
      const answer = answers[sent.length]
      sent.push(input)
      if (input.stream === true || request.url?.includes(':stream')) {
        response.setHeader('content-type', 'text/event-stream')
        response.end(answer?.events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
      } else {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(answer?.whole))
      }
    })
  })
  servers.push(server)
  await new Promise<void>((listens) => server.listen(0, '127.0.0.1', listens))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, sent }
}
