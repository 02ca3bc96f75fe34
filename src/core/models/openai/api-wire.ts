import type { OpenAI } from 'openai'
import type { ModelRequest } from '../provider.js'
import type { AnswerFormat } from './answer-format.js'
import type { RequestBody } from './encode-body.js'

/** One of the APIs that are spoken over the same transport. */
export interface ApiWire {
  readonly path: string
  readonly format: AnswerFormat
  readonly bodies: {
    body(request: ModelRequest): RequestBody
    encode(body: RequestBody): Uint8Array<ArrayBuffer>
  }
  /** Has the client make the request. */
  send(client: OpenAI, body: RequestBody, options: OpenAI.RequestOptions): Promise<Response>
}
