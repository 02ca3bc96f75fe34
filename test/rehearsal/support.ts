import OpenAI from 'openai'
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions'
import {
  type Rehearsal,
  type RehearsalOptions,
  type Scenario,
  startRehearsal,
  type Turn,
  type TurnFunction,
} from '../../src/rehearsal/index.js'

const running: Rehearsal[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((rehearsal) => rehearsal.close()))
})

/** A rehearsal that stops after the test. */
export async function start(scenario: Scenario | RehearsalOptions): Promise<Rehearsal> {
  const rehearsal = await startRehearsal(scenario)
  running.push(rehearsal)
  return rehearsal
}

export function playing(...turns: (Turn | TurnFunction)[]): Promise<Rehearsal> {
  return start({ turns })
}

export const ask = [{ role: 'user' as const, content: 'Hello?' }]

export function clientOf({ url }: Rehearsal, headers: Record<string, string> = {}): OpenAI {
  return new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0, defaultHeaders: headers })
}

export function complete(
  rehearsal: Rehearsal,
  messages: OpenAI.ChatCompletionMessageParam[] = ask,
): Promise<ChatCompletion> {
  return clientOf(rehearsal).chat.completions.create({ model: 'gpt', messages })
}

/** Every chunk of a streamed answer. */
export async function stream(rehearsal: Rehearsal, includeUsage = false): Promise<ChatCompletionChunk[]> {
  const chunks: ChatCompletionChunk[] = []
  const answer = await clientOf(rehearsal).chat.completions.create({
    model: 'gpt',
    messages: ask,
    stream: true,
    ...(includeUsage && { stream_options: { include_usage: true } }),
  })
  for await (const chunk of answer) chunks.push(chunk)
  return chunks
}

/** The body of a request to the model. */
export function body(extra: object = {}): string {
  return JSON.stringify({ model: 'gpt', messages: ask, ...extra })
}

export function post(
  { url }: Rehearsal,
  text = body({ stream: true }),
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${url}/chat/completions`, { method: 'POST', body: text, ...(signal && { signal }) })
}

export interface Received {
  pieces: Uint8Array[]
  text: string
  /** False when the connection broke. */
  whole: boolean
}

/** Reads a body until it ends or breaks. */
export async function receive(response: Response): Promise<Received> {
  const pieces: Uint8Array[] = []
  let whole = true
  try {
    for await (const piece of response.body ?? []) pieces.push(piece)
  } catch {
    whole = false
  }
  return { pieces, text: Buffer.concat(pieces).toString(), whole }
}

/** The contents of a stream's deltas, joined. */
export function textIn(chunks: readonly ChatCompletionChunk[]): string {
  return chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
}

/** The data of server-sent events. */
export function dataOf(text: string): string[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace('data: ', ''))
}
