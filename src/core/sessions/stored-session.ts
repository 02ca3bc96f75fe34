import { anything, either, fields, list, map, nullable, optional, taggedBy, that } from '../config/kind.js'
import { anyText, choice, flag, number, text } from '../config/values.js'

/** What a stored session has to be. Keys that are not named here are let through: a transcript has providers' extras. */

const amount = () => number(0, Infinity, 'a number from 0')
const only = <const Value>(value: Value) => that<Value>((given) => given === value, JSON.stringify(value))

const stamp = {
  id: text(),
  createdAt: amount(),
  internal: optional(only(true)),
  data: optional(map(anything, 'an object')),
}

const part = fields(
  {
    type: that<'text' | 'image_url' | 'input_audio' | 'file'>(
      (type) => ['text', 'image_url', 'input_audio', 'file'].includes(String(type)),
      'a known kind of part',
    ),
  },
  'an object',
  'open',
)

const call = fields(
  {
    id: text(),
    type: choice('function'),
    function: fields({ name: anyText(), arguments: anyText() }, 'an object with name and arguments', 'open'),
  },
  'a call',
  'open',
)

const role = anyText()

const message = taggedBy(
  'role',
  {
    system: fields({ ...stamp, role, content: anyText() }, 'an object', 'open'),
    user: fields(
      { ...stamp, role, content: either([anyText(), list(part, 'a list')], 'a text or a list of parts') },
      'an object',
      'open',
    ),
    assistant: fields(
      {
        ...stamp,
        role,
        content: nullable(anyText()),
        tool_calls: optional(list(call, 'a list')),
        refusal: optional(anyText()),
        reasoning: optional(anyText()),
      },
      'an object',
      'open',
    ),
    tool: fields({ ...stamp, role, tool_call_id: text(), content: anyText() }, 'an object', 'open'),
  },
  "a message whose role is 'system', 'user', 'assistant' or 'tool'",
)

export const storedUsage = fields(
  {
    inputTokens: amount(),
    outputTokens: amount(),
    totalTokens: amount(),
    cachedInputTokens: amount(),
    cacheWriteTokens: optional(amount()),
    reasoningTokens: amount(),
    cost: nullable(amount()),
    estimated: flag(),
  },
  'the totals of a session',
  'open',
)

export const storedFit = fields(
  { head: amount(), from: amount(), note: nullable(anyText()) },
  'what requests leave out of the transcript',
  'open',
)

export const storedSession = fields(
  {
    version: optional(amount()),
    id: text(),
    name: optional(anyText()),
    messages: list(message, 'a list'),
    usage: optional(storedUsage),
    metadata: optional(
      fields(
        { guardrails: anything, warnedOfBudget: optional(flag()), fit: optional(nullable(storedFit)) },
        'an object',
        'open',
      ),
    ),
  },
  'an object, as session.toJSON() gives it',
  'open',
)
