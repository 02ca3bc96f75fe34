import {
  anything,
  union,
  fields,
  list,
  map,
  nullable,
  optional,
  taggedUnion,
  predicate,
} from '../config/kind.js'
import { anyText, choice, flag, number, nonEmptyText } from '../config/value-kinds.js'

/** What a stored session has to be. Keys that are not named here are let through: a transcript has providers' extras. */

const nonNegative = () => number(0, Infinity, 'a number from 0')
const exactly = <const Value>(value: Value) =>
  predicate<Value>((given) => given === value, JSON.stringify(value))

const stampFields = {
  id: nonEmptyText(),
  createdAt: nonNegative(),
  internal: optional(exactly(true)),
  data: optional(map(anything, 'an object')),
}

const partKind = fields(
  {
    type: predicate<'text' | 'image_url' | 'input_audio' | 'file'>(
      (type) => ['text', 'image_url', 'input_audio', 'file'].includes(String(type)),
      'a known kind of part',
    ),
  },
  'an object',
  'open',
)

const callKind = fields(
  {
    id: nonEmptyText(),
    type: choice('function'),
    function: fields({ name: anyText(), arguments: anyText() }, 'an object with name and arguments', 'open'),
  },
  'a call',
  'open',
)

const roleKind = anyText()

const messageKind = taggedUnion(
  'role',
  {
    system: fields({ ...stampFields, role: roleKind, content: anyText() }, 'an object', 'open'),
    user: fields(
      {
        ...stampFields,
        role: roleKind,
        content: union([anyText(), list(partKind, 'a list')], 'a text or a list of parts'),
      },
      'an object',
      'open',
    ),
    assistant: fields(
      {
        ...stampFields,
        role: roleKind,
        content: nullable(anyText()),
        tool_calls: optional(list(callKind, 'a list')),
        refusal: optional(anyText()),
        reasoning: optional(anyText()),
      },
      'an object',
      'open',
    ),
    tool: fields(
      { ...stampFields, role: roleKind, tool_call_id: nonEmptyText(), content: anyText() },
      'an object',
      'open',
    ),
  },
  "a message whose role is 'system', 'user', 'assistant' or 'tool'",
)

export const storedUsage = fields(
  {
    inputTokens: nonNegative(),
    outputTokens: nonNegative(),
    totalTokens: nonNegative(),
    cachedInputTokens: nonNegative(),
    cacheWriteTokens: optional(nonNegative()),
    reasoningTokens: nonNegative(),
    cost: nullable(nonNegative()),
    estimated: flag(),
  },
  'the totals of a session',
  'open',
)

export const storedFit = fields(
  { head: nonNegative(), from: nonNegative(), note: nullable(anyText()) },
  'what requests leave out of the transcript',
  'open',
)

/** What holds in a fork alone. */
export const storedTerms = fields(
  { instructions: optional(anyText()), askFirst: optional(flag()) },
  'the terms of a fork',
  'open',
)

/** Ends of earlier runs. */
export const storedEnds = list(
  fields(
    {
      messageId: anyText(),
      state: anyText(),
      reason: anyText(),
      error: optional(fields({ code: anyText(), message: anyText() }, 'an error', 'open')),
    },
    'the end of a run',
    'open',
  ),
  'a list',
)

export const storedSession = fields(
  {
    version: optional(nonNegative()),
    id: nonEmptyText(),
    name: optional(anyText()),
    messages: list(messageKind, 'a list'),
    usage: optional(storedUsage),
    metadata: optional(
      fields(
        {
          guardrails: anything,
          warnedOfBudget: optional(flag()),
          fit: optional(nullable(storedFit)),
          loaded: optional(list(anyText(), 'a list')),
          terms: optional(storedTerms),
          ends: optional(storedEnds),
        },
        'an object',
        'open',
      ),
    ),
  },
  'an object, as session.toJSON() gives it',
  'open',
)
