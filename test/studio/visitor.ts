import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { type Studio, startStudio, type StudioOptions } from '../../src/studio/index.js'
import type { LiveMessage, Refusal } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'

const open: (() => Promise<void>)[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()))
})

/** A studio that closes after the test, and a browser that has opened its address. */
export async function visit(options: StudioOptions): Promise<Visitor> {
  const studio = await startStudio(options)
  open.push(() => studio.close())
  const address = studio.url
  const { headers } = await ask(address)
  return new Visitor(studio, { address, headers })
}

interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: string
}

export interface Answered {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

/** A request with arbitrary headers, which `fetch` would not send. */
export async function ask(
  url: string,
  { method = 'GET', headers = {}, body }: Asked = {},
): Promise<Answered> {
  const sent = request(url, { method, headers, agent: false })
  sent.on('error', () => undefined)
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).toString('utf8'),
  }
}

export class Visitor {
  readonly studio: Studio
  /** With the used token. */
  readonly address: string
  readonly cookie: string
  readonly origin: string
  /** The page's URL without the trailing slash. All addresses are below it. */
  readonly base: string

  constructor(
    studio: Studio,
    { address, headers }: { address: string; headers: IncomingMessage['headers'] },
  ) {
    this.studio = studio
    this.address = address
    this.cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    this.origin = new URL(address).origin
    this.base = new URL(headers.location ?? '', address).href.replace(/\/$/, '')
  }

  raw(path: string, options: Asked = {}): Promise<Answered> {
    return ask(this.base + path, { ...options, headers: { cookie: this.cookie, ...options.headers } })
  }

  async get<View>(path: string): Promise<View> {
    const { status, body } = await this.raw(path)
    if (status !== 200) throw new Error(`${status}: ${body}`)
    return JSON.parse(body) as View
  }

  /** The completed action, or the reason for its rejection. */
  async post(
    path: string,
    body: unknown,
  ): Promise<{ sessionId?: string; error?: Refusal['error']; status: number }> {
    const headers = { origin: this.origin, 'content-type': 'application/json' }
    const answered = await this.raw(path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { ...(JSON.parse(answered.body) as object), status: answered.status }
  }

  /** Subscribes until the test ends. */
  live(session?: string, after = 0): Feed {
    return new Feed(this.base + paths.live(session, after), this.cookie)
  }
}

/** The messages that the page receives. */
export class Feed {
  readonly messages: LiveMessage[] = []
  readonly #waiting = new Set<() => void>()

  constructor(url: string, cookie: string) {
    const sent = request(url, { headers: { cookie }, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        const events = (text + chunk).split('\n\n')
        text = events.pop() ?? ''
        for (const event of events) {
          if (event.startsWith('data: ')) this.messages.push(JSON.parse(event.slice(6)) as LiveMessage)
        }
        for (const look of this.#waiting) look()
      })
    })
    sent.on('error', () => undefined)
    sent.end()
    open.push(() => {
      sent.destroy()
      return Promise.resolve()
    })
  }

  /** The first matching message, including earlier ones. */
  receive<Type extends LiveMessage['type']>(
    type: Type,
    matches: (message: Extract<LiveMessage, { type: Type }>) => boolean = () => true,
  ): Promise<Extract<LiveMessage, { type: Type }>> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.messages.find(
          (message): message is Extract<LiveMessage, { type: Type }> =>
            message.type === type && matches(message as Extract<LiveMessage, { type: Type }>),
        )
        if (found === undefined) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }
}
