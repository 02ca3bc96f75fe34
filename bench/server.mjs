// A loopback server without latency that plays the scripted loop.
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
    response.end(answer(parsed))
  })
})
/** Whoever asks is told how many requests there were. */
let served = 0
process.on('message', () => process.send(served))
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  process.send(`http://127.0.0.1:${server.address().port}/v1`)
})
