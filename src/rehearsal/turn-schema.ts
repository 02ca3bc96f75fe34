import { validateHeaderName, validateHeaderValue } from 'node:http'
import * as z from 'zod'

const count = z.int().nonnegative()
const milliseconds = z.number().nonnegative()
const headers = z.record(z.string(), z.string()).refine(isValidHeaders, 'these are no valid HTTP headers')

const toolCall = z.strictObject({
  /** Default `call_PLAY_N`, which no other call of the conversation has. */
  id: z.string().min(1).optional(),
  name: z.string(),
  /** An object, or the exact text that the model writes (broken JSON, an empty string, …). Default `{}`. */
  arguments: z
    .union(
      [z.string(), z.record(z.string(), z.unknown()).refine(isJson)],
      'expected an object that can be written as JSON, or a string with the exact text',
    )
    .optional(),
  /**
   * The label of an MCP server that the provider itself would ask: the Responses API asks whether it may. In the words of
   * other APIs it is a call like any other.
   */
  server: z.string().min(1).optional(),
})

const usage = z.strictObject({
  /** Prompt tokens, `cached` and `cacheWrite` included. */
  input: count,
  /** Completion tokens, `reasoning` included. */
  output: count,
  cached: count.optional(),
  /** Prompt tokens that were written to the cache. */
  cacheWrite: count.optional(),
  reasoning: count.optional(),
})

/** The object under `error`, as providers send it; further keys are sent along. */
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
  /** Framing headers (`content-length`, `transfer-encoding`, `connection`) are left out: the server frames anew. */
  headers: headers.optional(),
  /** Sent byte for byte, as `text/event-stream` or (not streaming) `application/json` unless `headers` say else. */
  body: z.string(),
  /** How `body` is written here. Default `utf8`. */
  encoding: z.enum(['utf8', 'base64']).optional(),
})

const expect = z.strictObject({
  /** A part of the last user message. */
  lastUserIncludes: z.string().optional(),
  /** A part of the system (or developer) messages. */
  systemIncludes: z.string().optional(),
  /** The results at the end of the request, in order, each by call id or by tool name; `[]` for none. */
  toolResultsFor: z.array(z.string()).optional(),
  /** Parts, each of which stands in one of those results. */
  toolResultsInclude: z.array(z.string()).optional(),
  /** Names of tools that the request offers. */
  tools: z.array(z.string()).optional(),
})

const fields = z.strictObject({
  text: z.string().optional(),
  /** Before the text: sent as `reasoning_content`; by Anthropic's API as signed thoughts. */
  reasoning: z.string().optional(),
  refusal: z.string().optional(),
  toolCalls: z.array(toolCall).optional(),
  /** Default `tool_calls` with calls, else `stop`. */
  finishReason: z.string().optional(),
  /** Default: four characters a token. `null`: the provider reports none. */
  usage: usage.nullable().optional(),

  /** Default 200, or 500 with `error`. From 400 on, the body is `error`. */
  status: z.int().min(200).max(599).optional(),
  headers: headers.optional(),
  error: errorObject.optional(),
  /** The `retry-after` header, in seconds. */
  retryAfter: z.number().nonnegative().optional(),
  /** The `retry-after-ms` header. */
  retryAfterMs: milliseconds.optional(),

  /** Characters a delta. Default 16. */
  chunkSize: z.int().positive().optional(),
  /** Milliseconds before the answer begins. */
  delayMs: milliseconds.optional(),
  /** Milliseconds between two writes. */
  chunkDelayMs: milliseconds.optional(),
  /**
   * The bytes of one write: the whole body, one byte, or pieces of these sizes and then the rest. Default: one
   * server-sent event a write.
   */
  split: z
    .union([z.enum(['whole', 'bytes']), z.array(z.int().positive())], "expected 'whole', 'bytes' or sizes")
    .optional(),

  /** Destroy the socket after so many deltas. */
  cutAfter: count.optional(),
  /** `true`: never answer. A number: fall silent after so many deltas, with the connection open. */
  hang: z.union([z.literal(true), count], 'expected true or a number of deltas').optional(),
  /** End the stream without its finish reason, without `[DONE]`, or without both (and without usage). */
  endWithout: z.enum(['finish', 'done', 'both']).optional(),
  /** After so many deltas, an `error` object in the stream, which then ends. */
  errorInStream: z.strictObject({ after: count, error: errorObject }).optional(),
  /** An exact response instead of one made of the fields above. */
  raw: raw.optional(),

  /** What the request has to look like; else it is answered 400 with a message that says what was expected. */
  expect: expect.optional(),
})

/** Checked a second time as a whole: a field that would be silently ignored is a mistake in the scenario. */
export const turnSchema = fields.check(({ value, issues }) => {
  const refuse = (keys: readonly (keyof Turn)[], why: string): void => {
    for (const key of keys) {
      if (value[key] !== undefined) issues.push({ code: 'custom', input: value, path: [key], message: why })
    }
  }
  const answer = ['text', 'reasoning', 'refusal', 'toolCalls', 'finishReason', 'usage', 'chunkSize'] as const
  const ending = ['endWithout', 'errorInStream'] as const
  if (value.raw) {
    const made = [...answer, ...ending, 'status', 'headers', 'error', 'retryAfter', 'retryAfterMs'] as const
    refuse(made, 'is never sent: `raw` is the whole response')
  } else if (value.error !== undefined || (value.status ?? 200) >= 400) {
    refuse([...answer, ...ending], 'is never sent: the response is an error')
    if ((value.status ?? 500) < 400) refuse(['error'], 'needs a status of 400 or more; see errorInStream')
  }
  if (value.hang !== undefined) refuse(['cutAfter'], 'never happens: the turn hangs')
  if (value.hang !== undefined || value.cutAfter !== undefined)
    refuse(ending, 'never happens: the stream has no end')
})

/**
 * One HTTP response of the model. Every field is optional: `{}` is an empty answer. A delta is one piece of
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
