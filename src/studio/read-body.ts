import { z } from 'zod'
import { UsageError } from '../core/base/errors.js'
import type { Answer, ForkRequest } from './protocol.js'

const call = { callId: z.string(), fingerprint: z.string() }

const answer = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('approve'), ...call, arguments: z.unknown().optional() }),
  z.strictObject({ type: z.literal('reject'), ...call, why: z.string().optional() }),
  z.strictObject({ type: z.literal('tool_output'), ...call, value: z.unknown() }),
  z.strictObject({ type: z.literal('reply'), text: z.string() }),
  z.strictObject({ type: z.literal('steer'), text: z.string() }),
  z.strictObject({ type: z.literal('pause') }),
  z.strictObject({ type: z.literal('resume') }),
  z.strictObject({ type: z.literal('cancel'), why: z.string().optional() }),
])

const forkRequest = z.strictObject({
  at: z.int().positive(),
  edit: z
    .union([
      z.strictObject({ message: z.string(), text: z.string() }),
      z.strictObject({ call: z.string(), arguments: z.unknown() }),
      z.strictObject({ call: z.string(), result: z.unknown() }),
    ])
    .optional(),
  run: z.boolean().optional(),
})

/** @throws {UsageError} `invalid_input` */
export const readAnswer = (body: unknown): Answer => parseBody(answer, body) as Answer

/** @throws {UsageError} `invalid_input` */
export const readForkRequest = (body: unknown): ForkRequest => parseBody(forkRequest, body) as ForkRequest

function parseBody<Value>(schema: z.ZodType<Value>, body: unknown): Value {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const at = issue?.path.join('.') ?? ''
  throw new UsageError(
    'invalid_input',
    `The request is invalid${at && ` at '${at}'`}: ${issue?.message}.`,
    at,
  )
}
