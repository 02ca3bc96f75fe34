import * as z from 'zod/mini'

/** The schema of a stored session. Keys that it does not know are let through: a transcript has providers' extras. */

const text = () => z.string('a text')
const name = () => z.string('a text that is not empty').check(z.minLength(1, 'a text that is not empty'))
const amount = () => z.number('a number from 0').check(z.gte(0, 'a number from 0'))
const flag = () => z.boolean('true or false')
const list = <Item extends z.core.$ZodType>(item: Item) => z.array(item, 'a list')

const stamp = {
  id: name(),
  createdAt: amount(),
  internal: z.optional(z.literal(true, 'true')),
  data: z.optional(z.record(z.string(), z.unknown(), 'an object')),
}

const part = z.looseObject(
  { type: z.enum(['text', 'image_url', 'input_audio', 'file'], 'a known kind of part') },
  'an object',
)

const call = z.looseObject(
  {
    id: name(),
    type: z.literal('function', "'function'"),
    function: z.looseObject({ name: text(), arguments: text() }, 'an object with name and arguments'),
  },
  'a call',
)

const message = z.discriminatedUnion(
  'role',
  [
    z.looseObject({ ...stamp, role: z.literal('system'), content: text() }),
    z.looseObject({
      ...stamp,
      role: z.literal('user'),
      content: z.union([z.string(), z.array(part)], 'a text or a list of parts'),
    }),
    z.looseObject({
      ...stamp,
      role: z.literal('assistant'),
      content: z.nullable(text()),
      tool_calls: z.optional(list(call)),
      refusal: z.optional(text()),
      reasoning: z.optional(text()),
    }),
    z.looseObject({ ...stamp, role: z.literal('tool'), tool_call_id: name(), content: text() }),
  ],
  "a message whose role is 'system', 'user', 'assistant' or 'tool'",
)

const usage = z.looseObject(
  {
    inputTokens: amount(),
    outputTokens: amount(),
    totalTokens: amount(),
    cachedInputTokens: amount(),
    reasoningTokens: amount(),
    cost: z.nullable(amount()),
    estimated: flag(),
  },
  'the totals of a session',
)

const fit = z.looseObject(
  { head: amount(), from: amount(), note: z.nullable(text()) },
  'what requests leave out of the transcript',
)

export const storedSession = z.looseObject(
  {
    version: z.optional(amount()),
    id: name(),
    name: z.optional(text()),
    messages: list(message),
    usage: z.optional(usage),
    metadata: z.optional(
      z.looseObject(
        { guardrails: z.unknown(), warnedOfBudget: z.optional(flag()), fit: z.optional(z.nullable(fit)) },
        'an object',
      ),
    ),
  },
  'an object, as session.toJSON() gives it',
)
