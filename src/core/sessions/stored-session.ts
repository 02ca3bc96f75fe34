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
  type Shape,
  anyText,
  choice,
  flag,
  number,
  nonEmptyText,
} from '../config/kind.js'

/** The schema of a stored session. Unknown keys are allowed, because transcripts contain provider-specific keys. */

const nonNegative = () => number(0, Infinity, 'a non-negative number')
const exactly = <const Value>(value: Value) =>
  predicate<Value>((candidate) => candidate === value, JSON.stringify(value))

const stampFields = {
  id: nonEmptyText(),
  createdAt: nonNegative(),
  internal: optional(exactly(true)),
  data: optional(map(anything, 'an object')),
}

const open = <const Of extends Shape>(shape: Of) => fields(shape, 'an object', 'open')
const typed = <const Of extends Shape>(shape: Of) => open({ type: anyText(), ...shape })

const partKind = taggedUnion(
  'type',
  {
    text: typed({ text: anyText() }),
    image_url: typed({ image_url: open({ url: anyText() }) }),
    input_audio: typed({ input_audio: open({ data: anyText(), format: anyText() }) }),
    file: typed({
      file: open({
        file_data: optional(anyText()),
        file_id: optional(anyText()),
        filename: optional(anyText()),
      }),
    }),
  },
  'a known kind of part',
)

const annotationKind = taggedUnion(
  'type',
  {
    url_citation: typed({ url_citation: open({ url: anyText(), title: optional(anyText()) }) }),
    file_citation: typed({ file_citation: open({ filename: anyText(), title: optional(anyText()) }) }),
  },
  'a known kind of source',
)

const callKind = fields(
  {
    id: nonEmptyText(),
    type: choice('function'),
    function: fields({ name: anyText(), arguments: anyText() }, 'an object with name and arguments', 'open'),
    hosted: optional(open({ from: anyText(), server: anyText() })),
  },
  'a call',
  'open',
)

const mediaFields = { media: optional(list(partKind, 'a list')) }
const roleKind = anyText()

export const messageKind = taggedUnion(
  'role',
  {
    system: fields({ ...stampFields, role: roleKind, content: anyText() }, 'an object', 'open'),
    user: fields(
      {
        ...stampFields,
        role: roleKind,
        content: union([anyText(), list(partKind, 'a list')], 'a string or a list of parts'),
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
        reasoning_details: optional(list(anything, 'a list')),
        annotations: optional(list(annotationKind, 'a list')),
        provider_items: optional(open({ from: anyText(), items: list(anything, 'a list') })),
        by: optional(anyText()),
        ...mediaFields,
      },
      'an object',
      'open',
    ),
    tool: fields(
      { ...stampFields, role: roleKind, tool_call_id: nonEmptyText(), content: anyText(), ...mediaFields },
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
  'the parts of the transcript that requests omit',
  'open',
)

/** Constraints that apply only to a fork. */
export const storedTerms = fields(
  { instructions: optional(anyText()), askFirst: optional(flag()) },
  'the terms of a fork',
  'open',
)

/** How earlier runs ended. */
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

/** Content that providers have refused. */
export const storedRefusals = list(
  taggedUnion(
    'what',
    {
      messages: fields(
        { what: anyText(), ids: list(anyText(), 'a list'), question: nullable(anyText()) },
        'an object',
        'open',
      ),
      media: fields(
        {
          what: anyText(),
          model: anyText(),
          kinds: optional(list(choice('image', 'audio', 'file'), 'a list')),
          parts: optional(list(anyText(), 'a list')),
        },
        'an object',
        'open',
      ),
      reasoning: fields(
        { what: anyText(), model: anyText(), upTo: nullable(nonNegative()) },
        'an object',
        'open',
      ),
    },
    "a refusal with what: 'messages', 'media' or 'reasoning'",
  ),
  'a list of refusals',
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
          turnEnds: optional(storedEnds),
          refusals: optional(storedRefusals),
        },
        'an object',
        'open',
      ),
    ),
  },
  'the object that session.toJSON() returns',
  'open',
)
