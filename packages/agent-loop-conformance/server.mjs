// The scripted server: Chat Completions over HTTP on loopback. Each case gets a separate lane (a path), so that late requests count
// for their own case. The lane records each request and each delivered fault. A fault counts when its bytes are sent.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { findHistoryProblem } from './strict-history.mjs'
import { say } from './frames.mjs'

/** Seeded random numbers (mulberry32). */
export function createRandom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

const written = (response, data) => new Promise((resolve) => response.write(data, resolve))

let answers = 0

class Lane {
  requests = []
  faults = []
  refused = []
  #script
  #random
  #waiting = []

  constructor(script, random) {
    this.#script = script
    this.#random = random
  }

  /** Settles when the lane has received this many requests. */
  async had(count) {
    if (this.requests.length >= count) return
    await new Promise((resolve) => this.#waiting.push({ count, resolve }))
  }

  /** Resolves with the number of requests within this time. Cases use it after the end of a run. */
  async quiet(ms = 250) {
    const before = this.requests.length
    await sleep(ms)
    return this.requests.length - before
  }

  async answer(body, response) {
    const at = this.requests.length
    const request = { body, messages: body.messages, at: performance.now(), closed: false }
    this.requests.push(request)
    response.on('close', () => {
      request.closed = !response.writableFinished
    })
    for (const { count, resolve } of this.#waiting) if (this.requests.length >= count) resolve()
    const problem = findHistoryProblem(body.messages)
    if (problem) {
      this.refused.push(problem)
      const error = {
        message: `Invalid messages: ${problem}.`,
        type: 'invalid_request_error',
        code: null,
        param: 'messages',
      }
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
      return
    }
    const scripted = this.#script[at] ?? this.#script.otherwise ?? say('Fine.')
    const plan = typeof scripted === 'function' ? scripted(body, at) : scripted
    await this.#send(plan, body, response)
    for (const fault of [plan.fault ?? []].flat()) this.faults.push(fault)
  }

  async #send({ status = 200, headers = {}, type = 'text/event-stream', frames }, body, response) {
    response.writeHead(status, { 'content-type': type, ...headers })
    const wantsUsage = body.stream_options?.include_usage === true
    // Each answer has a unique id, because libraries store messages by id.
    const id = `chatcmpl-${++answers}`
    const withOwnId = (text) => text.replaceAll('chatcmpl-ID', id)
    let rest = Buffer.alloc(0)
    const flush = async () => {
      // Splits at seeded positions, because a client must not rely on chunk boundaries.
      while (rest.length > 0) {
        const size = 1 + Math.floor(this.#random() ** 2 * 3000)
        await written(response, rest.subarray(0, size))
        rest = rest.subarray(size)
      }
    }
    for (const frame of frames) {
      if (typeof frame === 'string') rest = Buffer.concat([rest, Buffer.from(withOwnId(frame))])
      else if (Buffer.isBuffer(frame)) rest = Buffer.concat([rest, frame])
      else if (frame.onlyWithUsage)
        rest = Buffer.concat([rest, Buffer.from(wantsUsage ? withOwnId(frame.text) : '')])
      else {
        await flush()
        if (frame.apart) await sleep(15)
        if (frame.until) await frame.until
        frame.reached?.()
        if (frame.fault) {
          this.faults.push(frame.fault)
          if (frame.fault === 'cut') response.socket?.end()
          return
        }
      }
    }
    await flush()
    response.end()
  }
}

export async function startServer(seed) {
  const random = createRandom(seed)
  const lanes = new Map()
  const server = createServer((request, response) => {
    const lane = lanes.get(request.url.split('/')[1])
    const pieces = []
    request.on('data', (data) => pieces.push(data))
    request.on('end', () => {
      if (!lane || !request.url.endsWith('/chat/completions')) return response.writeHead(404).end()
      lane.answer(JSON.parse(Buffer.concat(pieces).toString()), response).catch(() => response.destroy())
      return undefined
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  let count = 0
  return {
    openLane(script) {
      const name = `lane${count++}`
      const lane = new Lane(script, random)
      lane.baseURL = `http://127.0.0.1:${server.address().port}/${name}/v1`
      lanes.set(name, lane)
      return lane
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
