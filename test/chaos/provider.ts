import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ChatRequest } from '../../src/rehearsal/index.js'
import type { Scene } from './faults/index.js'
import { inResponses, readEither } from './in-responses.js'
import { type Act, cut, hang, json, type Script } from './script.js'
import type { World } from './world.js'

/** The provider for the requests of one run. */
export interface Provider {
  world: World
  /** Violations of the providers' rules. */
  refused: string[]
  next: (scene: Scene) => Script
}

/** The provider's response to this body. The test looks for bodies that some real provider would reject. */
function scriptFor({ world, refused, next }: Provider, body: string): Script {
  world.moves += 1
  const { request, problem, isChat } = readEither(JSON.parse(body))
  if (problem !== null) {
    refused.push(problem)
    return json({ error: { message: problem } }, 400)
  }
  const offered = (request.tools ?? []).map((tool) => tool.function?.name ?? '')
  const tools = [...offered, ...listDeferred(request)]
  const isFree = request['response_format'] === undefined && request['text'] === undefined
  const text = isFree ? 'Fine.' : '{"done":true}'
  const script = next({ world, stream: request.stream === true, tools, text })
  return isChat ? script : inResponses(script, request)
}

/** The tools that the model knows only by name, from the list in the instructions. */
function listDeferred({ tools, messages }: ChatRequest): string[] {
  if (!tools?.some((tool) => tool.function?.name === 'tool_search')) return []
  const instructions = messages.find(({ role }) => role === 'system' || role === 'developer')?.content
  return [...JSON.stringify(instructions ?? '').matchAll(/\\n- (\w+)[:\\]/g)].map(([, name]) => name ?? '')
}

/** An in-process provider, fast and deterministic per seed. */
export function fetchFrom(provider: Provider): typeof fetch {
  const { world } = provider
  return async (_, init) => {
    const signal = init?.signal ?? undefined
    const {
      before = [],
      status = 200,
      headers = {},
      body,
      instead,
    } = scriptFor(provider, init?.body as string)
    if (instead) return instead()
    for (const act of before) {
      await perform(act, world, signal, () => undefined)
    }
    signal?.throwIfAborted()
    if (body === null) return new Response(null, { status, headers })
    const acts = body[Symbol.iterator]()
    const stream = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { done, value } = acts.next()
        if (done) return controller.close()
        try {
          await perform(value, world, signal, (bytes) => controller.enqueue(bytes))
          signal?.throwIfAborted()
        } catch (error) {
          controller.error(error)
        }
      },
    })
    return new Response(status === 204 ? null : stream, { status, headers })
  }
}

async function perform(
  act: Act,
  world: World,
  signal: AbortSignal | undefined,
  send: (bytes: Uint8Array) => void,
) {
  world.moves += 1
  if (act === cut) throw Object.assign(new TypeError('terminated'), { cause: { code: 'UND_ERR_SOCKET' } })
  if (act === hang) return world.hang(signal)
  if (typeof act === 'object' && 'waitMs' in act) return world.wait(act.waitMs, signal)
  return send(typeof act === 'string' ? new TextEncoder().encode(act) : (act as Uint8Array))
}

/** The same over HTTP, for any number of runs. A header identifies each run. */
export class Host {
  readonly #providers = new Map<string, Provider>()
  readonly #server: Server

  private constructor() {
    this.#server = createServer((incoming, response) => {
      void this.#answer(incoming, response).catch(() => response.destroy())
    })
  }

  static async open(): Promise<Host> {
    const host = new Host()
    await new Promise<void>((resolve) => host.#server.listen(0, '127.0.0.1', resolve))
    return host
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  add(id: string, provider: Provider): void {
    this.#providers.set(id, provider)
  }

  remove(id: string): void {
    this.#providers.delete(id)
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.#providers.get(String(incoming.headers['x-chaos']))
    const pieces: Buffer[] = []
    for await (const piece of incoming as AsyncIterable<Buffer>) {
      pieces.push(piece)
      // A request of megabytes takes real time to send, while the run's simulated clock stands still.
      if (provider) provider.world.moves += 1
    }
    // A redirect target does not receive that header.
    if (!provider || incoming.method !== 'POST') return void response.writeHead(404).end('<html></html>')
    const { world } = provider
    const gone = new AbortController()
    response.on('close', () => {
      world.moves += 1
      gone.abort()
    })
    const {
      before = [],
      status = 200,
      headers = {},
      body,
      instead,
    } = scriptFor(provider, Buffer.concat(pieces).toString())
    if (instead) return void response.destroy()
    try {
      for (const act of before) await perform(act, world, gone.signal, () => undefined)
      response.writeHead(status, headers).flushHeaders()
      for (const act of body ?? [])
        await perform(act, world, gone.signal, (bytes) => void response.write(bytes))
      response.end()
    } catch {
      response.destroy()
    }
  }
}
