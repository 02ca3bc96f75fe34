// A loopback server without latency that serves the scripted loop.
import { createServer } from 'node:http'
import { answer } from './scripted.mjs'

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (data) => {
    body += data
  })
  request.on('end', () => {
    const parsed = JSON.parse(body)
    served++
    response.writeHead(200, { 'content-type': parsed.stream ? 'text/event-stream' : 'application/json' })
    if (parsed.model.startsWith('packets-'))
      void sendPackets(response, answer({ ...parsed, model: parsed.model.replace('packets', 'chunks') }))
    else response.end(answer(parsed))
  })
})
/** Ten events per packet, like a server that streams as the model writes. */
async function sendPackets(response, text) {
  const events = text.split('\n\n')
  for (let i = 0; i < events.length; i += 10) {
    response.write(`${events.slice(i, i + 10).join('\n\n')}\n\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

/** Reports the number of requests on demand. */
let served = 0
process.on('message', () => process.send(served))
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  process.send(`http://127.0.0.1:${server.address().port}/v1`)
})
