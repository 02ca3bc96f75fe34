import type { ModelFailure, ModelResponse } from '../../../machines/agent/model-response.js'
import type { AnswerFormat } from '../../../src/core/models/openai/answer-reader.js'
import { readFetchAnswer } from '../../../src/core/models/openai/exchange.js'
import { ModelError, type ModelProvider } from '../../../src/core/models/provider.js'
import { streamOf } from './chunked.js'
import type { Recording } from './recordings.js'
import { serve } from './server.js'

/** The outcome of a recorded answer, with its streamed text. */
export type Outcome = { response: ModelResponse; text: string } | { failure: ModelFailure }

/** A provider at this address, or with this fetch. */
type Made = (options: { baseURL: string; fetch?: typeof fetch }) => ModelProvider

async function outcomeOf(
  work: (onDelta: (text: string) => void) => Promise<ModelResponse>,
): Promise<Outcome> {
  let text = ''
  try {
    const response = await work((delta) => {
      text += delta
    })
    return { response, text }
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    return { failure: error.failure }
  }
}

/** A body in these pieces. */
export function readPieces(pieces: Uint8Array[], format: AnswerFormat): Promise<Outcome> {
  return outcomeOf((onDelta) =>
    readFetchAnswer(new Response(streamOf(pieces)), {
      format,
      signal: new AbortController().signal,
      onDelta,
      onActivity: () => undefined,
    }),
  )
}

/** The same through the real client. */
export function overFetch({ status, headers, body }: Recording, createModel: Made): Promise<Outcome> {
  return pending(
    createModel({
      baseURL: 'http://recorded.example/v1',
      fetch: () => Promise.resolve(new Response(body, { status, headers })),
    }),
  )
}

/** The same over a socket, as JSON. */
export async function overSocket(recording: Recording, createModel: Made, path: string): Promise<string> {
  const { status, headers, body } = recording
  // The server reframes the stream.
  const remaining = Object.entries(headers).filter(
    ([name]) => !/^(content-(length|encoding)|transfer-encoding|connection)$/i.test(name),
  )
  await using server = await serve((response) => {
    response.writeHead(status, Object.fromEntries(remaining))
    response.end(body)
  })
  const outcome = await pending(createModel({ baseURL: server.baseURL }))
  // A handmade answer has no address.
  return JSON.stringify(outcome).replaceAll(`${server.baseURL}${path}`, 'The provider')
}

function pending(model: ModelProvider): Promise<Outcome> {
  return outcomeOf((onDelta) =>
    model.request(
      { instructions: null, messages: [], nudges: [], tools: [], sampling: {}, extraBody: {}, stream: true },
      { signal: new AbortController().signal, onDelta, onActivity: () => undefined },
    ),
  )
}
