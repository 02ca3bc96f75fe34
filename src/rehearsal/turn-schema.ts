import { validateHeaderName, validateHeaderValue } from 'node:http'
import * as z from 'zod'

const count = z.int().nonnegative()
const milliseconds = z.number().nonnegative()
const headers = z.record(z.string(), z.string()).refine(isValidHeaders, 'these are not valid HTTP headers')

const toolCall = z.strictObject({
  /** Default `call_PLAY_N`, unique within the conversation. */
  id: z.string().min(1).optional(),
  name: z.string(),
  /** An object, or the exact text the model writes (broken JSON, an empty string, …). Default `{}`. */
  arguments: z
    .union(
      [z.string(), z.record(z.string(), z.unknown()).refine(isJson)],
      'expected an object that can be written as JSON, or a string with the exact text',
    )
    .optional(),
  /**
   * Label of an MCP server called by the provider; the Responses API asks for approval. In other APIs it is an
   * ordinary call.
   */
  server: z.string().min(1).optional(),
})

const usage = z.strictObject({
  /** Prompt tokens, including `cached` and `cacheWrite`. */
  input: count,
  /** Completion tokens, including `reasoning`. */
  output: count,
  cached: count.optional(),
  /** Prompt tokens written to the cache. */
  cacheWrite: count.optional(),
  reasoning: count.optional(),
})

/** The object under `error`. Other keys are sent unchanged. */
const errorObject = z
  .looseObject({
    message: z.string(),
    type: z.string().optional(),
    code: z.union([z.string(), z.number(), z.null()], 'expected a string, a number or null').optional(),
  })
  .refine(isJson, 'cannot be written as JSON')

const raw = z.strictObject({
  /** Default 200. */
  status: z.int().min(200).max(599).optional(),
  /**
   * Framing headers (`content-length`, `transfer-encoding`, `connection`) are ignored because the server sets
   * them.
   */
  headers: headers.optional(),
  /**
   * Sent byte for byte, as `text/event-stream` or (not streaming) `application/json` unless `headers` override
   * it.
   */
  body: z.string(),
  /** Encoding of `body`. Default `utf8`. */
  encoding: z.enum(['utf8', 'base64']).optional(),
})

const expect = z.strictObject({
  /** Text contained in the last user message. */
  lastUserIncludes: z.string().optional(),
  /** Text contained in the system or developer messages. */
  systemIncludes: z.string().optional(),
  /** The trailing tool results in order, by call id or tool name; `[]` for none. */
  toolResultsFor: z.array(z.string()).optional(),
  /** Texts that must each appear in one of those results. */
  toolResultsInclude: z.array(z.string()).optional(),
  /** Names of tools the request must offer. */
  tools: z.array(z.string()).optional(),
})

const fields = z.strictObject({
  text: z.string().optional(),
  /** Sent before the text as `reasoning_content`, and as signed thoughts in Anthropic's API. */
  reasoning: z.string().optional(),
  refusal: z.string().optional(),
  toolCalls: z.array(toolCall).optional(),
  /** Default `tool_calls` with calls, else `stop`. */
  finishReason: z.string().optional(),
  /** Defaults to an estimate of four characters per token. `null`: the provider reports no usage. */
  usage: usage.nullable().optional(),

  /** Default 200, or 500 with `error`. From 400 on, the body is `error`. */
  status: z.int().min(200).max(599).optional(),
  headers: headers.optional(),
  error: errorObject.optional(),
  /** The `retry-after` header, in seconds. */
  retryAfter: z.number().nonnegative().optional(),
  /** The `retry-after-ms` header. */
  retryAfterMs: milliseconds.optional(),

  /** Characters per delta. Default 16. */
  chunkSize: z.int().positive().optional(),
  /** Milliseconds before the response starts. */
  delayMs: milliseconds.optional(),
  /** Milliseconds between two writes. */
  chunkDelayMs: milliseconds.optional(),
  /**
   * How the bytes are split into writes: all at once, byte by byte, or pieces of these sizes followed by the
   * rest. Defaults to one server-sent event per write.
   */
  split: z
    .union([z.enum(['whole', 'bytes']), z.array(z.int().positive())], "expected 'whole', 'bytes' or sizes")
    .optional(),

  /** Destroy the socket after this many deltas. */
  cutAfter: count.optional(),
  /** `true`: never respond. A number: stop sending after this many deltas and keep the connection open. */
  hang: z.union([z.literal(true), count], 'expected true or a number of deltas').optional(),
  /** End the stream without its finish reason, without `[DONE]`, or without both (and without usage). */
  endWithout: z.enum(['finish', 'done', 'both']).optional(),
  /** Send an `error` object after this many deltas and end the stream. */
  errorInStream: z.strictObject({ after: count, error: errorObject }).optional(),
  /** An exact response instead of one built from the fields above. */
  raw: raw.optional(),

  /** Expectations about the request. If one is not met, the response has status 400 and names it. */
  expect: expect.optional(),
})

/** Also rejects fields that would be silently ignored. */
export const turnSchema = fields.check(({ value, issues }) => {
  const refuse = (keys: readonly (keyof Turn)[], why: string): void => {
    for (const key of keys) {
      if (value[key] !== undefined) issues.push({ code: 'custom', input: value, path: [key], message: why })
    }
  }
  const answer = ['text', 'reasoning', 'refusal', 'toolCalls', 'finishReason', 'usage', 'chunkSize'] as const
  const ending = ['endWithout', 'errorInStream'] as const
  if (value.raw) {
    const unused = [...answer, ...ending, 'status', 'headers', 'error', 'retryAfter', 'retryAfterMs'] as const
    refuse(unused, 'is never sent: `raw` is the whole response')
  } else if (value.error !== undefined || (value.status ?? 200) >= 400) {
    refuse([...answer, ...ending], 'is never sent: the response is an error')
    if ((value.status ?? 500) < 400) refuse(['error'], 'requires a status of 400 or more; see errorInStream')
  }
  if (value.hang !== undefined) refuse(['cutAfter'], 'never happens: the turn hangs')
  if (value.hang !== undefined || value.cutAfter !== undefined)
    refuse(ending, 'never happens: the stream has no end')
})

/**
 * One HTTP response of the model. All fields are optional: `{}` is an empty answer. A delta is one piece of
 * reasoning, text, refusal or a tool call. A request that does not stream gets the same content in one body, of
 * which `cutAfter` and `hang` send half.
 *
 * @example const limited: Turn = { status: 429, retryAfter: 1 }
 */
export interface Turn extends z.input<typeof fields> {}

function isValidHeaders(headers: Record<string, string>): boolean {
  try {
    for (const [name, value] of Object.entries(headers)) {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    }
    return true
  } catch {
    return false
  }
}

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined
  } catch {
    return false
  }
}
