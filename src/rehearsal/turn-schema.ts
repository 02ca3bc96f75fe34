import { validateHeaderName, validateHeaderValue } from 'node:http'
import * as z from 'zod'
import { valueOr } from '../core/base/maybe-promise.js'

const count = z.int().nonnegative()
const milliseconds = z.number().nonnegative()
const headers = z.record(z.string(), z.string()).refine(isValidHeaders, 'these are not valid HTTP headers')

const toolCall = z.strictObject({
  /** Defaults to `call_PLAY_N`, which is unique within the conversation. */
  id: z.string().min(1).optional(),
  name: z.string(),
  /** An object, or the exact text that the model writes, such as broken JSON or an empty string. Defaults to `{}`. */
  arguments: z
    .union(
      [z.string(), z.record(z.string(), z.unknown()).refine(isJson)],
      'expected an object that can be written as JSON, or a string with the exact text',
    )
    .optional(),
  /**
   * The label of an MCP server that the provider calls. The Responses API then asks for approval. In other APIs, it is
   * an ordinary call.
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
  /** Defaults to 200. */
  status: z.int().min(200).max(599).optional(),
  /**
   * Framing headers (`content-length`, `transfer-encoding`, `connection`) are ignored because the server sets
   * them.
   */
  headers: headers.optional(),
  /**
   * The body, which is sent byte for byte. Unless `headers` override the type, it is `text/event-stream`, or
   * `application/json` if the request does not stream.
   */
  body: z.string(),
  /** The encoding of `body`. Defaults to `utf8`. */
  encoding: z.enum(['utf8', 'base64']).optional(),
})

const expect = z.strictObject({
  /** Text that the last user message contains. */
  lastUserIncludes: z.string().optional(),
  /** Text that the system or developer messages contain. */
  systemIncludes: z.string().optional(),
  /** The trailing tool results in order, by call id or tool name. `[]` expects none. */
  toolResultsFor: z.array(z.string()).optional(),
  /** Texts, each of which must appear in one of the trailing tool results. */
  toolResultsInclude: z.array(z.string()).optional(),
  /** Names of tools that the request must offer. */
  tools: z.array(z.string()).optional(),
})

const fields = z.strictObject({
  text: z.string().optional(),
  /** The reasoning, which is sent before the text as `reasoning_content`, or as signed thoughts in Anthropic's API. */
  reasoning: z.string().optional(),
  refusal: z.string().optional(),
  toolCalls: z.array(toolCall).optional(),
  /** Defaults to `tool_calls` if there are calls, otherwise `stop`. */
  finishReason: z.string().optional(),
  /** Defaults to an estimate of four characters per token. With `null`, the provider reports no usage. */
  usage: usage.nullable().optional(),

  /** Defaults to 200, or to 500 with `error`. From 400 on, the body is `error`. */
  status: z.int().min(200).max(599).optional(),
  headers: headers.optional(),
  error: errorObject.optional(),
  /** The `retry-after` header, in seconds. */
  retryAfter: z.number().nonnegative().optional(),
  /** The `retry-after-ms` header. */
  retryAfterMs: milliseconds.optional(),

  /** The number of characters per delta. Defaults to 16. */
  chunkSize: z.int().positive().optional(),
  /** The delay before the response starts, in milliseconds. */
  delayMs: milliseconds.optional(),
  /** The delay between two writes, in milliseconds. */
  chunkDelayMs: milliseconds.optional(),
  /**
   * How the bytes are split into writes: all at once, byte by byte, or in pieces of these sizes followed by the rest.
   * Defaults to one server-sent event per write.
   */
  split: z
    .union([z.enum(['whole', 'bytes']), z.array(z.int().positive())], "expected 'whole', 'bytes' or sizes")
    .optional(),

  /** Destroys the socket after this many deltas. */
  cutAfter: count.optional(),
  /**
   * With `true`, the turn never responds. With a number, it stops sending after that many deltas and keeps the
   * connection open.
   */
  hang: z.union([z.literal(true), count], 'expected true or a number of deltas').optional(),
  /**
   * Ends the stream without its finish reason (`finish`), without `[DONE]` (`done`), or without both and without usage
   * (`both`).
   */
  endWithout: z.enum(['finish', 'done', 'both']).optional(),
  /** Sends an `error` object after this many deltas and ends the stream. */
  errorInStream: z.strictObject({ after: count, error: errorObject }).optional(),
  /** An exact response instead of one built from the fields above. */
  raw: raw.optional(),

  /**
   * Expectations about the request. If an expectation is not met, the response has status 400 and names the
   * expectation.
   */
  expect: expect.optional(),
})

/** The schema of a turn. Also rejects fields that would be silently ignored. */
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
  if (value.hang !== undefined) refuse(['cutAfter'], 'has no effect: the turn hangs')
  if (value.hang !== undefined || value.cutAfter !== undefined)
    refuse(ending, 'has no effect: the stream never completes')
})

/**
 * One HTTP response from the model. All fields are optional: `{}` is an empty answer. A delta is one piece of
 * reasoning, of text, of a refusal or of a tool call. A request that does not stream gets the same content in one body.
 * `cutAfter` and `hang` send half of that body.
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
  return valueOr(() => JSON.stringify(value) !== undefined, false)
}
