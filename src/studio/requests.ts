import { z } from 'zod'
import { UsageError } from '../core/base/errors.js'
import type { SessionMessage } from '../core/sessions/inbox/session-message.js'
import { longestQuery, sessionSorts } from './session-query.js'

// Bodies of the page's POST requests. Each schema defines both the validation and the type.

const call = {
  callId: z.string(),
  fingerprint: z.string(),
  messageId: z.string().exactOptional(),
}

export const answerSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('approve'),
    ...call,
    editedInput: z.unknown().exactOptional(),
    /** Also approves later calls with exactly these arguments. */
    grant: z.strictObject({}).exactOptional(),
  }),
  z.strictObject({ type: z.literal('revoke'), grant: z.string() }),
  z.strictObject({ type: z.literal('reject'), ...call, why: z.string().exactOptional() }),
  z.strictObject({ type: z.literal('toolOutput'), ...call, value: z.unknown() }),
  z.strictObject({ type: z.literal('reply'), input: z.string() }),
  z.strictObject({ type: z.literal('steer'), text: z.string() }),
  z.strictObject({ type: z.literal('pause') }),
  z.strictObject({ type: z.literal('resume') }),
  z.strictObject({ type: z.literal('cancel'), why: z.string().exactOptional() }),
]) satisfies z.ZodType<SessionMessage>
export type Answer = z.infer<typeof answerSchema>

/** Starts a new session at record `at`. The original does not change. */
export const forkSchema = z.strictObject({
  at: z.int().positive(),
  edit: z
    .union([
      z.strictObject({ message: z.string(), content: z.string() }),
      z.strictObject({ call: z.string(), arguments: z.unknown() }),
      z.strictObject({ call: z.string(), result: z.unknown() }),
      z.strictObject({ instructions: z.string() }),
    ])
    .exactOptional(),
  run: z.boolean().exactOptional(),
  /** Whether calls in the fork that are not read-only ask for approval. */
  askFirst: z.boolean().exactOptional(),
  /** With `run`: the decision on a call that waits for approval at that record. */
  decision: z
    .discriminatedUnion('type', [
      z.strictObject({
        callId: z.string(),
        type: z.literal('approve'),
        editedInput: z.unknown().exactOptional(),
      }),
      z.strictObject({ callId: z.string(), type: z.literal('reject'), why: z.string().exactOptional() }),
    ])
    .exactOptional(),
})
export type ForkRequest = z.infer<typeof forkSchema>
/** A `ForkEdit` whose message is plain text. */
export type TextEdit = NonNullable<ForkRequest['edit']>

/** Marks the step to which this record belongs. Null removes the mark. */
export const markSchema = z.strictObject({
  seq: z.int().positive(),
  mark: z.enum(['good', 'bad', 'note']).nullable(),
  // Databases reject NUL and unpaired surrogates.
  note: z
    .string()
    .max(2_000)
    .regex(/^[^\0\p{Cs}]*$/u)
    .default(''),
})
export type MarkRequest = z.infer<typeof markSchema>

/** List searches with their sort order, under unique names. */
export const savedViewsSchema = z.strictObject({
  views: z
    .array(
      z.strictObject({
        name: z.string().trim().min(1).max(60),
        q: z.string().max(longestQuery),
        sort: z.string().regex(new RegExp(`^-?(${sessionSorts.join('|')})$`)),
      }),
    )
    .max(50),
})
export type SavedView = z.infer<typeof savedViewsSchema>['views'][number]

/** @throws {UsageError} `invalid_input` */
export function parseRequest<Value>(schema: z.ZodType<Value>, body: unknown): Value {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = issue?.path.join('.') ?? ''
  const where = path && ` at '${path}'`
  throw new UsageError('invalid_input', `The request is invalid${where}: ${issue?.message}.`, path)
}
